"""Totals of the largest weights of each row, for arrays and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import is_tensor, to_numpy
from psilearn._linalg import Array


def top_sums(W: Any, n: int) -> Array:
    """Return the total of the n largest entries of each row of W (b, c)."""
    if n == 0:
        return np.zeros(len(W))
    if is_tensor(W):
        return to_numpy(W.topk(n, 1, sorted=False).values.sum(1))
    c = W.shape[1]
    return np.asarray((W if n == c else np.partition(W, c - n, axis=1)[:, c - n :]).sum(axis=1))


def nth_largest(W: Any, n: int) -> Array:
    """Return the n-th largest entry of each row of W (b, c), counted from 1."""
    if is_tensor(W):
        return to_numpy(W.topk(n, 1).values[:, -1])
    return np.partition(W, W.shape[1] - n, axis=1)[:, W.shape[1] - n]


def largest_first(W: Any) -> Array:
    """Return the sorted entries of each row of W (b, c), largest first."""
    if is_tensor(W):
        return to_numpy(W.sort(1, descending=True).values)
    return np.sort(W, axis=1)[:, ::-1]


def largest_columns(values: Any, n: int) -> Any:
    """Return the columns of the n largest entries of each row, (b, n), ascending."""
    if is_tensor(values):
        return values.topk(n, 1).indices.sort(1).values
    return np.sort(np.argpartition(values, values.shape[1] - n, axis=1)[:, values.shape[1] - n :], axis=1)
