"""Values of kernels as blocks: where the work is done, in the working dtype, known to be finite and of their shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psilearn._backend import (
    array_namespace,
    asarray,
    computing_rows,
    is_tensor,
    off_device,
    precision,
    put,
    require_memory,
    to_host,
    working_device,
    working_dtype,
    zeros,
)
from psilearn._linalg import Array
from psilearn._utils.samples import Samples, describe, n_samples, take
from psilearn.kernels.inner_products import slices, strips

if TYPE_CHECKING:
    from psilearn.kernels.kernel import Kernel


def new_block(kernel: Kernel, A: Samples, B: Samples | None) -> Array:
    """Return k(A, B) in the working dtype as an array that may be overwritten: a user's kernel may keep its own."""
    K: Any = kernel(suited(kernel, A), suited(kernel, B))
    if not kernel._makes_blocks:
        K = K.detach().clone() if is_tensor(K) else np.array(K, dtype=working_dtype())
    return K if working_device() is None else asarray(K, working_dtype())


def suited(kernel: Kernel, A: Samples | None) -> Samples | None:
    """Return a collection for a kernel: tensors in NumPy where it works there."""
    return A if kernel._on_device else off_device(A)


def checked(kernel: Kernel, A: Samples, name: str, **demands: Any) -> Samples:
    """Return the collection as the kernel's check gives it; tensors in NumPy where the kernel works there."""
    return kernel.check(suited(kernel, A), name, **demands)


def resident(kernel: Kernel, A: Samples) -> Samples:
    """Return dense rows on the working device where the kernel works there, so that many blocks move them once."""
    if working_device() is None or not kernel._on_device or not isinstance(A, np.ndarray) or A.dtype.kind not in "bifu":
        return A
    return put(A, working_device())


def gram(kernel: Kernel, A: Samples, name: str, remedy: str, dtype: Any = np.float64) -> Array:
    """Return k(A, A) in float64, known to be a finite symmetric matrix of the right shape; n² numbers of its own.

    Its panels are computed in ``dtype``: float32 where the factor is cut off at that precision anyway.

    Panels of rows i hold k(Aᵢ, A_{j≤i}), and the rest is their mirror image: each pair is evaluated once. That k(a, b)
    = k(b, a) is seen where a panel meets itself and where the last one meets the first; in a stored matrix, which costs
    nothing to read, everywhere. ``name`` is the parameter that the kernel came from; ``remedy`` says what to change
    when memory does not suffice.
    """
    n = n_samples(A)
    A = resident(kernel, A)
    require_memory((2, n, n), f"The Gram matrix of {name} over {n} objects, with its factor,", remedy)
    step = min(computing_rows(3 * 8 * n, n), max(1024, -(-n // 8)))
    with precision(dtype):
        if step >= n:
            K = asarray(block(kernel, A, None, name), np.float64)
            K = K if kernel._makes_blocks else 1.0 * K
            gap = _gap(K, K)
        else:
            K, gap = _mirrored(kernel, A, name, step)
    scale = max(float(K.max()), -float(K.min()), float(np.finfo(float).tiny))
    squared_norms = diagonal(kernel, A, name)
    largest = float(squared_norms.max())
    if dtype == np.float32 and largest > 0 and not 1e-30 < largest < 1e30:
        raise ValueError(f"{name} = {kernel!r} has values beyond float32: scale them or use dtype='float64'.")
    allowed = scale * (1e-6 if dtype == np.float64 else 1e-4)
    if gap > allowed:
        raise ValueError(f"{name} = {kernel!r} is not symmetric: k(a, b) and k(b, a) differ by up to {gap:.3g}.")
    off = float(np.abs(squared_norms - to_host(array_namespace(K).linalg.diagonal(K))).max())
    if off > allowed:
        raise ValueError(f"{name} = {kernel!r} contradicts itself: diag(A) and k(A, A) differ by up to {off:.3g}.")
    return K


def _mirrored(kernel: Kernel, A: Samples, name: str, step: int) -> tuple[Array, float]:
    """Return k(A, A) from panels of ``step`` rows, and the largest |k(a, b) − k(b, a)| that was seen."""
    from psilearn.kernels.objects import Precomputed

    n = n_samples(A)
    K, gap = zeros((n, n)), 0.0
    stored = any(isinstance(part, Precomputed) for part in (kernel, *kernel.get_params().values()))
    for rows in slices(n, step):
        panel = take(A, rows)
        K[rows, rows] = block(kernel, panel, None, name, rows.start, rows.start)
        gap = max(gap, _gap(K[rows, rows], K[rows, rows]))
        if rows.start == 0:
            continue
        before = slice(0, rows.start)
        K[rows, before] = block(kernel, panel, take(A, before), name, rows.start)
        K[before, rows] = K[rows, before].T
        if stored or rows.stop == n:
            probe = before if stored else slice(0, step)
            gap = max(gap, _gap(K[rows, probe], block(kernel, take(A, probe), panel, name, 0, rows.start)))
    return K, gap


def _gap(K: Array, other: Array) -> float:
    """Return max |K − otherᵀ|, a few rows at a time."""
    parts = slices(len(K), 4096) if is_tensor(K) else strips(len(K), 8 * K.shape[1])
    return max(float(abs(K[part] - other[:, part].T).max()) for part in parts)


def block(kernel: Kernel, A: Samples, B: Samples | None, name: str, row: int = 0, column: int = 0) -> Array:
    """Return k(A, B) in the working dtype, known to be finite and of the right shape.

    ``name`` is the parameter the kernel came from; ``row`` and ``column`` are the numbers of the first objects.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is named below
        K = asarray(kernel(suited(kernel, A), suited(kernel, B)), working_dtype())
        expected = (n_samples(A), n_samples(A if B is None else B))
        if tuple(K.shape) != expected:
            raise ValueError(
                f"{name} = {kernel!r} returned shape {tuple(K.shape)} for {describe(A)}; expected {expected}."
            )
        xp = array_namespace(K)
        size = working_dtype().itemsize
        parts = [slice(0, len(K))] if is_tensor(K) else strips(len(K), size * K.shape[1])
        for part in parts:
            if not xp.isfinite(K[part].sum()) and not xp.all(xp.isfinite(K[part])):
                i, j = np.argwhere(~np.isfinite(to_host(K[part])))[0] + (part.start, 0)
                hint = " Scale the data or use dtype='float64'." if size == 4 else ""
                raise ValueError(
                    f"{name} = {kernel!r} returned {float(K[i, j])} for objects {row + i} and {column + j}; a kernel "
                    f"must be finite.{hint}"
                )
    return K


def diagonal(kernel: Kernel, A: Samples, name: str) -> Array:
    """Return k(a, a) for each object, known to be finite and of the right shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(to_host(kernel.diag(suited(kernel, A))), dtype=np.float64)
    if values.shape != (n_samples(A),) or not np.isfinite(values).all():
        raise ValueError(
            f"{name} = {kernel!r}: diag must give one finite number an object; got shape {values.shape} with "
            f"{int(np.sum(~np.isfinite(values)))} not finite, for {describe(A)}."
        )
    return values
