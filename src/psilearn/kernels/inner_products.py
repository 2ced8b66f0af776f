"""Inner products A Bᵀ of dense or CSR rows, tile by tile, and passes over a block that stay in the cache.

A tile is passed to ``finish(tile, i, j)``, which may overwrite it and writes its result to rows i and columns j: only
the finished block is ever stored as a whole. Tiles may come from several threads, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, block_rows, iter_blocks, to_device, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils import worker_processes
from psilearn._utils.worker_processes import each_thread
from psilearn.kernels import device_rows
from psilearn.kernels.device_rows import column_counts, keep_columns

Finish = Callable[[Array, slice, slice], None]
Panel = Callable[[slice], Array]

TILE = 1024  # rows and columns of a tile: a product of tiles is as fast as a large one
STRIP_BYTES = 2**19  # of a block: a strip, a temporary of its size and its operands stay in a core's second-level cache
MIN_STRIPS_FOR_THREADS = 32


def strips(n_rows: int, bytes_per_row: int) -> list[slice]:
    """Split rows into slices that stay in the cache."""
    return _slices(n_rows, max(1, STRIP_BYTES // max(1, bytes_per_row)))


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def in_strips(block: Array, change: Callable[[Array, slice], None]) -> Array:
    """Call ``change(strip, rows)`` on strips of rows that stay in the cache, and return the changed block.

    A tensor is one strip: a GPU gains nothing from small ones.
    """
    if not isinstance(block, np.ndarray) or block.nbytes <= STRIP_BYTES:
        change(block, slice(0, len(block)))
        return block
    parts = strips(len(block), block.strides[0])
    each_thread(lambda part: change(block[part], part), parts, len(parts) > MIN_STRIPS_FOR_THREADS)
    return block


def cast(rows: Any, dtype: Any) -> Any:
    """Return rows of this dtype; CSR rows share their indices with those given."""
    if sparse.issparse(rows) and rows.dtype != dtype:
        return type(rows)((rows.data.astype(dtype), rows.indices, rows.indptr), shape=rows.shape)
    return rows.astype(dtype, copy=False)


def dense(rows: Any, part: slice, dtype: Any) -> Array:
    """Return some rows as a dense array of this dtype."""
    panel = rows[part]
    return (panel.toarray() if sparse.issparse(panel) else panel).astype(dtype, copy=False)


def inner_products(A: Any, B: Any, compute: Compute) -> Array:
    """Return A Bᵀ as a dense (len(A), len(B)) block of the requested precision, for dense or CSR rows."""
    if is_on_device(A, B):
        return device_rows.inner_products(A, B, compute)
    dtype = compute.dtype
    if not sparse.issparse(A) and not sparse.issparse(B):
        rows = cast(A, dtype)
        return np.asarray(rows @ (rows if B is A else cast(B, dtype)).T)
    block = np.empty((A.shape[0], B.shape[0]), dtype)

    def store(tile: Array, i: slice, j: slice) -> None:
        block[i, j] = tile

    products(A, B, dtype, store)
    return block


def products(A: Any, B: Any, dtype: Any, finish: Finish) -> None:
    """Compute A Bᵀ in tiles, by the route with the lowest estimated cost.

    Costs in nanoseconds on one core in float32, measured on products of 2048 × 8192 rows with 0.1 to 10 % nonzeros;
    twice that in float64. With f = Σₖ nₖ(A) nₖ(B) products of nonzeros (nₖ: nonzeros of column k):

    - dense tiles: 0.016 abd;
    - CSR rows times dense panels: 0.25 nnz(A) b, 2bd to lay out the panels and 3ab to store the result;
    - CSR times CSR: 40 for each nonzero entry of the result, at most min(f, ab), and 5f. One thread.

    If both are CSR, d counts the columns in which both have entries, and the others are dropped before.
    """
    (a, d), b = A.shape, B.shape[0]
    costs: dict[Any, float] = {}
    shared = None
    if sparse.issparse(A) and sparse.issparse(B):
        n_A, n_B = column_counts(A), column_counts(B)
        f = float(n_A @ n_B)
        costs[_by_sparse] = worker_processes.n_threads() * (40 * min(f, a * b) + 5 * f) * 4 / np.dtype(dtype).itemsize
        shared = (n_A > 0) & (n_B > 0)
        d = int(np.count_nonzero(shared))
    costs[_by_tiles] = 0.016 * a * b * d
    if sparse.issparse(A):
        costs[_by_panels] = 0.25 * A.nnz * b + 2 * b * d + 3 * a * b
    if sparse.issparse(B):
        costs[_by_panels_of_A] = 0.25 * B.nnz * a + 2 * a * d + 3 * a * b
    route = min(costs, key=lambda route: costs[route])
    if shared is not None and route is not _by_sparse and 2 * d < len(shared):
        A, B = keep_columns(A, shared), keep_columns(B, shared)
    route(A, B, dtype, finish)


def gemm_tiles(left: Panel, right: Panel, shape: tuple[int, int], width: int, finish: Finish) -> None:
    """Compute left(i) right(j)ᵀ in tiles, where ``left`` and ``right`` return dense panels (rows, width)."""
    most = block_rows(8 * (2 * width + TILE), max(shape))
    # Few rows take more columns, and few columns more rows: BLAS threads synchronize after each product.
    long = max(TILE, min(TILE**2 // max(1, min(shape)), 2**23 // max(1, width)))
    tall, wide = (min(most, TILE if size == min(shape) else long) for size in shape)
    for j in _slices(shape[1], wide):
        columns = right(j).T
        for i in _slices(shape[0], tall):
            finish(left(i) @ columns, i, j)


def _by_tiles(A: Any, B: Any, dtype: Any, finish: Finish) -> None:
    """Dense tiles of both sides, with the threads of BLAS."""
    shape, width = (A.shape[0], B.shape[0]), A.shape[1]
    gemm_tiles(lambda i: dense(A, i, dtype), lambda j: dense(B, j, dtype), shape, width, finish)


def _by_panels(A: Any, B: Any, dtype: Any, finish: Finish) -> None:
    """CSR rows of A times dense panels of Bᵀ."""
    rows, everything = cast(A, dtype), slice(0, A.shape[0])
    bytes_per_column = 2 * np.dtype(dtype).itemsize * sum(A.shape)  # a panel twice while it is laid out, and its tile
    width = min(TILE, block_rows(worker_processes.n_threads() * bytes_per_column, B.shape[0]))

    def multiply(j: slice) -> None:
        finish(rows @ _dense_transpose(B[j], dtype), everything, j)

    each_thread(multiply, _slices(B.shape[0], width))


def _dense_transpose(rows: Any, dtype: Any) -> Array:
    """Return the transpose of rows as a dense array in C order."""
    if sparse.issparse(rows):
        return np.asarray(cast(rows, dtype).T.toarray(order="C"))
    return np.ascontiguousarray(rows.T, dtype=dtype)


def _by_panels_of_A(A: Any, B: Any, dtype: Any, finish: Finish) -> None:
    """CSR rows of B times dense panels of Aᵀ, transposed."""
    _by_panels(B, A, dtype, lambda tile, j, i: finish(tile.T, i, j))


def _by_sparse(A: Any, B: Any, dtype: Any, finish: Finish) -> None:
    """CSR times CSR, converted to dense: for results with few entries."""
    rows, columns = cast(A, dtype), cast(B, dtype).T.tocsr()
    for i in iter_blocks(A.shape[0], 32 * B.shape[0]):  # per entry: value, column, sorting space, dense value
        finish((rows[i] @ columns).toarray(), i, slice(0, B.shape[0]))


def combine_rows(rows: Any, weights: Array) -> Array:
    """Return weights·rows as a dense array in float64, for dense or CSR rows."""
    if sparse.issparse(rows):
        return np.asarray((rows.T.astype(np.float64) @ weights.T).T)
    return weights @ rows.astype(np.float64)


def paired_inner_products(A: Any, B: Any) -> Any:
    """Return ⟨aᵢ, bᵢ⟩ for each i in float64, for dense or CSR rows; a tensor for rows on a device."""
    if is_on_device(A, B):
        return device_rows.squared_lengths(A) if A is B else row_products(A, B)
    if A is B and sparse.issparse(A) and A.has_canonical_format:
        squares = type(A)((A.data.astype(np.float64) ** 2, A.indices, A.indptr), shape=A.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    values = np.empty(A.shape[0])
    for part in strips(A.shape[0], 8 * A.shape[1]):
        left, right = cast(A[part], np.float64), cast(B[part], np.float64)
        if sparse.issparse(right) and not sparse.issparse(left):
            left, right = right, left
        if sparse.issparse(left):
            values[part] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        else:
            np.einsum("ij,ij->i", left, right, out=values[part])
    return values


def to_squared_distances(products: Array, left: Array, right: Array) -> Array:
    """Turn ⟨a, b⟩ into max(|a|² + |b|² − 2⟨a, b⟩, 0) in place; ``left`` and ``right`` are |a|² and |b|²."""
    column, row = match_block(left, products)[:, None], match_block(right, products)

    def change(strip: Array, part: slice) -> None:
        strip *= -2
        _add_to_rows_and_columns(strip, column[part], row, left is right)
        clip_below_zero(strip)

    return in_strips(products, change)


def to_gaussians(products: Array, left: Array, right: Array, gamma: float) -> Array:
    """Turn ⟨a, b⟩ into exp(−γ|a − b|²) = exp(min(2γ⟨a, b⟩ − γ|a|² − γ|b|², 0)) in place."""
    column, row = match_block(-gamma * left, products)[:, None], match_block(-gamma * right, products)
    if not isinstance(products, np.ndarray):
        if _is_constant(left) and _is_constant(right):
            column, row = column[:1], row[:1]
        return device_rows.to_gaussians(products, column, row, gamma, left is right)

    def change(strip: Array, part: slice) -> None:
        strip *= 2 * gamma
        _add_to_rows_and_columns(strip, column[part], row, left is right)
        np.minimum(strip, 0, out=strip)
        np.exp(strip, out=strip)

    return in_strips(products, change)


def _is_constant(numbers: Any) -> bool:
    """Return whether an array has only one value, as the lengths of a normalized kernel do."""
    return isinstance(numbers, np.ndarray) and len(numbers) > 0 and bool(np.ptp(numbers) == 0)


def _add_to_rows_and_columns(strip: Array, column: Array, row: Array, symmetric: bool) -> None:
    """Add numbers to the rows and to the columns of a strip, in place.

    In a symmetric block both are added in one step, so that rounding keeps it symmetric; otherwise without a temporary.
    """
    if symmetric:
        strip += column + row
    else:
        strip += column
        strip += row


def match_block(numbers: Any, block: Any) -> Any:
    """Return numbers in the dtype and on the device of a block."""
    if not isinstance(block, np.ndarray):
        return to_device(numbers, block.device).to(block.dtype)
    return (numbers if isinstance(numbers, np.ndarray) else to_numpy(numbers)).astype(block.dtype)


def clip_below_zero(strip: Any) -> None:
    """Replace negative numbers by zero, in place."""
    if isinstance(strip, np.ndarray):
        np.maximum(strip, 0, out=strip)
    else:
        strip.clamp_(min=0)


def fill_diagonal(block: Any, value: float) -> None:
    """Set the diagonal of a block, in place."""
    if isinstance(block, np.ndarray):
        np.fill_diagonal(block, value)
    else:
        block.fill_diagonal_(value)


def is_on_device(*rows: Any) -> bool:
    """Return whether any of the rows are tensors or CSR rows on a device."""
    return any(not isinstance(part, np.ndarray) and not sparse.issparse(part) for part in rows)
