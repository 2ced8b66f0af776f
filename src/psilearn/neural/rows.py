"""Inputs and outputs as float32 tensors, a batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from psilearn.backend import block_rows
from psilearn.linalg import Array
from psilearn.samples import Samples


class Rows:
    """Rows of numbers that become dense tensors when they are asked for.

    Rows that fit into ``working_memory`` are kept as one tensor on the device; others stay as they are and are moved
    batch by batch.

    Parameters
    ----------
    A : array or CSR matrix (n, d)
    device : torch.device
    scale : Scale, optional
        what is done to each row.
    """

    def __init__(self, A: Samples, device: Any, scale: Scale | None = None) -> None:
        self._A, self._device, self._scale = A, device, scale
        n, d = A.shape
        self._whole = self._tensor(A) if block_rows(4 * d, n) == n else None

    def __len__(self) -> int:
        return int(self._A.shape[0])

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Return a tensor (b, d) for an array of row numbers or a slice."""
        if self._whole is None:
            return self._tensor(self._A[index])
        return self._whole[index if isinstance(index, slice) else torch.as_tensor(index, device=self._device)]

    def _tensor(self, A: Samples) -> torch.Tensor:
        dense = np.asarray(A.toarray() if sparse.issparse(A) else A)
        if self._scale is not None:
            dense = self._scale(dense)
        return torch.tensor(dense, dtype=torch.float32, device=self._device)


class Scale:
    """a ↦ (a − mean)/deviation for each column; a column that never changes is only centred."""

    def __init__(self, A: Samples) -> None:
        self.mean = np.asarray(A.mean(axis=0), dtype=np.float64).ravel()
        squares = A.multiply(A) if sparse.issparse(A) else np.square(A, dtype=np.float64)
        variance = np.asarray(squares.mean(axis=0)).ravel() - self.mean**2
        constant = variance <= 1e-12 * (self.mean**2 + np.finfo(float).tiny)
        self.deviation = np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0)))

    def __call__(self, rows: Array) -> Array:
        """Return scaled rows."""
        return (rows - self.mean) / self.deviation
