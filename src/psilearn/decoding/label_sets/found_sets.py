"""The label sets that a search found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._linalg import Array


class FoundSets(NamedTuple):
    """The nearest sets of q queries."""

    rows: Any  # CSR (q·k, L), the sets of one query after those of another
    distances: Array  # (q, k), ascending

    @classmethod
    def join(cls, parts: Sequence[FoundSets], k: int, n_labels: int) -> FoundSets:
        """Return the sets of consecutive blocks of queries; distances that rounding made negative become 0."""
        if not parts:
            return cls(sparse.csr_matrix((0, n_labels)), np.zeros((0, k)))
        rows = sparse.vstack([part.rows for part in parts], "csr")
        return cls(rows, np.maximum(np.concatenate([part.distances for part in parts]), 0))
