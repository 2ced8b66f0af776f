"""Checked rows of numbers, dense or CSR."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from psilearn._backend import NUMPY
from psilearn._linalg import Array
from psilearn.utils import Samples


def as_columns(Y: Samples) -> Samples:
    """Return n numbers as one column (n, 1), and rows unchanged."""
    return Y.reshape(-1, 1) if Y.ndim == 1 else Y


def to_dense(Y: Samples, name: str) -> Array:
    """Return rows as a dense float64 array (n, L), after a check of the memory that it needs."""
    Y = as_columns(Y)
    NUMPY.require_memory((2, *Y.shape), f"{name} as a dense array", "Train on fewer rows, or on fewer labels.")
    return np.asarray(Y.toarray() if sparse.issparse(Y) else Y, dtype=np.float64)
