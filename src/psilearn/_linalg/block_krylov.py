"""Leading eigenvectors by block Krylov iteration, which uses an operator only through its products with blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psilearn._backend import array_namespace, is_tensor
from psilearn._linalg.cholesky import shifted_factor, solve_lower

RESIDUAL = 1e-10  # |Mv − μv| / μ₁ at which an eigenpair has converged
FIRST_CHECK = 6  # blocks after which Ritz pairs are computed for the first time
MAX_DEPTH = 12  # blocks of a cycle


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
