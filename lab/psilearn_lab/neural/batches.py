"""Rows of numbers as tensors, one batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from psilearn._backend import block_rows, iter_blocks
from psilearn._linalg import Array
from psilearn.utils import Index, Samples

RowIndex: TypeAlias = Index | slice


class TensorRows:
    """Rows of numbers that are returned as dense tensors.

    Rows that fit into ``working_memory`` as tensors are stored as one tensor on the device, filled block by block;
    others stay in their form and are moved batch by batch.

    Parameters
    ----------
    A : array or CSR matrix of shape (n, d)
        The rows.
    device : torch.device
        The device of the tensors.
    transform : callable, default=None
        A function that is applied to dense rows.
    dtype : torch.dtype, default=torch.float32
        The dtype of the tensors.
    """

    def __init__(
        self,
        A: Samples,
        device: torch.device,
        transform: Callable[[Array], Array] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._A, self._device, self._transform, self._dtype = A, device, transform, dtype
        n, d = A.shape
        self._tensor: torch.Tensor | None = None
        if block_rows(dtype.itemsize * d, n) == n:
            tensor = torch.empty((n, d), dtype=dtype, device=device)
            for rows in iter_blocks(n, 32 * d):
                tensor[rows] = self._to_tensor(A[rows])
            self._tensor = tensor

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._A.shape[0])

    def __getitem__(self, index: RowIndex) -> torch.Tensor:
        """Return a tensor (b, d) for an array of row numbers or a slice."""
        if self._tensor is None:
            return self._to_tensor(self._A[index])
        return self._tensor[index if isinstance(index, slice) else torch.as_tensor(index, device=self._device)]

    def _to_tensor(self, A: Samples) -> torch.Tensor:
        """Return transformed rows as a dense tensor on the device."""
        dense = np.ascontiguousarray(A.toarray() if sparse.issparse(A) else A)
        if self._transform is not None:
            dense = self._transform(dense)
        return torch.tensor(dense, dtype=self._dtype, device=self._device)


class Standardizer:
    """The map a ↦ (a − mean)/deviation of each column; a constant column is only centered."""

    def __init__(self, A: Samples) -> None:
        if sparse.issparse(A):
            mean, variance = mean_variance_axis(A.astype(np.float64), axis=0)
        else:
            mean, variance = A.mean(axis=0, dtype=np.float64), A.var(axis=0, dtype=np.float64)
        constant = variance <= (10 * np.finfo(np.float64).eps * mean) ** 2
        self.mean: Array = mean
        self.deviation: Array = np.where(constant, 1.0, np.sqrt(variance))

    def __call__(self, rows: Array) -> Array:
        """Return standardized rows."""
        return (rows - self.mean) / self.deviation
