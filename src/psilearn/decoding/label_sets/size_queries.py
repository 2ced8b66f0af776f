"""Predictions, as far as the nearest label sets depend on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from psilearn._backend import is_tensor
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.set_limits import SetLimits
from psilearn.decoding.label_sets.size_weights import SizeWeights, to_device_of


@dataclass(frozen=True)
class SizeQueries:
    """A block of b predictions."""

    weights: SizeWeights
    limits: SetLimits
    vectors: Any  # (T, b, L)  A, on the device
    totals: Array  # (T, b)  B
    squared: Array  # (b,)  |z|²
    tolerance: float  # of ties, as a part of |z|² + k(y, y)

    def __len__(self) -> int:
        return len(self.squared)

    def take(self, rows: Index) -> SizeQueries:
        """Return some of the queries."""
        if len(rows) == len(self):
            return self
        vectors = (
            self.vectors[:, to_device_of(self.vectors, rows)] if is_tensor(self.vectors) else self.vectors.take(rows, 1)
        )
        return replace(self, vectors=vectors, totals=self.totals[:, rows], squared=self.squared[rows])

    def norms(self, sizes: Index) -> Array:
        """Return k(y, y) for these sizes, (S,)."""
        return self.weights.form.squared_norms(sizes.astype(np.float64))

    def slack(self, sizes: Index) -> Array:
        """Return by how much equal distances of sets of these sizes may differ, (b, S)."""
        return self.tolerance * (self.squared[:, None] + self.norms(sizes))

    def distances(self, scores: Array, sizes: Index) -> Array:
        """Return the squared distances (b, S) of sets with these totals of weights (b, S); 0 may become negative.

        One size may stand for all columns.
        """
        scores = scores + self.weights.constants(sizes, self.totals)
        return np.asarray(self.squared[:, None] - 2 * scores + self.norms(sizes))

    @cached_property
    def magnitudes(self) -> Any:
        """|A|, (T, b, L)."""
        return abs(self.vectors)
