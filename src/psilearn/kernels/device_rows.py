"""Rows on a torch device: dense rows, CSR rows and packed bits, and their inner products."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, iter_slices, to_device
from psilearn._linalg import Offsets, has_half_units, multiply_halves, row_inner_products, row_products

_WARNING_LOCK = Lock()
SPARSE_DENSITY = 0.005  # share of nonzeros below which a product of CSR rows stays sparse
MAX_DENSE_BYTES = 2**30  # of CSR rows that are kept on a GPU as dense ones
MIN_HALVED_ROWS = 4096  # of which only pairs below the diagonal are multiplied
MAX_UNPACKED_ROWS = 16384  # rows of bits that are unpacked at a time


@cache
def _silence_beta_warning() -> None:
    """Let torch give its only warning, that CSR tensors are in beta, where nobody sees it.

    Filters of warnings are shared by all threads, so that they are changed once and not for every tensor.
    """
    import torch

    with _WARNING_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


@dataclass(frozen=True)
class DeviceRows:
    """CSR rows on a device during one call of a kernel; torch's CSR tensors cannot be sliced by rows."""

    tensor: Any  # torch tensor with the layout sparse_csr
    host: Any  # the same rows as a SciPy matrix

    @classmethod
    def of(cls, rows: Any, device: Any) -> DeviceRows:
        """Move CSR rows to a device; duplicate entries are summed first."""
        import torch

        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        # converted on the device: the host would convert before the copy
        indptr, indices = (to_device(part, device).to(torch.int64) for part in (rows.indptr, rows.indices))
        _silence_beta_warning()
        tensor = torch.sparse_csr_tensor(
            indptr, indices, to_device(rows.data, device), rows.shape, check_invariants=False
        )
        return cls(tensor, rows)

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
        """Return the rows as a dense tensor of a torch dtype."""
        return self.tensor.to(dtype).to_dense()

    def squared_lengths(self) -> Any:
        """Return |a|² of each row in float64; the order of the terms is always the same."""
        import torch

        values = self.tensor.values().to(torch.float64)
        return torch.segment_reduce(values * values, "sum", offsets=self.tensor.crow_indices(), initial=0.0)

    def times(self, columns: Any) -> Any:
        """Return the product with a dense (d, b) block; on the CPU by SciPy, which supports it on every platform."""
        if self.tensor.device.type == "cpu":
            return to_device(self.host.astype(str(columns.dtype).removeprefix("torch.")) @ columns.numpy(), "cpu")
        return self.tensor.to(columns.dtype) @ columns


def rows_on_device(rows: Any, device: Any) -> Any:
    """Return rows, dense or CSR, on a device."""
    return DeviceRows.of(rows, device) if sparse.issparse(rows) else to_device(rows, device)


def dense_on_gpu(rows: Any, compute: Compute) -> Any:
    """Return CSR rows as a dense tensor if products with them are faster and they are not large; else unchanged."""
    import torch

    n, d = rows.shape
    dtype = torch.float32 if rows.dtype.itemsize == 1 or rows.dtype == np.float32 else torch.float64
    if rows.nnz <= SPARSE_DENSITY * n * d or n * d * dtype.itemsize > MAX_DENSE_BYTES:
        return rows
    return DeviceRows.of(rows, compute.device).dense(dtype)


def squared_lengths(rows: Any) -> Any:
    """Return |a|² of dense or CSR rows on a device, in float64."""
    return rows.squared_lengths() if isinstance(rows, DeviceRows) else row_products(rows, rows)


def inner_products(A: Any, B: Any, compute: Compute, offsets: Offsets | None = None) -> Any:
    """Return A Bᵀ, or A Bᵀ + offsets, for dense or CSR rows on a device, dense, in the requested precision.

    With offsets, large float32 products of dense rows may have the error of split precision.

    CSR rows are converted to dense ones, which pays off from half a percent of nonzeros on. Below that, and if memory
    does not suffice for dense rows, CSR rows are multiplied with dense panels of the other side. Columns in which one
    of them has no entries are dropped before if they are the majority.
    """
    import torch

    dtype = getattr(torch, compute.dtype.name)
    A, B = _drop_columns(A, B)
    if not isinstance(A, DeviceRows) and not isinstance(B, DeviceRows):
        return _dense_products(A, B, compute, offsets)
    (a, d), b = A.shape, B.shape[0]
    max_dense_rows = compute.block_rows((4 if offsets else 1) * d * compute.itemsize, a + b)  # split rows are copied
    density = max(rows.density for rows in (A, B) if isinstance(rows, DeviceRows))
    if a + b <= max_dense_rows and density > SPARSE_DENSITY:
        return _dense_products(A, B, compute, offsets)
    if offsets is not None:
        return offsets.add_to(inner_products(A, B, compute))
    if not isinstance(A, DeviceRows):
        return inner_products(B, A, compute).T
    if b <= max_dense_rows:
        return A.times(_dense(B, dtype).T)
    block = torch.empty((a, b), dtype=dtype, device=A.tensor.device)
    for part in iter_slices(b, max_dense_rows):
        panel = DeviceRows.of(B.host[part], A.tensor.device) if isinstance(B, DeviceRows) else B[part]
        block[:, part] = A.times(_dense(panel, dtype).T)
    return block


