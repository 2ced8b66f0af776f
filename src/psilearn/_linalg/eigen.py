"""Leading eigenvectors, by a dense solver or by iteration."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import eigh as lapack_eigh

from psilearn._backend import Compute, array_namespace
from psilearn._linalg.array_ops import Array, clip_negative

RESIDUAL = 1e-10  # |Mv − μv| / μ₁ at which an eigenpair has converged
DENSE_LIMIT = 2500  # a dense eigensolver is faster up to this order
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
    matrix. Both agree to the residual 1e-10·μ₁, so the answer does not depend on the random start.
    """
    pairs = None
    if size > DENSE_LIMIT and 20 * k < size:
        start = compute.asarray(np.random.default_rng(0).standard_normal((size, k + max(10, k // 10))))
        pairs = block_krylov_eigh(matmat, start, k)
    if pairs is None:
        pairs = dense_top_eigh(matmat(compute.eye(size)) if to_matrix is None else to_matrix(), k)
    values, vectors = pairs
    xp = array_namespace(vectors)
    largest = xp.argmax(xp.abs(vectors), axis=0, keepdims=True)
    return clip_negative(values), vectors * xp.sign(xp.take_along_axis(vectors, largest, axis=0))


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


def block_krylov_eigh(
    matmat: Callable[[Any], Any], start: Any, k: int, depth: int = 6, max_restarts: int = 30
) -> tuple[Any, Any] | None:
    """Find the k largest eigenpairs by restarted block Krylov iteration from a random block.

    Each cycle spans Q, MQ, …, M^(depth−1)Q, orthogonalized twice, and computes the Ritz pairs of that space; the
    leading ones start the next cycle. Nearly all work is in matrix products, which are fast on any array-API backend.
    Memory: 2·depth blocks. Musco and Musco, *Randomized block Krylov methods*, 2015.

    Parameters
    ----------
    matmat : callable, (size, b) → (size, b)
    start : array (size, b), b > k
        A random block. Its array namespace and its device are used for all computations.

    Returns
    -------
    values (k,), vectors (size, k), or None if the iteration does not reach the residual 1e-10·μ₁.
    """
    xp = array_namespace(start)
    size, width = start.shape
    depth = max(1, min(depth, size // width))  # a basis has at most ``size`` columns
    Q = xp.linalg.qr(start)[0]  # (size, b)
    image = matmat(Q)
    first = 0.0  # residual of the first cycle
    for restart in range(max_restarts):
        basis, images = [Q], [image]
        for _ in range(depth - 1):
            B = xp.concat(basis, axis=1)
            # A small random part keeps the block from vanishing when the space is invariant under M.
            Q = images[-1] + 1e-14 * xp.linalg.matrix_norm(images[0]) * xp.roll(start, len(basis), axis=0)
            for _ in range(2):
                Q = xp.linalg.qr(Q - B @ (B.T @ Q))[0]
            basis.append(Q)
            images.append(matmat(Q))
        B, MB = xp.concat(basis, axis=1), xp.concat(images, axis=1)
        T = B.T @ MB
        ritz, S = xp.linalg.eigh((T + T.T) / 2)
        ritz, S = xp.flip(ritz)[:width], xp.flip(S, axis=1)[:, :width]
        Q, image = B @ S, MB @ S
        residual = xp.linalg.vector_norm(image[:, :k] - Q[:, :k] * ritz[:k], axis=0)
        worst = float(xp.max(residual)) / max(float(ritz[0]), float(np.finfo(float).tiny))
        if worst <= RESIDUAL:
            return ritz[:k], Q[:, :k]
        # Convergence is linear: if twice the rate so far is not enough, a dense solver is faster.
        first = first or worst
        rate = np.log(first / worst) / max(restart, 1)
        if restart > max_restarts // 6 and np.log(worst / RESIDUAL) > 2 * rate * (max_restarts - restart):
            return None
    return None
