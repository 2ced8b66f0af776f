"""Leading eigenvectors, by a dense solver or by iteration."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import eigh as lapack_eigh

from psilearn._backend import Compute, array_namespace
from psilearn._linalg.array_ops import Array, clip_negative
from psilearn._linalg.block_krylov import block_krylov_eigh
from psilearn._linalg.filtered_subspace import filtered_eigh

DENSE_LIMIT = 2500  # a dense eigensolver is faster up to this order
GPU_DENSE_LIMIT = 1500  # the same on a GPU, where many short steps take long
FULL_SOLVER_ORDER = 1000  # up to this order all eigenvectors are found faster than some of them


def eigh(M: Array, overwrite: bool = False) -> tuple[Array, Array]:
    """Return all eigenvalues of a symmetric matrix, ascending, and its eigenvectors."""
    if not isinstance(M, np.ndarray):
        values, vectors = array_namespace(M).linalg.eigh(M)
        return values, vectors
    driver = "evd" if len(M) > 1 else "ev"  # SciPy 1.12 and 1.13 fail with "evd" for one number
    # M.T: the same matrix in the order of LAPACK, which would copy it otherwise
    return lapack_eigh(M.T if overwrite else M, overwrite_a=overwrite, check_finite=False, driver=driver)


def top_eigh(
    matmat: Callable[[Array], Array], size: int, k: int, compute: Compute, to_matrix: Callable[[], Array] | None = None
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues (descending) and eigenvectors of a positive semi-definite operator.

    The operator is given by its product with a block, ``matmat((size, b)) → (size, b)``, and optionally by a function
    that forms its matrix more cheaply than the product with the identity. Small problems, and those that need a large
    share of all eigenvectors, are solved densely; the others by :func:`block_krylov_eigh`, which never forms the
    matrix. On a GPU a matrix of moderate order is formed and used by :func:`filtered_eigh`. All agree to the residual
    1e-10·μ₁, so the answer does not depend on the random start.
    """
    pairs, matrix = None, None
    if is_iterated(size, k):
        pairs = block_krylov_eigh(matmat, _random_block(size, k + max(10, k // 10), compute), k)
    elif is_filtered(size, k, compute):
        matrix = matmat(compute.eye(size)) if to_matrix is None else to_matrix()
        pairs = filtered_eigh(matrix.__matmul__, _random_block(size, k + max(10, k // 2), compute), k)
    if pairs is None:
        if matrix is None:
            matrix = matmat(compute.eye(size)) if to_matrix is None else to_matrix()
        pairs = dense_top_eigh(matrix, k)
    values, vectors = pairs
    xp = array_namespace(vectors)
    largest = xp.argmax(xp.abs(vectors), axis=0, keepdims=True)
    return clip_negative(values), vectors * xp.sign(xp.take_along_axis(vectors, largest, axis=0))


def _random_block(size: int, width: int, compute: Compute) -> Any:
    """Return random numbers, always the same on a device; a GPU draws them faster than they are copied to it."""
    if not compute.on_gpu:
        return compute.asarray(np.random.default_rng(0).standard_normal((size, width)))
    import torch

    seeded = torch.Generator(compute.device).manual_seed(0)
    return torch.randn((size, width), dtype=torch.float64, device=compute.device, generator=seeded)


def is_iterated(size: int, k: int) -> bool:
    """Return whether k leading eigenvectors of a matrix of this order are found by iteration."""
    return size > DENSE_LIMIT and 20 * k < size


def is_filtered(size: int, k: int, compute: Compute) -> bool:
    """Return whether k leading eigenvectors of a matrix of this order are found by filtered iteration."""
    return compute.on_gpu and size > GPU_DENSE_LIMIT and 10 * k < size


def dense_top_eigh(M: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues (descending) and eigenvectors of a symmetric matrix.

    One copy of the matrix, and LAPACK's workspace of two more if all eigenvectors are computed.
    """
    size = len(M)
    if not isinstance(M, np.ndarray):
        values, vectors = eigh(_symmetrized(M))
        xp = array_namespace(M)
        return xp.flip(values)[:k], xp.flip(vectors, axis=1)[:, :k]
    values, vectors = np.empty(0), np.empty((size, 0))
    if size > FULL_SOLVER_ORDER and 2 * k <= size:
        with suppress(LinAlgError):
            values, vectors = lapack_eigh(
                _symmetrized(M).T, subset_by_index=(size - k, size - 1), overwrite_a=True, check_finite=False
            )
    if len(values) < k:  # LAPACK's subsets (dsyevr) may fail, or lose some of a repeated eigenvalue
        values, vectors = eigh(_symmetrized(M), overwrite=True)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def _symmetrized(M: Any) -> Any:
    """Return (M + Mᵀ)/2 as a new array, in C order."""
    total = M + M.T
    total /= 2
    return total
