"""Inputs and outputs as tensors, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from psilearn._backend import block_rows, row_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Samples


class Rows:
    """Rows of numbers that become dense tensors when they are asked for.

    Rows that fit into ``working_memory`` as tensors are kept as one on the device, filled block by block; others stay
    as they are and are moved batch by batch.

    Parameters
    ----------
    A : array or CSR matrix (n, d)
    device : torch.device
    change : function of dense rows, optional
        what is done to them.
    dtype : torch.dtype
    """

    def __init__(
        self,
        A: Samples,
        device: Any,
        change: Callable[[Array], Array] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._A, self._device, self._change, self._dtype = A, device, change, dtype
        n, d = A.shape
        self._whole: torch.Tensor | None = None
        if block_rows(dtype.itemsize * d, n) == n:
            whole = torch.empty((n, d), dtype=dtype, device=device)
            for rows in row_blocks(n, 32 * d):
                whole[rows] = self._tensor(A[rows])
            self._whole = whole

    def __len__(self) -> int:
        return int(self._A.shape[0])

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Return a tensor (b, d) for an array of row numbers or a slice."""
        if self._whole is None:
            return self._tensor(self._A[index])
        return self._whole[index if isinstance(index, slice) else torch.as_tensor(index, device=self._device)]

    def _tensor(self, A: Samples) -> torch.Tensor:
        dense = np.asarray(A.toarray() if sparse.issparse(A) else A)
        if self._change is not None:
            dense = self._change(dense)
        return torch.tensor(dense, dtype=self._dtype, device=self._device)


class Scale:
    """a ↦ (a − mean)/deviation for each column; a column that never changes is only centred."""

    def __init__(self, A: Samples) -> None:
        if sparse.issparse(A):
            mean, variance = mean_variance_axis(A.astype(np.float64), axis=0)
        else:
            mean, variance = A.mean(axis=0, dtype=np.float64), A.var(axis=0, dtype=np.float64)
        constant = variance <= (10 * np.finfo(np.float64).eps * mean) ** 2
        self.mean, self.deviation = mean, np.where(constant, 1.0, np.sqrt(variance))

    def __call__(self, rows: Array) -> Array:
        """Return scaled rows."""
        return (rows - self.mean) / self.deviation
