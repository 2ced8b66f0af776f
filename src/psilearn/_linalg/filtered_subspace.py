"""Leading eigenvectors of a matrix on a GPU by subspace iteration with Chebyshev polynomials.

A dense eigensolver reduces the matrix to a tridiagonal one, in as many steps as it has rows, and a GPU waits for each
of them. Here nearly all work is in products with a block, which are fast: of the polynomials of degree d that are at
most 1 on [0, a], the Chebyshev polynomial T_d(2x/a − 1) grows most beyond a. With a at the smallest eigenvalue of the
block it turns the block towards the wanted eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isfinite, log, sqrt
from typing import Any

from psilearn._backend import array_namespace
from psilearn._linalg.block_krylov import RESIDUAL, orthonormalize

FIRST_PRODUCTS = 3  # with the matrix, before the first Ritz vectors
SPARE_DEGREES = 3  # beyond the estimate, whose interval ends too early in the first round: Ritz vectors cost more
MAX_DEGREE = 30  # of what may be left to do after the first Ritz vectors, and of a round
MAX_ROUNDS = 10
MAX_SPREAD = 1e14  # by which the polynomial may magnify one wanted vector more than another: rounding errors too


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
