"""Products of split matrices by groups of warps with different tasks: the kernel of ``fused_products`` for Hopper GPUs.

It is written in Gluon, the part of Triton in which memory and matrix units are programmed explicitly. One warp copies
the parts of the factors into a ring of buffers without a pause. Two groups of four warps multiply, each for one half of
a tile; the three products of a step are started without a wait between them. Terms are added in the order of the other
kernel: with chunks of the same length the results have the same bits. Short chunks cost nearly nothing here.
"""

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from psilearn._linalg.fused_products import ProductKernel

CHUNK = 128  # terms whose sums, of three products, the matrix units add up without rounding
STAGES = 3  # buffers of the ring
WARPS = 4  # of the first group; the launch adds the other groups
SLICES = 4  # of the columns of a tile, which are finished one after the other: they need fewer registers
GROUP_REGISTERS, COPY_REGISTERS = gl.constexpr(240), gl.constexpr(24)  # of a thread that multiplies, and that copies
_copy = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared  # the name in Triton 3.9, and before


@gluon.jit
def _next(stage, phase, STAGES: gl.constexpr):
    """Return the next buffer and the parity of its barriers."""
    stage += 1
    wrap = stage == STAGES
    return gl.where(wrap, 0, stage), gl.where(wrap, phase ^ 1, phase)


@gluon.jit
def _produce(
    inputs, buffers, full, empty, row, column, n_steps,
    IN_ROWS: gl.constexpr, STAGES: gl.constexpr, SIZE: gl.constexpr, STEP: gl.constexpr,
):  # fmt: skip
    """Fill the buffers with the parts of the factors, each as soon as both groups have given it back."""
    left_high, left_low, right_high, right_low = inputs
    stage, phase = 0, 1  # waiting for the phase before the first one returns at once
    for step in range(n_steps):
        term = step * STEP
        place = [column, term] if IN_ROWS else [term, column]
        barrier = full.index(stage)
        mbarrier.wait(empty.index(stage), phase)
        mbarrier.expect(barrier, 4 * 2 * SIZE * STEP)  # bytes
        _copy(left_high, [row, term], barrier, buffers[0].index(stage))
        _copy(right_low, place, barrier, buffers[3].index(stage))
        _copy(left_low, [row, term], barrier, buffers[1].index(stage))
        _copy(right_high, place, barrier, buffers[2].index(stage))
        stage, phase = _next(stage, phase, STAGES)


@gluon.jit
def _multiply(buffers, stage, chunk, is_first, IN_ROWS: gl.constexpr, ROWS: gl.constexpr, OFFSET: gl.constexpr):
    """Start the three products of a step for some rows of the tile; the first ones overwrite the chunk."""
    left_high = buffers[0].index(stage).slice(OFFSET, ROWS, dim=0)
    left_low = buffers[1].index(stage).slice(OFFSET, ROWS, dim=0)
    right_high, right_low = buffers[2].index(stage), buffers[3].index(stage)
    if IN_ROWS:
        right_high, right_low = right_high.permute((1, 0)), right_low.permute((1, 0))
    chunk = warpgroup_mma(left_high, right_low, chunk, use_acc=is_first == 0, is_async=True)
    chunk = warpgroup_mma(left_low, right_high, chunk, is_async=True)
    return warpgroup_mma(left_high, right_high, chunk, is_async=True)


@gluon.jit
def _consume(
    buffers, full, empty, target, row, column, n_steps,
    IN_ROWS: gl.constexpr, ROWS: gl.constexpr, OFFSET: gl.constexpr, SIZE: gl.constexpr,
    STAGES: gl.constexpr, STEPS: gl.constexpr, WARPS: gl.constexpr, EPILOGUE: gl.constexpr, SLICES: gl.constexpr,
):  # fmt: skip
    """Compute ``ROWS`` rows of a tile from ``OFFSET`` on, and store them."""
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, SIZE, 16])
    total = gl.zeros((ROWS, SIZE), gl.float32, LAYOUT)
    chunk = gl.zeros((ROWS, SIZE), gl.float32, LAYOUT)
    stage, phase, before = 0, 0, STAGES - 1
    for start in range(0, n_steps, STEPS):
        for step in range(start, gl.minimum(start + STEPS, n_steps)):
            mbarrier.wait(full.index(stage), phase)
            chunk = _multiply(buffers, stage, chunk, step == start, IN_ROWS, ROWS, OFFSET)
            chunk = warpgroup_mma_wait(3, deps=[chunk])  # the products of the step before are complete
            mbarrier.arrive(empty.index(before), count=1, pred=step > 0)
            before = stage
            stage, phase = _next(stage, phase, STAGES)
        chunk = warpgroup_mma_wait(0, deps=[chunk])
        total += chunk
    _finish(total, target, row + OFFSET, column, EPILOGUE, SLICES)


