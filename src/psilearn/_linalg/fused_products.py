"""Products of split matrices in one pass on a Hopper GPU, with what follows them: kernels of Triton.

Plain torch computes HL' + LH' + HH' by one product for each term and each chunk of the sums, and reads and writes the
result in float32 each time. Here a tile of the result stays in registers: each part of the factors is loaded once for
all three terms, the sums of a chunk are added to those before it in float32, and the tile is scaled, subtracted,
exponentiated, split or added to a float64 matrix before it is stored.

The kernel of this module is the reference: Triton's interpreter runs it without a GPU. On a GPU the faster one of
``hopper_products`` takes its place if the version of Triton compiles it (3.6 or later).

Triton comes with torch for CUDA. It compiles a kernel when it is used for the first time, about half a second for
each variant, and keeps it on disk; without Triton, or on another GPU, ``split_products`` uses torch alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

TILE = 128  # rows and columns of the result that a block of threads computes
TERMS = 64  # terms that are loaded at a time: 128 bytes of a row
CHUNK = 512  # terms whose sums, of three products, the matrix units add up without rounding
GROUP = 8  # rows of tiles that are computed together, so that their factors stay in the cache
WARPS, STAGES = 8, 3
PROBED_TERMS = 1024
SPLIT_TILE = 64  # rows and columns of a matrix that a block of threads splits
_LAUNCHES = Lock()  # the first launch of a variant compiles it
_PROBES = Lock()
_FASTEST: dict[int, ProductKernel] = {}  # by the number of a GPU


@triton.jit
def _load_right(right, term, column, IN_ROWS: tl.constexpr):
    """Return a block of the right factor, whose columns are given as rows with ``IN_ROWS``."""
    return right.load([column, term]).T if IN_ROWS else right.load([term, column])


@triton.jit(do_not_specialize=["n_rows", "n_columns", "n_terms"])
def _product_kernel(
    left_high,
    left_low,
    right_high,
    right_low,
    out,
    out_low,
    source,
    factors,
    n_rows,
    n_columns,
    n_terms,
    out_stride,
    source_stride,
    RIGHT_IN_ROWS: tl.constexpr,
    LEFT_IS_LOWER: tl.constexpr,
    LOWER_ONLY: tl.constexpr,
    EPILOGUE: tl.constexpr,
    SIZE: tl.constexpr,
    STEP: tl.constexpr,
    SPAN: tl.constexpr,
    BAND: tl.constexpr,
):
    """Compute one tile of the product and store it as the epilogue says."""
    tiles_down, tiles_across = tl.cdiv(n_rows, SIZE), tl.cdiv(n_columns, SIZE)
    number = tl.program_id(0)
    band = number // (BAND * tiles_across)
    height = min(tiles_down - band * BAND, BAND)
    inside = number % (BAND * tiles_across)
    row = (band * BAND + inside % height) * SIZE
    column = (inside // height) * SIZE
    if LOWER_ONLY and column > row:
        return
    if LEFT_IS_LOWER:  # what follows the diagonal is zero
        n_terms = min(n_terms, row + SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, n_terms, SPAN):
        chunk = tl.zeros((SIZE, SIZE), tl.float32)
        for term in range(start, min(start + SPAN, n_terms), STEP):
            left_h, left_l = left_high.load([row, term]), left_low.load([row, term])
            right_h = _load_right(right_high, term, column, RIGHT_IN_ROWS)
            right_l = _load_right(right_low, term, column, RIGHT_IN_ROWS)
            chunk = tl.dot(left_h, right_l, chunk)
            chunk = tl.dot(left_l, right_h, chunk)
            chunk = tl.dot(left_h, right_h, chunk)
        total += chunk
    rows = row + tl.arange(0, SIZE)[:, None]
    columns = column + tl.arange(0, SIZE)[None, :]
    valid = (rows < n_rows) & (columns < n_columns)
    places = rows.to(tl.int64) * out_stride + columns
    factor = tl.load(factors)  # in float64: scales may be far apart
    if EPILOGUE == "add":
        tl.store(out + places, tl.load(out + places, valid) + total.to(tl.float64) * factor, valid)
    elif EPILOGUE == "store":
        tl.store(out + places, (total.to(tl.float64) * factor).to(tl.float32), valid)
    elif EPILOGUE == "gaussian" or EPILOGUE == "symmetric gaussian":
        exponent = (total.to(tl.float64) * factor).to(tl.float32)
        value = tl.exp(tl.where(exponent > 0, 0.0, exponent))  # NaN stays NaN
        if EPILOGUE == "symmetric gaussian":
            valid = valid & (rows >= columns)
            tl.store(out + columns.to(tl.int64) * out_stride + rows, value, valid)
        tl.store(out + places, value, valid)
    else:  # factors are powers of two in the range of float32
        value = total * factor.to(tl.float32)
        if EPILOGUE == "split rest":
            given = tl.load(source + rows.to(tl.int64) * source_stride + columns, valid)
            value = given * tl.load(factors + 1).to(tl.float32) - value
        high = value.to(tl.float16)
        tl.store(out + places, high, valid)
        tl.store(out_low + places, (value - high.to(tl.float32)).to(tl.float16), valid)


@triton.jit(do_not_specialize=["n_rows", "n_columns"])
def _split_kernel(
    source, high, low, factor, n_rows, n_columns, row_stride, column_stride, out_stride, SIZE: tl.constexpr
):  # fmt: skip
    """Store a part of a matrix, times a factor, as two half-precision matrices."""
    rows = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    columns = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    valid = (rows < n_rows) & (columns < n_columns)
    given = tl.load(source + rows.to(tl.int64) * row_stride + columns.to(tl.int64) * column_stride, valid)
    value = given * tl.load(factor).to(given.dtype)
    places = rows.to(tl.int64) * out_stride + columns
    rounded = value.to(tl.float16)
    tl.store(high + places, rounded, valid)
    tl.store(low + places, (value - rounded.to(given.dtype)).to(tl.float16), valid)


class ProductKernel(NamedTuple):
    """A kernel with the parameters of :func:`_product_kernel`, and how it is launched."""

    function: Any
    describe: Callable[[Any, tuple[int, int]], Any]  # a tensor with contiguous rows, as the kernel loads blocks of it
    chunk: int
    options: dict[str, int]
    constants: tuple[int, ...] = ()  # further parameters


@dataclass(frozen=True)
class _Target:
    """Where a product is stored and how: one tensor, or two halves with the same strides."""

    epilogue: str
    out: Any
    low: Any = None
    source: Any = None


def split(A: Any, factor: Any, out: Any) -> None:
    """Set a split matrix with contiguous rows to a tensor times a factor, which contains the scale: in one pass."""
    import torch

    (a, b), device = A.shape, A.device
    grid = triton.cdiv(a, SPLIT_TILE), triton.cdiv(b, SPLIT_TILE)
    with _LAUNCHES, torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        _split_kernel[grid](
            A, out.high, out.low, _as_double(factor, device), a, b, *A.stride(), out.high.stride(0), SPLIT_TILE
        )


def product(A: Any, B: Any, kernel: ProductKernel | None = None) -> Any:
    """Return A B in float32, (a, c), for split matrices (a, k) and (k, c); by default with the fastest kernel."""
    return _store(A, B, "store", 1.0, kernel=kernel)


def gaussians(A: Any, B: Any, width: float) -> Any:
    """Return exp(min(width·AB, 0)) in float32."""
    return _store(A, B, "gaussian", width)


def symmetric_gaussians(A: Any, B: Any, width: float) -> Any:
    """Return exp(min(width·AB, 0)) in float32 for a product that is symmetric up to rounding; the result is symmetric.

    Half of the flops, with sums in short chunks: the root mean square of the errors is at most four times that of
    products in float32, and less than twice where inner products have both signs.
    """
    return _store(A, B, "symmetric gaussian", width, lower_only=True, chunk=TERMS)


def _store(A: Any, B: Any, epilogue: str, factor: float, **options: Any) -> Any:
    import torch

    out = torch.empty((A.shape[0], B.shape[1]), dtype=torch.float32, device=A.high.device)
    _launch(A, B, _Target(epilogue, out), [factor / (A.scale * B.scale)], **options)
    return out


def add_product(A: Any, B: Any, factor: float, total: Any, lower: bool = False) -> None:
    """Add AB·factor to a float64 tensor; with ``lower`` only to the tiles that the lower triangle touches."""
    _launch(A, B, _Target("add", total), [factor / (A.scale * B.scale)], lower_only=lower)


def split_product(L: Any, B: Any, out: Any) -> None:
    """Set a split matrix to L B for a lower triangle L."""
    target = _Target("split", out.high, out.low)
    _launch(L, B, target, [out.scale / (L.scale * B.scale)], left_is_lower=True)


def split_rest(source: Any, A: Any, B: Any, out: Any) -> None:
    """Set a split matrix to source − AB for a float32 tensor with contiguous rows."""
    _launch(A, B, _Target("split rest", out.high, out.low, source), [out.scale / (A.scale * B.scale), out.scale])


def _launch(
    A: Any,
    B: Any,
    target: _Target,
    factors: list[Any],
    *,
    left_is_lower: bool = False,
    lower_only: bool = False,
    chunk: int | None = None,
    kernel: ProductKernel | None = None,
) -> None:
    import torch

    (a, k), c = A.shape, B.shape[1]
    in_rows = B.high.stride(1) != 1
    right = [part.T if in_rows else part for part in (B.high, B.low)]
    out, source = target.out, target.out if target.source is None else target.source
    numbers = torch.stack([_as_double(factor, out.device) for factor in factors])
    on_gpu = out.device.type == "cuda"
    kernel = kernel or (fastest_kernel(out.device.index or 0) if on_gpu else REFERENCE)
    arguments = [
        *[kernel.describe(part, (TILE, TERMS)) for part in (A.high, A.low)],
        *[kernel.describe(part, (TILE, TERMS) if in_rows else (TERMS, TILE)) for part in right],
        *[out, out if target.low is None else target.low, source, numbers],
        *[a, c, k, out.stride(0), source.stride(0), in_rows, left_is_lower, lower_only, target.epilogue, TILE, TERMS],
    ]
    grid = (triton.cdiv(a, TILE) * triton.cdiv(c, TILE),)
    with _LAUNCHES, torch.cuda.device(out.device) if on_gpu else nullcontext():
        kernel.function[grid](*arguments, chunk or kernel.chunk, GROUP, *kernel.constants, **kernel.options)


def fastest_kernel(index: int) -> ProductKernel:
    """Return the fastest kernel that works on a GPU."""
    with _PROBES:
        if index not in _FASTEST:
            _FASTEST[index] = _find_fastest(index)
        return _FASTEST[index]


def _find_fastest(index: int) -> ProductKernel:
    """Return the kernel for Hopper GPUs if it multiplies ones, more than its buffers hold at a time; else the other."""
    import torch

    from psilearn._linalg.split_products import SplitMatrix

    try:
        kernel: ProductKernel = import_module("psilearn._linalg.hopper_products").KERNEL
        ones = SplitMatrix.of(torch.ones((TILE, PROBED_TERMS), device=f"cuda:{index}"))
        return kernel if bool((product(ones, ones.T, kernel) == PROBED_TERMS).all()) else REFERENCE
    except Exception as error:
        if "out of memory" in str(error):  # of torch or Triton: it may work later
            raise torch.cuda.OutOfMemoryError(str(error)) from error
        return REFERENCE  # a version of Triton without what the kernel uses


def _as_double(factor: Any, device: Any) -> Any:
    """Return a factor as a 0-dimensional float64 tensor, without waiting for the device."""
    import torch

    if isinstance(factor, torch.Tensor):
        return factor.double()
    return torch.full((), factor, dtype=torch.float64, device=device)


def _describe(rows: Any, block: tuple[int, int]) -> Any:
    """Return a descriptor from which blocks of a tensor with contiguous rows are loaded; what is outside is zero."""
    return TensorDescriptor(rows, list(rows.shape), list(rows.stride()), list(block))


REFERENCE = ProductKernel(_product_kernel, _describe, CHUNK, {"num_warps": WARPS, "num_stages": STAGES})
