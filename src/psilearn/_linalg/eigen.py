"""Leading eigenvectors, by a dense solver or by one of two iterations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import ceil, isfinite, log, sqrt
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import eigh as lapack_eigh

from psilearn._backend import Compute, array_namespace, is_tensor
from psilearn._linalg.array_ops import Array, clip_negative
from psilearn._linalg.cholesky import shifted_factor, solve_lower

DENSE_LIMIT = 2500  # a dense eigensolver is faster up to this order
GPU_DENSE_LIMIT = 1500  # the same on a GPU, where many short steps take long
FULL_SOLVER_ORDER = 1000  # up to this order all eigenvectors are found faster than some of them
RESIDUAL = 1e-10  # |Mv − μv| / μ₁ at which an eigenpair has converged
FIRST_CHECK = 6  # blocks after which Ritz pairs are computed for the first time
MAX_DEPTH = 12  # blocks of a cycle
FIRST_PRODUCTS = 3  # with the matrix, before the first Ritz vectors
SPARE_DEGREES = 3  # beyond the estimate, whose interval ends too early in the first round: Ritz vectors cost more
MAX_DEGREE = 30  # of what may be left to do after the first Ritz vectors, and of a round
MAX_ROUNDS = 10
MAX_SPREAD = 1e14  # by which the polynomial may magnify one wanted vector more than another: rounding errors too


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


def block_krylov_eigh(
    matmat: Callable[[Any], Any], start: Any, k: int, depth: int = MAX_DEPTH, max_restarts: int = 15
) -> tuple[Any, Any] | None:
    """Find the k largest eigenpairs by restarted block Krylov iteration from a random block.

    Each cycle spans Q, MQ, …, M^(j−1)Q, orthogonalized twice, and computes the Ritz pairs of that space when their
    residual is expected to be small enough, and at the latest for j = depth. The leading ones then start the next
    cycle. Nearly all work is in matrix products, which are fast on any array-API backend. Memory: depth + 6 blocks and
    3·(depth·b)² numbers. Musco and Musco, *Randomized block Krylov methods*, 2015.

    Parameters
    ----------
    matmat : callable, (size, b) → (size, b)
    start : array (size, b), b > k
        A random block. Its array namespace and its device are used for all computations.

    Returns
    -------
    values (k,), vectors (size, k), or None if the iteration does not reach the residual 1e-10·μ₁.
    """
    size, width = start.shape
    depth = max(1, min(depth, size // width))  # a basis has at most ``size`` columns
    first = 0.0  # residual of the first cycle
    Q = start
    for restart in range(max_restarts):
        space = _KrylovSpace(matmat, Q, start, depth)
        values, S, residual = _solve(space, k, depth)
        if residual <= RESIDUAL:
            return values[:k], space.basis @ S[:, :k]
        # Convergence is linear: if twice the rate so far is not enough, a dense solver is faster.
        first = first or residual
        rate = np.log(first / residual) / max(restart, 1)
        if restart > max_restarts // 6 and np.log(residual / RESIDUAL) > 2 * rate * (max_restarts - restart):
            return None
        Q = space.basis @ S[:, :width]
    return None


def _solve(space: _KrylovSpace, k: int, depth: int) -> tuple[Any, Any, float]:
    """Extend the space until k Ritz pairs have converged, or to a depth; return the pairs and the largest residual."""
    check = min(FIRST_CHECK, depth)
    while True:
        while space.n_blocks < check:
            space.extend()
        values, S, residual = space.ritz_pairs(k)
        if residual <= RESIDUAL or check == depth:
            return values, S, residual
        rate = np.log(min(residual, 0.5)) / (check - 1)  # of convergence per product, so far
        check = min(max(check + 1, 1 + int(np.ceil(np.log(RESIDUAL) / rate))), depth)


class _KrylovSpace:
    """An orthonormal basis B of span(Q, MQ, M²Q, …) with MB = BT + Q'Rᵉ, where Q' and R are the next block.

    T (j·b, j·b) consists of the coefficients of the orthogonalization, and the residuals of Ritz pairs follow from R:
    no product with M is stored.
    """

    def __init__(self, matmat: Callable[[Any], Any], Q: Any, start: Any, depth: int) -> None:
        self._xp = array_namespace(Q)
        size, self._width = Q.shape
        self._matmat, self._start = matmat, start
        n_columns, kind = depth * self._width, {"dtype": Q.dtype, "device": Q.device}
        self._columns = self._xp.empty((size, n_columns), **kind)
        self._T = self._xp.zeros((n_columns, n_columns), **kind)
        self.n_blocks, self._norm = 0, 0.0
        self._next, self._coupling = orthonormalize(Q)
        self.extend()

    @property
    def basis(self) -> Any:
        """B, (size, j·b)."""
        return self._columns[:, : self.n_blocks * self._width]

    def extend(self) -> None:
        """Add the next block to the basis and multiply it by M."""
        xp, block = self._xp, slice(self.n_blocks * self._width, (self.n_blocks + 1) * self._width)
        self._columns[:, block] = self._next
        self.n_blocks += 1
        image = self._matmat(self._next)
        self._norm = self._norm or float(xp.linalg.matrix_norm(image))
        # M is symmetric, so MQ is orthogonal to all blocks but the last two; the second pass removes rounding errors.
        recent = slice(max(0, block.start - self._width), block.stop)
        local, B = self._columns[:, recent], self.basis
        # A small random part outside of the space keeps the block from vanishing when the space is invariant under M.
        noise = 1e-14 * self._norm * xp.roll(self._start, self.n_blocks, axis=0)
        image = image + (noise - B @ (B.T @ noise))
        coefficients = local.T @ image
        Q, R = orthonormalize(image - local @ coefficients)
        correction = B.T @ Q
        self._next, other = orthonormalize(Q - B @ correction)
        self._coupling = other @ R
        self._T[: block.stop, block] = correction @ R
        self._T[recent, block] += coefficients

    def ritz_pairs(self, k: int) -> tuple[Any, Any, float]:
        """Return all Ritz values, descending, their vectors in the basis, and the largest residual of the first k."""
        xp = self._xp
        upper = xp.triu(self._T[: self.n_blocks * self._width, : self.n_blocks * self._width])
        values, S = xp.linalg.eigh(upper + xp.triu(upper, k=1).T)
        values, S = xp.flip(values), xp.flip(S, axis=1)
        residuals = xp.linalg.vector_norm(self._coupling @ S[-self._width :, :k], axis=0)
        return values, S, float(xp.max(residuals)) / max(float(values[0]), float(np.finfo(float).tiny))


def orthonormalize(Z: Any) -> tuple[Any, Any]:
    """Return Q (size, b) and R (b, b) with Z = QR and QᵀQ = I.

    By the Cholesky factor of ZᵀZ, which is several times faster than Householder reflections. Q then loses digits where
    Z is ill-conditioned: call this twice. Reflections are used if ZᵀZ has no Cholesky factor.
    """
    if isinstance(Z, np.ndarray) or is_tensor(Z):
        L = shifted_factor(np.asfortranarray(Z.T @ Z) if isinstance(Z, np.ndarray) else Z.T @ Z, 0.0)
        if L is not None:
            rows = np.array(Z, order="C").T if isinstance(Z, np.ndarray) else Z.T
            return solve_lower(L, rows).T, L.T
    Q, R = array_namespace(Z).linalg.qr(Z)
    return Q, R


# Leading eigenvectors of a matrix on a GPU by subspace iteration with Chebyshev polynomials.
#
# A dense eigensolver reduces the matrix to a tridiagonal one, in as many steps as it has rows, and a GPU waits for
# each of them. Here nearly all work is in products with a block, which are fast: of the polynomials of degree d that
# are at most 1 on [0, a], the Chebyshev polynomial T_d(2x/a − 1) grows most beyond a. With a at the smallest
# eigenvalue of the block it turns the block towards the wanted eigenvectors.
def filtered_eigh(matmat: Callable[[Any], Any], start: Any, k: int) -> tuple[Any, Any] | None:
    """Find the k largest eigenpairs of a positive semi-definite operator from a random block that is wider than k.

    Each round computes the Ritz pairs of the block, (size, b): 2·size·b² flops and an eigensolver of order b, and then
    applies a polynomial whose degree is estimated from the residual. Memory: five blocks.
    Zhou, Saad, Tiago and Chelikowsky, *Self-consistent-field calculations using Chebyshev-filtered subspace
    iteration*, 2006.

    Parameters
    ----------
    matmat : callable, (size, b) → (size, b)
    start : array (size, b), b > k
        A random block. Its array namespace and its device are used for all computations.

    Returns
    -------
    values (k,), vectors (size, k), or None if the residual 1e-10·μ₁ is not reached, or not expected to be reached soon:
    the eigenvalues that follow the wanted ones are then too close.
    """
    xp = array_namespace(start)
    scale = float(xp.max(xp.abs(matmat(start))))
    if scale == 0:  # the operator is zero
        return xp.zeros_like(start[0, :k]), xp.linalg.qr(start)[0][:, :k]
    if not isfinite(scale):
        return None
    pairs = _iterate(lambda V: matmat(V) / scale, start, k)  # powers and squares are in range
    return None if pairs is None else (pairs[0] * scale, pairs[1])


def _iterate(matmat: Callable[[Any], Any], start: Any, k: int) -> tuple[Any, Any] | None:
    """Return the pairs of an operator whose product with the block has entries of at most 1, as in filtered_eigh."""
    xp, V = array_namespace(start), start
    for _ in range(FIRST_PRODUCTS):
        V = matmat(V)
    Q, _ = xp.linalg.qr(V)
    for round_ in range(MAX_ROUNDS):
        values, V, residuals = _ritz_pairs(matmat, Q, k)
        largest, smallest_wanted, end = (float(values[i]) for i in (0, k - 1, -1))
        if not largest > 0 or end < -RESIDUAL * largest:
            return None  # not a positive semi-definite operator, or not finite
        residual = float(xp.max(residuals)) / largest
        if residual <= RESIDUAL:
            return values[:k], V[:, :k]
        end = max(end, 1e-15 * largest)
        growth, fastest = (_growth(value / end) for value in (smallest_wanted, largest))
        missing = log(residual / RESIDUAL) / log(growth) if growth > 1 else float("inf")
        if growth == 1 or (round_ == 0 and missing > MAX_DEGREE):
            return None
        accurate = int(log(MAX_SPREAD) / log(fastest / growth)) if fastest > growth else MAX_DEGREE
        for degree in _degrees(min(ceil(missing) + SPARE_DEGREES, MAX_DEGREE), max(1, accurate)):
            V = _filter(matmat, V, end, degree)
            V, _ = orthonormalize(orthonormalize(V)[0])
        Q = V
    return None


def _degrees(total: int, largest: int) -> list[int]:
    """Return the degrees of successive polynomials, each at most the largest one, that sum to the total."""
    return [min(largest, total - done) for done in range(0, total, largest)]


def _ritz_pairs(matmat: Callable[[Any], Any], Q: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the Ritz values of an orthonormal block, descending, their vectors, and the residuals of the first k."""
    xp = array_namespace(Q)
    image = matmat(Q)
    inside = Q.T @ image
    values, S = xp.linalg.eigh((inside + inside.T) / 2)
    values, S = xp.flip(values), xp.flip(S, axis=1)
    vectors = Q @ S
    return values, vectors, xp.linalg.vector_norm(image @ S[:, :k] - vectors[:, :k] * values[:k], axis=0)


def _growth(ratio: float) -> float:
    """Return the factor by which T_d(2·ratio − 1) grows with each degree, outside of the interval."""
    x = max(2 * ratio - 1, 1.0)
    return x + sqrt(x * x - 1)


def _filter(matmat: Callable[[Any], Any], V: Any, end: float, degree: int) -> Any:
    """Return T_d(2M/end − I) V with columns of length one, by the recurrence of the polynomials."""
    previous, current = V, matmat(V) * (2 / end) - V
    for _ in range(degree - 1):
        previous, current = current, (matmat(current) * (2 / end) - current) * 2 - previous
    return current / array_namespace(V).linalg.vector_norm(current, axis=0)
