"""Small operations that NumPy arrays and torch tensors have under different names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._backend import is_tensor

Array = NDArray[np.float64]  # or a tensor, where a torch device computes

MAX_FLOAT64_NUMBERS = 2**27  # numbers of a tensor that are converted to float64 at a time


def row_products(A: Any, B: Any) -> Any:
    """Return ⟨aᵢ, bᵢ⟩ for the rows of two arrays (n, d), summed in float64."""
    if is_tensor(A):
        import torch

        step = max(1, MAX_FLOAT64_NUMBERS // max(1, A.shape[1]))
        parts = []
        for i in range(0, max(1, len(A)), step):
            left = A[i : i + step].double()
            right = left if B is A else B[i : i + step].double()
            parts.append((left * right).sum(1))
        return torch.cat(parts)
    if not A.shape[1]:
        return np.zeros(len(A))
    return np.einsum("ij,ij->i", A, B, dtype=np.float64)


def clip_negative(values: Any) -> Any:
    """Return max(values, 0)."""
    return values.clamp(min=0) if is_tensor(values) else np.maximum(values, 0)


def clip_above(values: Any, bound: float) -> Any:
    """Return min(values, bound)."""
    return values.clamp(max=bound) if is_tensor(values) else np.minimum(values, bound)


def add_to_diagonal(M: Any, values: Any) -> Any:
    """Add values (n,) to the diagonal of a matrix (n, n) in place, and return the matrix."""
    if is_tensor(M):
        M.diagonal().add_(values)
    else:
        axes = np.arange(len(M))
        M[axes, axes] += values
    return M


def argsmallest(values: Any, k: int) -> Any:
    """Return the columns of the k smallest entries of each row, (n, k), in any order."""
    if is_tensor(values):
        return values.argmin(1, keepdim=True) if k == 1 else values.topk(k, 1, largest=False, sorted=False).indices
    return values.argmin(axis=1)[:, None] if k == 1 else np.argpartition(values, k - 1, axis=1)[:, :k]


def nonzero_pairs(mask: Any) -> tuple[Any, Any]:
    """Return the rows and columns of the true entries of a mask (n, m), row by row."""
    if is_tensor(mask):
        i, j = mask.nonzero(as_tuple=True)
        return i, j
    return np.divmod(np.flatnonzero(mask), mask.shape[1])
