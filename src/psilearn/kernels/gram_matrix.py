"""Assembly and checks of kernel matrices, from a function that evaluates one block."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from psilearn._backend import NUMPY, Compute, array_namespace, iter_slices, take_rows, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples, n_samples, take

CHECKED_BYTES = 2**19  # of rows that are compared with their transpose at a time; they stay in the cache
COMPARED_ROWS = 1024  # on a device
MIN_PANEL_ROWS = 1024
N_PANELS = 8
MAX_WHOLE_ROWS = 16384  # of a matrix that a GPU computes as one block
ALIGNED_ROWS = 64
MIRRORED_ROWS = 256
RANGES = {4: (1e-30, 1e30), 8: (1e-290, 1e290)}  # of k(a, a), by the bytes of a number

Block = Callable[[slice, slice], Array]  # rows, columns → k(A[rows], A[columns])


def symmetric_matrix(block: Block, n: int, compute: Compute, compare_all: bool) -> tuple[Array, float]:
    """Return k(A, A) in float64 for n objects, and the largest |k(a, b) − k(b, a)| that was seen.

    Panels of rows i hold k(Aᵢ, A_{j≤i}), and the rest is their transpose: each pair is evaluated once. Symmetry is
    checked where a panel meets itself and where the last one meets the first; with ``compare_all`` everywhere.
    """
    step = panel_rows(n, compute)
    everything = slice(0, n)
    if step >= n:
        K = block(everything, everything)
        gap = asymmetry(K, K)
        K = K if compute.dtype == np.float64 else compute.asarray(K, np.float64)
        return (K if gap == 0 else mirror_lower(K)), gap
    K, gap = compute.zeros((n, n)), 0.0
    for rows in iter_slices(n, step):
        K[rows, rows] = block(rows, rows)
        own = K[rows, rows]
        own_gap = asymmetry(own, own)
        if own_gap:
            mirror_lower(own)
        gap = max(gap, own_gap)
        if rows.start == 0:
            continue
        before = slice(0, rows.start)
        K[rows, before] = block(rows, before)
        K[before, rows] = K[rows, before].T
        if compare_all or rows.stop == n:
            probe = before if compare_all else slice(0, step)
            gap = max(gap, asymmetry(K[rows, probe], block(probe, rows)))
    return K, gap


def mirror_lower(K: Array) -> Array:
    """Overwrite what is above the diagonal with what is below, in place and a few rows at a time; return the matrix."""
    xp = array_namespace(K)
    for start in range(0, len(K), MIRRORED_ROWS):
        rows, before = slice(start, start + MIRRORED_ROWS), slice(0, start)
        K[before, rows] = K[rows, before].T
        K[rows, rows] = xp.tril(K[rows, rows]) + xp.tril(K[rows, rows], k=-1).T
    return K


def panel_rows(n: int, compute: Compute = NUMPY) -> int:
    """Return how many rows of a symmetric (n, n) matrix are computed at a time."""
    step = max(MIN_PANEL_ROWS, -(-n // N_PANELS))
    if compute.on_gpu:  # each panel takes many launches: all pairs twice take less time, up to a size
        longer = -(-n // (N_PANELS // 2) // ALIGNED_ROWS) * ALIGNED_ROWS  # rows that the matrix units want aligned
        step = max(MAX_WHOLE_ROWS, longer)
    return min(compute.block_rows(3 * 8 * n, n), step)


def gram_bytes(n: int, itemsize: int = 8) -> int:
    """Return the memory of a symmetric (n, n) matrix and of the panel that is computed at a time."""
    step = panel_rows(n)
    return 8 * n * n + (0 if step >= n else itemsize * step * n)


def asymmetry(K: Array, transposed: Array) -> float:
    """Return max |K − transposedᵀ|, a few rows at a time, and from the lower half if both are the same matrix."""
    step = max(1, CHECKED_BYTES // (8 * K.shape[1])) if isinstance(K, np.ndarray) else COMPARED_ROWS
    gaps = []
    for rows in iter_slices(len(K), step):
        columns = slice(0, rows.stop) if transposed is K else slice(0, K.shape[1])
        gaps.append(abs(K[rows, columns] - transposed[columns, rows].T).max())
    xp = array_namespace(K)
    return float(xp.max(xp.stack(gaps)))  # one number is read from a device


def check_symmetric_matrix(K: Array, gap: float, diagonal: Array, dtype: Any, kernel: Any) -> None:
    """Raise if k(a, b) ≠ k(b, a), if the diagonal contradicts ``diag``, or if values exceed the range of the dtype."""
    check_range(float(diagonal.max()), dtype, kernel)
    found = np.diagonal(K) if isinstance(K, np.ndarray) else to_numpy(K.diagonal())
    difference = float(np.abs(diagonal - found).max())
    if gap == difference == 0:  # two passes over the matrix less
        return
    allowed = _allowed_gap(K, dtype)
    _check_gap(gap, allowed, kernel)
    if difference > allowed:
        raise ValueError(f"{kernel!r} is inconsistent: diag(A) and k(A, A) differ by up to {difference:.3g}.")


class SymmetryCheck:
    """The check that K = k(A, B) is k(B, A)ᵀ: for some objects of a large block, for all if the values are looked up.

    Both collections are validated.
    """

    def __init__(self, K: Array, kernel: Any, A: Samples) -> None:
        n = n_samples(A)
        index = np.arange(n) if kernel.looks_up_values else np.linspace(0, n - 1, min(n // 16, 8)).astype(np.intp)
        self.kernel = kernel
        self.n_compared = len(index)
        if self.n_compared:
            self.objects = A if len(index) == n else take(A, index)
            self.values = K if len(index) == n else take_rows(K, index)  # (b, len(B))

    def run(self, B: Samples, compute: Compute) -> bool:
        """Raise if the kernel is not symmetric; return whether any values were compared: not those of a small block."""
        if not self.n_compared:
            return False
        transposed = self.kernel.block_of_checked(B, self.objects, compute)
        # Two blocks of rows have different centers: in float32 their rounding errors differ, and more so in TF32.
        factor = 1 if compute.dtype == np.float64 else 500 if compute.uses_tf32 else 10
        _check_gap(asymmetry(self.values, transposed), factor * _allowed_gap(self.values, compute.dtype), self.kernel)
        return True


def _allowed_gap(K: Array, dtype: Any) -> float:
    """Return the largest difference of two values of a kernel that may be a rounding error."""
    scale = max(float(K.max()), -float(K.min()), float(np.finfo(float).tiny))
    return scale * (1e-6 if dtype == np.float64 else 1e-4)


def _check_gap(gap: float, allowed: float, kernel: Any) -> None:
    if gap > allowed:
        raise ValueError(f"{kernel!r} is not symmetric: k(a, b) and k(b, a) differ by up to {gap:.3g}.")


def check_range(largest: float, dtype: Any, kernel: Any) -> None:
    """Raise if the largest k(a, a) is so small or so large that values of the kernel lose digits in the dtype."""
    lowest, highest = RANGES[dtype.itemsize]
    if largest > 0 and not lowest < largest < highest:
        hint = " or use dtype='float64'" if dtype == np.float32 else ""
        raise ValueError(
            f"{kernel!r} has values of up to {largest:.3g}, which is out of the range of {dtype.name}: multiply the "
            f"data by a constant{hint}."
        )


def check_block(K: Array, shape: tuple[int, int], kernel: Any, row: int = 0, column: int = 0) -> float:
    """Return the sum of a block; raise if the block has the wrong shape or a value that is not finite.

    ``row`` and ``column`` are the numbers of the first objects, for the message.
    """
    if tuple(K.shape) != shape:
        raise ValueError(f"{kernel!r} returned a block of shape {tuple(K.shape)}; expected {shape}.")
    total = float(K.sum())
    if isfinite(total) or bool(array_namespace(K).isfinite(K).all()):
        return total
    i, j = np.argwhere(~np.isfinite(to_numpy(K)))[0]
    hint = " or use dtype='float64'" if str(K.dtype).endswith("float32") else ""
    raise ValueError(
        f"{kernel!r} returned {float(K[i, j])} for objects {row + i} and {column + j}; a kernel must be finite. If the "
        f"data are large, divide them by a constant{hint}."
    )