def _drop_columns(A: Any, B: Any) -> tuple[Any, Any]:
    """Return the rows without the columns that contribute nothing, if both are CSR and these are the majority."""
    if not isinstance(A, DeviceRows) or not isinstance(B, DeviceRows):
        return A, B
    shared = (column_counts(A.host) > 0) & (column_counts(B.host) > 0)
    if 2 * np.count_nonzero(shared) >= len(shared):
        return A, B
    left = DeviceRows.of(keep_columns(A.host, shared), A.tensor.device)
    return left, left if B is A else DeviceRows.of(keep_columns(B.host, shared), B.tensor.device)


def _dense_products(A: Any, B: Any, compute: Compute, offsets: Offsets | None) -> Any:
    import torch

    left, right = (_dense(rows, getattr(torch, compute.dtype.name)) for rows in (A, B))
    if offsets is not None:
        return row_inner_products(left, right, offsets, compute)
    is_halved = A is B and compute.on_gpu and len(left) >= MIN_HALVED_ROWS
    return _symmetric_products(left) if is_halved else left @ right.T


def _symmetric_products(rows: Any) -> Any:
    """Return rows·rowsᵀ in four panels of columns, five eighths of the flops; what is above the diagonal is copied."""
    n = len(rows)
    products, step = rows.new_empty((n, n)), -(-n // 4)
    for columns in iter_slices(n, step):
        products[columns.start :, columns] = rows[columns.start :] @ rows[columns].T
        products[columns, columns.stop :] = products[columns.stop :, columns].T
    return products


def _dense(rows: Any, dtype: Any) -> Any:
    return rows.dense(dtype) if isinstance(rows, DeviceRows) else rows.to(dtype)


def to_gaussians(products: Any, column: Any, row: Any, gamma: float, symmetric: bool) -> Any:
    """Turn products into exp(min(2γ·products + column + row, 0)) in place, in as few passes as possible.

    Column and row are added in one step in a symmetric block, so that rounding keeps it symmetric, and if each is a
    single number.
    """
    import torch

    in_one_step = symmetric or len(column) == len(row) == 1
    torch.add(column + row if in_one_step else column, products, alpha=2 * gamma, out=products)
    if not in_one_step:
        products += row
    return products.clamp_(max=0).exp_()


def intersection_sizes(
    A: Any, B: Any, packed: bool, compute: Compute, finish: Callable[[Any, slice, slice, Any, Any], None]
) -> None:
    """Pass |A∩B| to ``finish`` in exact tiles of rows and columns, with |A| and |B|; for CSR rows in one tile.

    A product of zeros and ones is exact in half precision and in TF32 with float32 sums, below 2²⁴ columns, so that the
    matrix units of a GPU can be used whatever the precision is.

    Parameters
    ----------
    A, B : 0/1 rows, dense or CSR, or bytes of eight of them, on a device
    packed : bool
    compute : Compute
        With a dtype in which the counts are exact.
    finish : function of (counts, rows, columns, sizes of A (a,), sizes of B (b,))
    """
    import torch

    with compute.tensor_cores(exact=True):
        if isinstance(A, DeviceRows) or isinstance(B, DeviceRows):
            rows, columns = slice(0, A.shape[0]), slice(0, B.shape[0])
            finish(inner_products(A, B, compute), rows, columns, squared_lengths(A), squared_lengths(B))
            return
        sums = getattr(torch, compute.dtype.name)
        uses_halves = compute.dtype == np.float32 and has_half_units(A.device)
        dtype, multiply = (torch.float16, multiply_halves) if uses_halves else (sums, torch.matmul)
        step = compute.block_rows(8 * A.shape[1] * (8 if packed else 1), MAX_UNPACKED_ROWS)
        for columns in iter_slices(B.shape[0], step):
            right = _bits(B, columns, packed, dtype)
            for rows in iter_slices(A.shape[0], step):
                left = right if A is B and rows == columns else _bits(A, rows, packed, dtype)
                sizes = (bits.sum(1, dtype=sums) for bits in (left, right))
                finish(multiply(left, right.T), rows, columns, *sizes)


def _bits(rows: Any, part: slice, packed: bool, dtype: Any) -> Any:
    """Return a slice of the sets as dense 0/1 rows."""
    import torch

    if not packed:
        return rows[part].to(dtype)
    places = torch.arange(7, -1, -1, dtype=torch.uint8, device=rows.device)  # the first bit is the highest
    return ((rows[part, :, None] >> places) & 1).reshape(part.stop - part.start, -1).to(dtype)


def column_counts(rows: Any) -> Any:
    """Return the number of entries in each column of CSR rows."""
    return np.bincount(rows.indices, minlength=rows.shape[1])


def keep_columns(rows: Any, kept: Any) -> Any:
    """Return CSR rows without the columns where ``kept`` is False."""
    entries = kept[rows.indices]
    stops = np.concatenate([[0], np.cumsum(entries)])[rows.indptr]
    columns = (np.cumsum(kept) - 1)[rows.indices[entries]]
    return type(rows)((rows.data[entries], columns, stops), shape=(rows.shape[0], int(np.count_nonzero(kept))))
