"""Rows on a device of torch: CSR rows, packed bits, and the inner products of all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.backend import computing_rows, put, tensor_cores

SPARSE = 0.005  # share of nonzeros below which a product of CSR rows is not made dense
TALL = 16384  # rows of bits that are unpacked together, at the most


@dataclass(frozen=True)
class DeviceRows:
    """CSR rows on a device, for one call of a kernel; torch's own CSR tensors have no rows to take."""

    tensor: Any  # of torch, in the layout sparse_csr

    @classmethod
    def of(cls, rows: Any, device: Any) -> DeviceRows:
        """Move CSR rows."""
        import torch

        indptr, indices, data = (put(part, device) for part in (rows.indptr, rows.indices, rows.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that such tensors are young
            return cls(torch.sparse_csr_tensor(indptr, indices, data, rows.shape, check_invariants=False))

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""
        return tuple(self.tensor.shape)

    @property
    def density(self) -> float:
        """The share of entries that are stored."""
        n, d = self.shape
        return float(self.tensor.values().numel() / max(1, n * d))

    def cast(self, dtype: Any) -> DeviceRows:
        """Return the same rows in a dtype of torch."""
        return DeviceRows(self.tensor.to(dtype))

    def dense(self) -> Any:
        """Return the rows with their zeros."""
        return self.tensor.to_dense()


def on_device(rows: Any, device: Any) -> Any:
    """Return rows, dense or CSR, on a device."""
    return DeviceRows.of(rows, device) if sparse.issparse(rows) else put(rows, device)


def inner_products(A: Any, B: Any, dtype: Any) -> Any:
    """Return A Bᵀ for dense or CSR rows on a device, dense, in this dtype of NumPy.

    CSR rows are made dense, which the matrix units repay from half a percent of nonzeros on; below that, and where
    there is no room for their zeros, CSR rows are multiplied with dense panels of the other side.
    """
    import torch

    dtype = getattr(torch, np.dtype(dtype).name)
    if not isinstance(A, DeviceRows) and not isinstance(B, DeviceRows):
        return _cast(A, dtype) @ _cast(B, dtype).T
    (a, d), b = A.shape, B.shape[0]
    room = computing_rows(d * torch.empty(0, dtype=dtype).element_size(), a + b)  # dense rows
    stored = max(part.density for part in (A, B) if isinstance(part, DeviceRows))
    if a + b <= room and stored > SPARSE:
        return _dense(A, dtype) @ _dense(B, dtype).T
    if not isinstance(A, DeviceRows):
        return inner_products(B, A, dtype=np.dtype(str(dtype).removeprefix("torch."))).T
    left = A.cast(dtype).tensor
    columns = _dense(B, dtype).T if b <= room else None
    if columns is not None:
        return left @ columns
    block = torch.empty((a, b), dtype=dtype, device=left.device)
    host = B.tensor.cpu() if isinstance(B, DeviceRows) else None
    for start in range(0, b, room):
        part = slice(start, min(start + room, b))
        block[:, part] = left @ _some(B, host, part, dtype).T
    return block


def _some(B: Any, host: Any, part: slice, dtype: Any) -> Any:
    """Return some rows, dense; CSR rows are cut on the host, where they can be."""
    if host is None:
        return _cast(B[part], dtype)
    rows = sparse.csr_matrix(
        tuple(x.numpy() for x in (host.values(), host.col_indices(), host.crow_indices())), host.shape
    )
    return _dense(DeviceRows.of(rows[part], B.tensor.device), dtype)


def _cast(rows: Any, dtype: Any) -> Any:
    return rows.to(dtype)


def _dense(rows: Any, dtype: Any) -> Any:
    return rows.cast(dtype).dense() if isinstance(rows, DeviceRows) else _cast(rows, dtype)


def counts(A: Any, B: Any, packed: bool, dtype: Any, finish: Callable[[Any, slice, slice, Any, Any], None]) -> None:
    """Hand |A∩B| over in tiles of rows and columns, exact, with |A| and |B|.

    A product of zeros and ones is exact in TF32 with sums in float32, below 2²⁴ columns: the matrix units of a GPU
    count whatever the precision is.

    Parameters
    ----------
    A, B : 0/1 rows, dense or CSR, or bytes of eight of them, on a device
    packed : bool
    dtype :
        of NumPy, float32 or float64, in which counts are exact.
    finish : function of (counts, rows, columns, sizes of A (a,), sizes of B (b,))
    """
    import torch

    kind = getattr(torch, np.dtype(dtype).name)
    width = A.shape[1] * (8 if packed else 1)
    step = max(1, min(TALL, computing_rows(8 * width, TALL)))
    with tensor_cores(exact=True):
        for j in range(0, B.shape[0], step):
            columns = slice(j, min(j + step, B.shape[0]))
            right = _bits(B, columns, packed, kind)
            for i in range(0, A.shape[0], step):
                rows = slice(i, min(i + step, A.shape[0]))
                left = right if A is B and rows == columns else _bits(A, rows, packed, kind)
                finish(left @ right.T, rows, columns, left.sum(1), right.sum(1))


def _bits(rows: Any, part: slice, packed: bool, dtype: Any) -> Any:
    """Return some sets as dense 0/1 rows."""
    import torch

    if isinstance(rows, DeviceRows):
        return _dense(rows, dtype)[part]
    if not packed:
        return _cast(rows[part], dtype)
    places = torch.arange(7, -1, -1, dtype=torch.uint8, device=rows.device)  # the first bit is the highest
    return ((rows[part, :, None] >> places) & 1).reshape(part.stop - part.start, -1).to(dtype)
