"""Plain linear algebra: no kernel, no estimator, no data.

Three problems carry the library: a shifted positive definite system (ridge), a rank-revealing factor of a Gram matrix
(coordinates) and the leading eigenvectors of a second-moment matrix (the learned embedding).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpotrf, dpstrf

from psilearn.backend import array_namespace

Array = NDArray[np.float64]

INDEFINITE = 1e-6  # relative size of a negative part that no rounding explains
SINGLE = float(np.finfo(np.float32).eps)
RESIDUAL = 1e-10  # |Mv − μv| / μ₁ at which an iterated eigenpair counts as found
DENSE_LIMIT = 2500  # up to this order a dense eigensolver is the faster one


class NotPositiveSemidefiniteError(ValueError):
    """A matrix that should be a Gram matrix has a negative eigenvalue."""


class ShiftedCholesky:
    """Solve (K + shift·I) A = B many times after one Cholesky factorisation; n³/3 flops.

    n² numbers, none beside K itself with ``overwrite``.
    """

    def __init__(self, K: Array, shift: float, overwrite: bool = False) -> None:
        shifted = K.T if overwrite else np.array(K, order="F")  # K.T: the same matrix in the order of LAPACK
        shifted.flat[:: len(K) + 1] += shift
        try:
            self._factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise NotPositiveSemidefiniteError(str(error)) from error

    def solve(self, B: Array) -> Array:
        """Return (K + shift·I)⁻¹ B."""
        return cho_solve(self._factor, B, check_finite=False)


class PivotedCholesky(NamedTuple):
    """K = Ψ Ψᵀ with Ψ of full column rank, from the ``rank`` rows that span all others."""

    factor: Array  # (n, r)  Ψ, rows in the order of K
    pivots: NDArray[np.intp]  # (r,)   the spanning rows: Ψ[pivots] = triangle, lower triangular

    @property
    def triangle(self) -> Array:
        """The (r, r) lower triangle of the spanning rows."""
        return self.factor[self.pivots]


def pivoted_cholesky(K: Array, tolerance: float = 0.0, overwrite: bool = False) -> PivotedCholesky:
    """Factor a positive semi-definite K = Ψ Ψᵀ with as many columns as K has rank.

    LAPACK's ``dpstrf``: n²r flops, in place on one copy of K, or on K itself with ``overwrite``. It stops when the
    largest remaining pivot is below the tolerance, at least n·ε·max k(y,y), so each row of K is reproduced to about
    that accuracy. A matrix that is a Gram matrix only to single precision is factored to that precision instead.

    Raises
    ------
    NotPositiveSemidefiniteError
        if what remains of K after the last pivot is not a rounding error.
    """
    n = len(K)
    scale = float(np.max(np.diagonal(K)))
    if scale <= 0:
        if np.any(K):
            raise NotPositiveSemidefiniteError(f"the largest diagonal entry is {scale:.3g}, yet the matrix is not zero")
        return PivotedCholesky(np.zeros((n, 0)), np.empty(0, dtype=np.intp))
    packed = K.T if overwrite else np.array(K, order="F")
    tolerance = max(tolerance, n * np.finfo(float).eps * scale)
    exact, exact_error = _pivoted(packed, tolerance)
    if exact_error <= max(INDEFINITE * scale, 4 * tolerance):
        return exact
    coarse = 2 * np.sqrt(n) * SINGLE * scale
    rounded, error = _pivoted(packed, coarse)
    if error <= 4 * coarse:
        return rounded
    raise NotPositiveSemidefiniteError(
        f"after {len(rounded.pivots)} of {n} pivots a part of size {error:.3g} is left that no Gram matrix has"
    )


def _pivoted(K: Array, tolerance: float) -> tuple[PivotedCholesky, float]:
    """Factor down to pivots of that size; return also how far the rest is from the rest of a Gram matrix.

    K, in Fortran order, is the workspace and comes back as it was.
    """
    n = len(K)
    diagonal = np.diagonal(K).copy()
    probe = np.random.default_rng(0).standard_normal(n)
    image = K @ probe
    packed, order, rank, _ = dpstrf(K, tol=tolerance, lower=1, overwrite_a=1)
    order = order.astype(np.intp) - 1  # LAPACK counts from one
    factor = np.empty((n, rank))
    factor[order] = packed[:, :rank]
    _restore_below_diagonal(K, diagonal)
    # Row order[i] is row i of a lower triangle; LAPACK leaves something above its diagonal.
    for i, row in enumerate(order[:rank]):
        factor[row, i + 1 :] = 0
    # K − ΨΨᵀ is itself a Gram matrix when K is: no negative diagonal, nothing beside a zero diagonal.
    remainder = diagonal - np.einsum("ij,ij->i", factor, factor)
    beside = np.abs(image - factor @ (factor.T @ probe)) / np.sqrt(n)
    return PivotedCholesky(factor, order[:rank]), max(-float(np.min(remainder)), float(np.max(beside)))


class SpanningCholesky(NamedTuple):
    """LLᵀ = K[kept][:, kept], where the rows ``kept`` span all others up to a tolerance."""

    kept: NDArray[np.intp]  # (r,)
    triangle: Array  # (r, r)  L, lower triangular, in Fortran order


def spanning_cholesky(K: Array, tolerance: float) -> SpanningCholesky:
    """Factor a Gram matrix and drop the rows that others span; K is overwritten.

    Plain Cholesky, n³/3 flops in place, where every pivot is above the tolerance; else with pivoting, which stops at
    the tolerance and is about twice as slow. Either way no triangular solve with L amplifies an error by more than
    about 1/√tolerance: that is the whole policy, no jitter is added to K.
    """
    diagonal = np.diagonal(K).copy()
    factor, failed = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)  # K.T: the same matrix in Fortran order
    if not failed and np.min(np.diagonal(factor)) ** 2 > tolerance:
        for column in range(1, len(K)):
            factor[:column, column] = 0
        return SpanningCholesky(np.arange(len(K)), factor)
    _restore_below_diagonal(factor, diagonal)
    pivoted = pivoted_cholesky(factor.T, tolerance, overwrite=True)
    return SpanningCholesky(pivoted.pivots, np.asfortranarray(pivoted.triangle))


def _restore_below_diagonal(K: Array, diagonal: Array) -> None:
    """Undo what a factorisation did below the diagonal of a symmetric matrix: above it, it is as it was."""
    for j in range(len(K)):
        K[j + 1 :, j] = K[j, j + 1 :]
        K[j, j] = diagonal[j]


def solve_lower(L: Array, B: Any) -> Any:
    """Return L⁻¹ B for a lower triangle L (r, r) and B (r, b), both in Fortran order; B is overwritten."""
    if 0 in B.shape:
        return B
    return (strsm if B.dtype == np.float32 else dtrsm)(1.0, L, B, lower=1, overwrite_b=1)


def top_eigh(
    matmat: Callable[[Array], Array], size: int, k: int, formed: Callable[[], Array] | None = None
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues (descending) and eigenvectors of a positive semi-definite operator.

    The operator is given by its product with a block, ``matmat((size, b)) → (size, b)``, and by what makes it a matrix
    where there is a cheaper way than its product with the identity. Small problems, and those
    where many of all eigenvectors are wanted, are solved densely; the others by :func:`block_krylov_eigh`, which
    never forms the matrix. Both agree to the residual 1e-10·μ₁, so the answer does not depend on the random start.
    """
    pairs = None
    if size > DENSE_LIMIT and 20 * k < size:
        start = np.random.default_rng(0).standard_normal((size, k + max(10, k // 10)))
        pairs = block_krylov_eigh(matmat, start, k)
    if pairs is None:
        pairs = dense_top_eigh(matmat(np.eye(size)) if formed is None else formed(), k)
    values, vectors = pairs
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(k)])
    return np.maximum(values, 0), vectors * signs


def dense_top_eigh(M: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues (descending) and eigenvectors of a symmetric matrix."""
    size = len(M)
    M = (M + M.T) / 2
    values, vectors = np.empty(0), np.empty((size, 0))
    if size > 1000 and 2 * k <= size:  # below that, divide and conquer finds all of them sooner
        with suppress(LinAlgError):
            values, vectors = eigh(M, subset_by_index=(size - k, size - 1), check_finite=False)
    if len(values) < k:  # LAPACK's subsets (dsyevr) may fail, or lose some of a repeated eigenvalue
        values, vectors = eigh(M, driver="evd", check_finite=False)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def block_krylov_eigh(
    matmat: Callable[[Any], Any], start: Any, k: int, depth: int = 6, max_restarts: int = 30
) -> tuple[Any, Any] | None:
    """Find the k largest eigenpairs by restarted block Krylov iteration from a random block.

    Each cycle spans Q, MQ, …, M^(depth−1)Q, orthogonalised twice, and takes the Ritz pairs of that space; the leading
    ones start the next cycle. All work is products of blocks, so it runs at the speed of the matrix product, on any
    array-API backend. Memory: 2·depth blocks. Musco and Musco, *Randomized block Krylov methods*, 2015.

    Parameters
    ----------
    matmat : callable, (size, b) → (size, b)
    start : array (size, b), b > k
        random; its namespace and device decide where the work is done.

    Returns
    -------
    values (k,), vectors (size, k), or None where the residual 1e-10·μ₁ was not reached, or would not be.
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
            # A hint of other random directions, lest a space that M does not leave any more give a block of zeros.
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
        # Convergence is linear: where twice the pace so far would not suffice, a dense solver is the faster one.
        first = first or worst
        pace = np.log(first / worst) / max(restart, 1)
        if restart > max_restarts // 6 and np.log(worst / RESIDUAL) > 2 * pace * (max_restarts - restart):
            return None
    return None
