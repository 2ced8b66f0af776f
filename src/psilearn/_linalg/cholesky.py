"""Cholesky factorizations: of shifted matrices, with pivots, and of rows that span all others."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpotrf, dpstrf

from psilearn._backend import array_namespace, take_rows
from psilearn._linalg import torch_triangles
from psilearn._linalg.array_ops import Array

INDEFINITE = 1e-6  # relative size of a negative part that is too large for a rounding error
SINGLE = float(np.finfo(np.float32).eps)


class NotPositiveSemidefiniteError(ValueError):
    """A matrix that should be a Gram matrix has a negative eigenvalue."""


class ShiftedCholesky:
    """Solve (K + shift·I) A = B many times after one Cholesky factorization; n³/3 flops.

    It stores n² numbers. With ``overwrite`` they are stored in K, without a copy.
    """

    def __init__(self, K: Array, shift: float, overwrite: bool = False) -> None:
        self._tensor: Any = None
        if not isinstance(K, np.ndarray):
            self._tensor = torch_triangles.cholesky(K, shift, overwrite)
            if self._tensor is None:
                raise NotPositiveSemidefiniteError("a leading minor is not positive definite")
            return
        shifted = K.T if overwrite else np.array(K, order="F")  # K.T: the same matrix in the order of LAPACK
        shifted.flat[:: len(K) + 1] += shift
        try:
            self._factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise NotPositiveSemidefiniteError(str(error)) from error

    def solve(self, B: Array) -> Array:
        """Return (K + shift·I)⁻¹ B."""
        if self._tensor is not None:
            return torch_triangles.cholesky_solve(self._tensor, B)
        return cho_solve(self._factor, B, check_finite=False)


def shifted_factor(lower: Array, shift: float) -> Array | None:
    """Return R with RRᵀ = K + shift·I, or None if K + shift·I is not positive definite.

    ``lower`` has the lower triangle of K, in Fortran order. It is overwritten.
    """
    if not isinstance(lower, np.ndarray):
        return torch_triangles.cholesky(lower, shift, overwrite=True)
    lower.flat[:: len(lower) + 1] += shift
    R, failed = dpotrf(lower, lower=1, overwrite_a=1)
    return None if failed else R


def solve_both(R: Array, B: Any) -> tuple[Any, Any]:
    """Return R⁻¹B and (RRᵀ)⁻¹B for a lower triangle R; 2n² flops per column of B, which may be overwritten."""
    if not isinstance(R, np.ndarray) and torch_triangles.uses_panels(R):
        return torch_triangles.solve_twice(R, B)
    half = solve_lower(R, np.asfortranarray(B) if isinstance(B, np.ndarray) else B)
    return half, solve_transposed(R, half)


class PivotedCholesky(NamedTuple):
    """K = Ψ Ψᵀ with Ψ of full column rank, from the ``rank`` rows that span all others."""

    factor: Array  # (n, r)  Ψ, rows in the order of K
    pivots: NDArray[np.intp]  # (r,)   the spanning rows: Ψ[pivots] = triangle, lower triangular

    @property
    def triangle(self) -> Array:
        """The (r, r) lower triangle of the spanning rows."""
        return take_rows(self.factor, self.pivots)


def pivoted_cholesky(K: Array, tolerance: float = 0.0, overwrite: bool = False) -> PivotedCholesky:
    """Factor a positive semi-definite K = Ψ Ψᵀ with as many columns as K has rank.

    LAPACK's ``dpstrf``: n²r flops, in place on one copy of K, or on K itself with ``overwrite``. It stops when the
    largest remaining pivot is below the tolerance, which is at least n·ε·max k(y,y). Each row of K is reproduced to
    about that accuracy. A matrix that is a Gram matrix only up to single precision is factored to that precision.

    Raises
    ------
    NotPositiveSemidefiniteError
        If the remainder of K after the last pivot is larger than a rounding error.
    """
    n = len(K)
    xp = array_namespace(K)
    scale = float(xp.max(xp.linalg.diagonal(K)))
    if scale <= 0:
        if xp.any(K != 0):
            raise NotPositiveSemidefiniteError(f"the largest diagonal entry is {scale:.3g}, yet the matrix is not zero")
        return PivotedCholesky(K[:, :0], np.empty(0, dtype=np.intp))
    workspace = (K.T if isinstance(K, np.ndarray) else K) if overwrite else _copy(K)
    tolerance = max(tolerance, n * np.finfo(float).eps * scale)
    exact, exact_error = _pivoted(workspace, tolerance)
    if exact_error <= max(INDEFINITE * scale, 4 * tolerance):
        return exact
    coarse = 2 * np.sqrt(n) * SINGLE * scale
    rounded, error = _pivoted(workspace, coarse)
    if error <= 4 * coarse:
        return rounded
    raise NotPositiveSemidefiniteError(
        f"after {len(rounded.pivots)} of {n} pivots a part of size {error:.3g} is left that no Gram matrix has"
    )


def _copy(K: Array) -> Array:
    """Return a copy; arrays are copied to Fortran order."""
    return np.array(K, order="F") if isinstance(K, np.ndarray) else 1.0 * K


def _pivoted(K: Array, tolerance: float) -> tuple[PivotedCholesky, float]:
    """Factor K with pivots above the tolerance; return the factor and an error.

    The error is the size of the part of K − ΨΨᵀ that no Gram matrix has. K, in Fortran order, is the workspace and is
    restored at the end.
    """
    if not isinstance(K, np.ndarray):
        values, pivots, error = torch_triangles.pivoted_cholesky(K, tolerance)
        return PivotedCholesky(values, pivots), error
    n = len(K)
    diagonal = np.diagonal(K).copy()
    probe = np.random.default_rng(0).standard_normal(n)
    image = K @ probe
    packed, order, rank, _ = dpstrf(K, tol=tolerance, lower=1, overwrite_a=1)
    order = order.astype(np.intp) - 1  # LAPACK counts from one
    factor = np.empty((n, rank))
    factor[order] = packed[:, :rank]
    _restore_below_diagonal(K, diagonal)
    # Row order[i] is row i of a lower triangle; LAPACK leaves other numbers above its diagonal.
    for i, row in enumerate(order[:rank]):
        factor[row, i + 1 :] = 0
    # If K is a Gram matrix, so is K − ΨΨᵀ: no diagonal entry is negative, and a row with diagonal entry 0 is zero.
    remainder = diagonal - np.einsum("ij,ij->i", factor, factor)
    beside = np.abs(image - factor @ (factor.T @ probe)) / np.sqrt(n)
    return PivotedCholesky(factor, order[:rank]), max(-float(np.min(remainder)), float(np.max(beside)))


class SpanningCholesky(NamedTuple):
    """LLᵀ = K[kept][:, kept], where the rows ``kept`` span all others up to a tolerance."""

    kept: NDArray[np.intp]  # (r,)
    triangle: Array  # (r, r)  L, lower triangular, in Fortran order


def spanning_cholesky(K: Array, tolerance: float) -> SpanningCholesky:
    """Factor a Gram matrix and drop the rows that others span; K is overwritten.

    If every pivot is above the tolerance, this is a plain Cholesky factorization, n³/3 flops in place. Otherwise it is
    done with pivots, which stops at the tolerance and is about twice as slow. In both cases a triangular solve with L
    amplifies an error by at most about 1/√tolerance, so no jitter is added to K.
    """
    if not isinstance(K, np.ndarray):
        whole = torch_triangles.cholesky(K, 0.0)
        if whole is not None and float(whole.diagonal().min()) ** 2 > tolerance:
            return SpanningCholesky(np.arange(len(K)), whole)
        del whole
        found = pivoted_cholesky(K, tolerance, overwrite=True)
        return SpanningCholesky(found.pivots, found.triangle)
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
    """Restore a symmetric matrix whose lower triangle was overwritten, from its upper triangle and its diagonal."""
    for j in range(len(K)):
        K[j + 1 :, j] = K[j, j + 1 :]
        K[j, j] = diagonal[j]


def solve_lower(L: Array, B: Any) -> Any:
    """Return L⁻¹ B for a lower triangle L (r, r) and B (r, b), both in Fortran order; B is overwritten."""
    if 0 in B.shape:
        return B
    if not isinstance(B, np.ndarray):
        return torch_triangles.solve_triangle(L, B)
    return (strsm if B.dtype == np.float32 else dtrsm)(1.0, L, B, lower=1, overwrite_b=1)


def solve_transposed(L: Array, B: Array) -> Array:
    """Return L⁻ᵀ B for a lower triangle L (r, r) and B (r, b)."""
    if 0 in B.shape:
        return B
    if not isinstance(B, np.ndarray):
        if torch_triangles.uses_panels(L):
            return torch_triangles.solve_transposed(L, B)
        return torch_triangles.solve_triangle(L, B, transposed=True)
    return solve_triangular(L, B, trans="T", lower=True, check_finite=False)
