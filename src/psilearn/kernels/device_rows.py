"""Rows on a device of torch: CSR rows, packed bits, and the inner products of all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import computing_rows, put, tensor_cores
from psilearn._linalg import row_products

SPARSE = 0.005  # share of nonzeros below which a product of CSR rows is not made dense
TALL = 16384  # rows of bits that are unpacked together, at the most


@dataclass(frozen=True)
class DeviceRows:
    """CSR rows on a device, for one call of a kernel; torch's own CSR tensors have no rows to take."""

    tensor: Any  # of torch, in the layout sparse_csr
    host: Any  # the same rows in SciPy

    @classmethod
    def of(cls, rows: Any, device: Any) -> DeviceRows:
        """Move CSR rows; entries that stand in one place are added up before."""
        import torch

        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        indptr, indices = (put(part, device, np.int64) for part in (rows.indptr, rows.indices))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that such tensors are young
            made = torch.sparse_csr_tensor(indptr, indices, put(rows.data, device), rows.shape, check_invariants=False)
        return cls(made, rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""
        return tuple(self.tensor.shape)

    @property
    def density(self) -> float:
        """The share of entries that are stored."""
        n, d = self.shape
        return float(self.tensor.values().numel() / max(1, n * d))

    def dense(self, dtype: Any) -> Any:
        """Return the rows with their zeros, in a dtype of torch."""
        return self.tensor.to(dtype).to_dense()

    def squared_lengths(self) -> Any:
        """Return |a|² of each row in float64, summed on the host, where the order of the terms is always the same."""
        squares = self.host.astype(np.float64)
        squares.data **= 2
        return put(np.asarray(squares.sum(axis=1)).ravel(), self.tensor.device)

    def times(self, columns: Any) -> Any:
        """Return the product with a dense (d, b) block; on the CPU by SciPy, which has it on every machine."""
        if self.tensor.device.type == "cpu":
            return put(self.host.astype(str(columns.dtype).removeprefix("torch.")) @ columns.numpy(), "cpu")
        return self.tensor.to(columns.dtype) @ columns


def on_device(rows: Any, device: Any) -> Any:
    """Return rows, dense or CSR, on a device."""
    return DeviceRows.of(rows, device) if sparse.issparse(rows) else put(rows, device)


def squared_lengths(rows: Any) -> Any:
    """Return |a|² of dense or CSR rows on a device, in float64."""
    return rows.squared_lengths() if isinstance(rows, DeviceRows) else row_products(rows, rows)


def inner_products(A: Any, B: Any, dtype: Any) -> Any:
    """Return A Bᵀ for dense or CSR rows on a device, dense, in this dtype of NumPy.

    CSR rows are made dense, which the matrix units repay from half a percent of nonzeros on; below that, and where
    there is no room for their zeros, CSR rows are multiplied with dense panels of the other side.
    """
    import torch

    kind = getattr(torch, np.dtype(dtype).name)
    if not isinstance(A, DeviceRows) and not isinstance(B, DeviceRows):
        return A.to(kind) @ B.to(kind).T
    (a, d), b = A.shape, B.shape[0]
    room = computing_rows(d * np.dtype(dtype).itemsize, a + b)  # for dense rows
    stored = max(part.density for part in (A, B) if isinstance(part, DeviceRows))
    if a + b <= room and stored > SPARSE:
        return _dense(A, kind) @ _dense(B, kind).T
    if not isinstance(A, DeviceRows):
        return inner_products(B, A, dtype).T
    if b <= room:
        return A.times(_dense(B, kind).T)
    block = torch.empty((a, b), dtype=kind, device=A.tensor.device)
    for part in (slice(start, min(start + room, b)) for start in range(0, b, room)):
        panel = DeviceRows.of(B.host[part], A.tensor.device) if isinstance(B, DeviceRows) else B[part]
        block[:, part] = A.times(_dense(panel, kind).T)
    return block


def _dense(rows: Any, dtype: Any) -> Any:
    return rows.dense(dtype) if isinstance(rows, DeviceRows) else rows.to(dtype)


def counts(A: Any, B: Any, packed: bool, dtype: Any, finish: Callable[[Any, slice, slice, Any, Any], None]) -> None:
    """Hand |A∩B| over in tiles of rows and columns, exact, with |A| and |B|; of CSR rows in one.

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

    with tensor_cores(exact=True):
        if isinstance(A, DeviceRows) or isinstance(B, DeviceRows):
            rows, columns = slice(0, A.shape[0]), slice(0, B.shape[0])
            finish(inner_products(A, B, dtype), rows, columns, squared_lengths(A), squared_lengths(B))
            return
        kind = getattr(torch, np.dtype(dtype).name)
        step = computing_rows(8 * A.shape[1] * (8 if packed else 1), TALL)
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

    if not packed:
        return rows[part].to(dtype)
    places = torch.arange(7, -1, -1, dtype=torch.uint8, device=rows.device)  # the first bit is the highest
    return ((rows[part, :, None] >> places) & 1).reshape(part.stop - part.start, -1).to(dtype)
