"""Randomly pivoted Cholesky factorization: landmarks with probability proportional to what others do not span.

Chen, Epperly, Tropp and Webber, *Randomly pivoted Cholesky*, 2024; Epperly, Tropp and Webber, *Embrace rejection:
Kernel matrix approximation by accelerated randomly pivoted Cholesky*, 2024.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from psilearn._backend import Compute, take_rows, to_numpy
from psilearn._linalg import Array, row_products, solve_lower
from psilearn._utils.samples import Index, Samples, n_samples, take
from psilearn.kernels import Kernel

MAX_PROPOSALS = 100  # pivots that are proposed at a time
POOL_SHARE = 8  # times as many objects as landmarks whose kernel values a GPU computes all at once
PIVOT_FLOOR = 1e-6  # relative size of a diagonal entry that is not distinguished from zero in single precision


def weighted_sample(weights: Array, n: int, rng: np.random.RandomState) -> Index:
    """Return n different indices, drawn with these weights; if too few weights are positive, others at random."""
    positive = np.flatnonzero(weights > 0)
    if len(positive) > n:
        return rng.choice(positive, n, replace=False, p=weights[positive] / np.sum(weights[positive]))
    others = np.setdiff1d(np.arange(len(weights)), positive)
    return np.concatenate([positive, rng.choice(others, n - len(positive), replace=False)])


def sample_pivots(kernel: Kernel, A: Samples, n: int, rng: np.random.RandomState, compute: Compute) -> Index:
    """Sample pivots of a Cholesky factorization k(A, A) ≈ FFᵀ with probability proportional to the remaining diagonal.

    Pivots are proposed in blocks, and each is accepted with the probability that remains of it after the ones accepted
    before it: the same distribution as one at a time, at the speed of matrix products.
    """
    compute = compute.with_dtype(np.float64)  # kernel values may be of any size, F is not
    A = kernel.to_device(A, compute)
    rest = kernel.diag(A)
    scale = float(rest.max())
    if scale <= 0:
        return np.zeros(1, dtype=np.intp)  # every object has length zero: one represents all
    with np.errstate(over="ignore"):  # NumPy 1.26 reports an overflow for a tiny scale, although rest ≤ scale
        rest = rest / scale
    size = n_samples(A)
    at_once = compute.on_gpu and POOL_SHARE * n >= size and compute.block_rows(4 * 8 * size, size) == size
    pool = PoolKernel(kernel, A, scale, at_once and kernel.supports_torch, compute)
    F = compute.zeros((size, n), np.float32)
    chosen: list[int] = []
    while len(chosen) < n and np.any(rest > PIVOT_FLOOR):
        rest[rest <= PIVOT_FLOOR] = 0
        proposed = weighted_sample(rest, min(MAX_PROPOSALS, int(np.sum(rest > 0))), rng)
        known = F[:, : len(chosen)]
        remaining, rows = _remainders(pool, known, proposed, compute)
        accepted, L = accept_pivots(to_numpy(remaining), rng)
        accepted = accepted[: n - len(chosen)]
        new = proposed[accepted]
        if not len(new):  # the remainder of all proposals was rounding
            rest[proposed] = 0
            continue
        columns = pool.columns(new)
        columns -= known @ take_rows(rows, accepted).T
        columns = _divide_by_triangle(columns, L[: len(new), : len(new)], compute)
        F[:, len(chosen) : len(chosen) + len(new)] = columns
        rest -= to_numpy(row_products(columns, columns))
        rest[new] = 0
        chosen.extend(new)
    return np.array(chosen, dtype=np.intp)


def _remainders(pool: PoolKernel, known: Any, proposed: Index, compute: Compute) -> tuple[Any, Any]:
    """Return the Gram matrix (b, b) of what the factor (N, k) leaves of the proposals, and their rows of the factor."""
    index = proposed if compute.device is None else compute.asarray(proposed)
    rows = known[index]
    return pool.among(index) - rows @ rows.T, rows


def _divide_by_triangle(columns: Any, L: Any, compute: Compute) -> Any:
    """Return columns·L⁻ᵀ for float32 columns (N, b), on a GPU by a product with the inverse."""
    if compute.on_gpu:
        inverse, _ = dtrtri(L, lower=1)
        return columns @ compute.asarray(np.tril(inverse).T, np.float32)
    return solve_lower(compute.asarray(np.asfortranarray(L), np.float32), columns.T).T


class PoolKernel:
    """Kernel values of the objects that pivots are chosen from, divided by a scale.

    On a GPU all of them are computed at once if they fit, and kept in float32: many small blocks take longer.
    """

    def __init__(self, kernel: Kernel, A: Samples, scale: float, at_once: bool, compute: Compute) -> None:
        self.kernel, self.A, self.scale, self.compute = kernel, A, scale, compute
        self.gram = None  # (N, N)
        if at_once:
            values = kernel(A, compute=compute)
            values /= scale
            self.gram = compute.asarray(values, np.float32)

    def among(self, index: Any) -> Any:
        """Return the kernel values of some objects with each other, (b, b)."""
        if self.gram is None:
            return self.kernel(take(self.A, to_numpy(index)), compute=self.compute) / self.scale
        return self.gram[index][:, index]

    def columns(self, index: Index) -> Any:
        """Return the kernel values of all objects with some in float32, (N, b), as a new array."""
        if self.gram is None:
            values = self.kernel(self.A, take(self.A, index), compute=self.compute)
            return self.compute.asarray(values / self.scale, np.float32)
        return take_rows(self.gram, index).T


def accept_pivots(remaining: Array, rng: np.random.RandomState) -> tuple[Index, Array]:
    """Return which proposals to accept, from the (b, b) Gram matrix of their remainders, and its factor over them.

    Proposal j is accepted if what the ones accepted before it leave of its diagonal entry exceeds a random share of
    that entry. Most are: all are factored, and again without the first one that is not accepted, until there is none.
    """
    diagonal = np.diagonal(remaining)
    thresholds = np.maximum(rng.random_sample(len(diagonal)) * diagonal, PIVOT_FLOOR)
    kept = np.arange(len(diagonal))
    while len(kept):
        L, failed = dpotrf(remaining[np.ix_(kept, kept)], lower=1)
        n_valid = failed - 1 if failed else len(kept)  # pivots before the first one that is not positive
        pivots = np.diagonal(L)[:n_valid] ** 2
        rejected = np.flatnonzero(pivots <= thresholds[kept[:n_valid]])
        first = int(rejected[0]) if len(rejected) else n_valid
        if first == len(kept):
            return kept, L
        kept = np.delete(kept, first)
    return kept, np.empty((0, 0))
