"""Assembly and checks of kernel matrices, from a function that evaluates one block."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from psilearn._backend import Compute, array_namespace, iter_slices, to_numpy
from psilearn._linalg import Array

CHECKED_BYTES = 2**19  # of rows that are compared with their transpose at a time; they stay in the cache
MIN_PANEL_ROWS = 1024
MIRRORED_ROWS = 256

Block = Callable[[slice, slice], Array]  # rows, columns → k(A[rows], A[columns])


def symmetric_matrix(block: Block, n: int, compute: Compute, compare_all: bool) -> tuple[Array, float]:
    """Return k(A, A) in float64 for n objects, and the largest |k(a, b) − k(b, a)| that was seen.

    Panels of rows i hold k(Aᵢ, A_{j≤i}), and the rest is their transpose: each pair is evaluated once. Symmetry is
    checked where a panel meets itself and where the last one meets the first; with ``compare_all`` everywhere.
    """
    step = min(compute.block_rows(3 * 8 * n, n), max(MIN_PANEL_ROWS, -(-n // 8)))
    everything = slice(0, n)
    if step >= n:
        K = block(everything, everything)
        K = K if compute.dtype == np.float64 else compute.asarray(K, np.float64)
        gap = asymmetry(K, K)
        return (K if gap == 0 else mirror_lower(K)), gap
    K, gap = compute.zeros((n, n)), 0.0
    for rows in iter_slices(n, step):
        K[rows, rows] = block(rows, rows)
        own_gap = asymmetry(K[rows, rows], K[rows, rows])
        if own_gap:
            mirror_lower(K[rows, rows])
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


def asymmetry(K: Array, transposed: Array) -> float:
    """Return max |K − transposedᵀ|, a few rows at a time."""
    step = len(K) if not isinstance(K, np.ndarray) else max(1, CHECKED_BYTES // (8 * K.shape[1]))
    parts = (slice(start, start + step) for start in range(0, len(K), step))
    return max(float(abs(K[part] - transposed[:, part].T).max()) for part in parts)


def check_symmetric_matrix(K: Array, gap: float, diagonal: Array, dtype: Any, kernel: Any) -> None:
    """Raise if k(a, b) ≠ k(b, a), if the diagonal contradicts ``diag``, or if values exceed the range of float32."""
    largest = float(diagonal.max())
    if dtype == np.float32 and largest > 0 and not 1e-30 < largest < 1e30:
        raise ValueError(f"{kernel!r} has values outside of the range of float32: scale them or use dtype='float64'.")
    scale = max(float(K.max()), -float(K.min()), float(np.finfo(float).tiny))
    allowed = scale * (1e-6 if dtype == np.float64 else 1e-4)
    if gap > allowed:
        raise ValueError(f"{kernel!r} is not symmetric: k(a, b) and k(b, a) differ by up to {gap:.3g}.")
    found = np.diagonal(K) if isinstance(K, np.ndarray) else to_numpy(K.diagonal())
    difference = float(np.abs(diagonal - found).max())
    if difference > allowed:
        raise ValueError(f"{kernel!r} is inconsistent: diag(A) and k(A, A) differ by up to {difference:.3g}.")


def check_block(K: Array, shape: tuple[int, int], kernel: Any, row: int = 0, column: int = 0) -> None:
    """Raise if a block has the wrong shape or a value that is not finite.

    ``row`` and ``column`` are the numbers of the first objects, for the message.
    """
    if tuple(K.shape) != shape:
        raise ValueError(f"{kernel!r} returned a block of shape {tuple(K.shape)}; expected {shape}.")
    if isfinite(float(K.sum())) or bool(array_namespace(K).isfinite(K).all()):
        return
    i, j = np.argwhere(~np.isfinite(to_numpy(K)))[0]
    hint = " Scale the data or use dtype='float64'." if str(K.dtype).endswith("float32") else ""
    raise ValueError(
        f"{kernel!r} returned {float(K[i, j])} for objects {row + i} and {column + j}; a kernel must be finite.{hint}"
    )
