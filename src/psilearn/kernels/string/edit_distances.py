"""Edit distances of strings and sequences, computed by rapidfuzz."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import explain_missing
from psilearn._linalg import Array

INSTALL = "Edit distances need rapidfuzz: pip install 'psilearn[strings]'."


def edit_distances(A: Any, B: Any) -> Array:
    """Return the number of insertions, deletions and substitutions between all pairs of validated strings."""
    with explain_missing(INSTALL):
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    return np.asarray(cdist(_items(A), _items(B), scorer=Levenshtein.distance, dtype=np.int32), dtype=np.float64)


def paired_edit_distances(A: Any, B: Any) -> Array:
    """Return the edit distance of each pair of validated strings."""
    with explain_missing(INSTALL):
        from rapidfuzz.distance import Levenshtein
    pairs = zip(_items(A), _items(B), strict=True)
    return np.array([Levenshtein.distance(a, b) for a, b in pairs], dtype=np.float64)


def _items(A: Any) -> list[Any]:
    """Return strings as they are, and other sequences as lists of tokens."""
    return [item if isinstance(item, str) else list(item) for item in A]