@gluon.jit
def _finish(tile, target, row, column, EPILOGUE: gl.constexpr, SLICES: gl.constexpr):
    """Store a tile half by half until ``SLICES`` slices are left."""
    if SLICES > 1:
        ROWS: gl.constexpr = tile.shape[0]
        HALF: gl.constexpr = tile.shape[1] // 2
        left, right = tile.reshape([ROWS, 2, HALF]).permute(0, 2, 1).split()
        _finish(left, target, row, column, EPILOGUE, SLICES // 2)
        _finish(right, target, row, column + HALF, EPILOGUE, SLICES // 2)
    else:
        _store(tile, target, row, column, EPILOGUE)


@gluon.jit
def _store(total, target, row, column, EPILOGUE: gl.constexpr):
    """Store a part of the product as the epilogue says."""
    out, out_low, source, factors, n_rows, n_columns, out_stride, source_stride = target
    LAYOUT: gl.constexpr = total.type.layout
    rows = row + gl.arange(0, total.shape[0], gl.SliceLayout(1, LAYOUT))[:, None]
    columns = column + gl.arange(0, total.shape[1], gl.SliceLayout(0, LAYOUT))[None, :]
    valid = (rows < n_rows) & (columns < n_columns)
    places = rows.to(gl.int64) * out_stride + columns
    factor = gl.load(factors)  # in float64: scales may be far apart
    if EPILOGUE == "add":
        gl.store(out + places, gl.load(out + places, valid) + total.to(gl.float64) * factor, valid)
    elif EPILOGUE == "store":
        gl.store(out + places, (total.to(gl.float64) * factor).to(gl.float32), valid)
    elif EPILOGUE == "gaussian" or EPILOGUE == "symmetric gaussian":
        exponent = (total.to(gl.float64) * factor).to(gl.float32)
        value = gl.exp(gl.where(exponent > 0, 0.0, exponent))  # NaN stays NaN
        if EPILOGUE == "symmetric gaussian":
            valid = valid & (rows >= columns)
            gl.store(out + columns.to(gl.int64) * out_stride + rows, value, valid)
        gl.store(out + places, value, valid)
    else:  # factors are powers of two in the range of float32
        value = total * factor.to(gl.float32)
        if EPILOGUE == "split rest":
            given = gl.load(source + rows.to(gl.int64) * source_stride + columns, valid)
            value = given * gl.load(factors + 1).to(gl.float32) - value
        high = value.to(gl.float16)
        gl.store(out + places, high, valid)
        gl.store(out_low + places, (value - high.to(gl.float32)).to(gl.float16), valid)


@gluon.jit(do_not_specialize=["n_rows", "n_columns", "n_terms"])
def _product_kernel(
    left_high, left_low, right_high, right_low, out, out_low, source, factors,
    n_rows, n_columns, n_terms, out_stride, source_stride,
    RIGHT_IN_ROWS: gl.constexpr, LEFT_IS_LOWER: gl.constexpr, LOWER_ONLY: gl.constexpr, EPILOGUE: gl.constexpr,
    SIZE: gl.constexpr, STEP: gl.constexpr, SPAN: gl.constexpr, BAND: gl.constexpr,
    STAGES: gl.constexpr, SLICES: gl.constexpr,
):  # fmt: skip
    """Compute one tile of the product and store it as the epilogue says."""
    tiles_down, tiles_across = gl.cdiv(n_rows, SIZE), gl.cdiv(n_columns, SIZE)
    number = gl.program_id(0)
    band = number // (BAND * tiles_across)
    height = gl.minimum(tiles_down - band * BAND, BAND)
    inside = number % (BAND * tiles_across)
    row = (band * BAND + inside % height) * SIZE
    column = (inside // height) * SIZE
    if LOWER_ONLY and column > row:
        return
    if LEFT_IS_LOWER:  # what follows the diagonal is zero
        n_terms = gl.minimum(n_terms, row + SIZE)
    n_steps = gl.cdiv(n_terms, STEP)
    DOWN: gl.constexpr = SIZE if RIGHT_IN_ROWS else STEP  # of a block of the right factor as it is stored
    ACROSS: gl.constexpr = STEP if RIGHT_IN_ROWS else SIZE
    buffers = (
        gl.allocate_shared_memory(gl.float16, [STAGES, SIZE, STEP], left_high.layout),
        gl.allocate_shared_memory(gl.float16, [STAGES, SIZE, STEP], left_low.layout),
        gl.allocate_shared_memory(gl.float16, [STAGES, DOWN, ACROSS], right_high.layout),
        gl.allocate_shared_memory(gl.float16, [STAGES, DOWN, ACROSS], right_low.layout),
    )
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=2)  # groups
    fence_async_shared()
    inputs = (left_high, left_low, right_high, right_low)
    target = (out, out_low, source, factors, n_rows, n_columns, out_stride, source_stride)
    HALF: gl.constexpr = SIZE // 2
    STEPS: gl.constexpr = SPAN // STEP
    gl.warp_specialize([
        (_consume, (buffers, full, empty, target, row, column, n_steps,
                    RIGHT_IN_ROWS, HALF, 0, SIZE, STAGES, STEPS, 4, EPILOGUE, SLICES)),
        (_consume, (buffers, full, empty, target, row, column, n_steps,
                    RIGHT_IN_ROWS, HALF, HALF, SIZE, STAGES, STEPS, 4, EPILOGUE, SLICES)),
        (_produce, (inputs, buffers, full, empty, row, column, n_steps, RIGHT_IN_ROWS, STAGES, SIZE, STEP)),
    ], [4, 1], [GROUP_REGISTERS, COPY_REGISTERS])  # fmt: skip


def _describe(rows: Any, block: tuple[int, int]) -> Any:
    """Return a descriptor from which blocks of a tensor with contiguous rows are loaded; what is outside is zero."""
    layout = gl.NVMMASharedLayout.get_default_for(list(block), gl.float16)
    return TensorDescriptor(rows, list(rows.shape), list(rows.stride()), list(block), layout)


KERNEL = ProductKernel(_product_kernel, _describe, CHUNK, {"num_warps": WARPS}, (STAGES, SLICES))
