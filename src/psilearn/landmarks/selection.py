"""The choice of objects that become landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dtrtri
from sklearn.base import BaseEstimator

from psilearn._backend import Compute, array_namespace, current_compute, take_rows, to_numpy
from psilearn._distributed import concat_chunks
from psilearn._linalg import Array, ShiftedCholesky, row_products, solve_lower
from psilearn._utils import validation
from psilearn._utils.progress import stage
from psilearn._utils.samples import Index, Samples, check_collection, n_samples, take
from psilearn.kernels import Kernel

METHODS = ("uniform", "kmeans++", "leverage", "pivoted")
OUTPUT_METHODS = (*METHODS, "labeled")
MAX_PILOT = 1000  # objects that leverage scores are estimated from
SAMPLING_ROUNDS = 8  # of k-means++
MIN_POOL = 10_000  # objects that landmarks are chosen from if not all are considered
MAX_PROPOSALS = 100  # pivots that are proposed at a time
POOL_SHARE = 8  # times as many objects as landmarks whose kernel values a GPU computes all at once
PIVOT_FLOOR = 1e-6  # relative size of a diagonal entry that is not distinguished from zero in single precision


def pool_size(n: int) -> int:
    """Return how many objects to consider for n landmarks."""
    return max(MIN_POOL, 4 * n)


class Landmarks(BaseEstimator):
    """The number of landmarks and the method that chooses them.

    Parameters
    ----------
    n : int
        The number of landmarks: all objects if there are fewer, and at most as many as are linearly independent.
    method : {"uniform", "kmeans++", "leverage", "pivoted", "labeled"}, default="uniform"
        How landmarks are chosen among N objects:

        - "uniform": at random, at no cost.
        - "kmeans++": in rounds, with probability proportional to the squared distance to the nearest landmark so far;
          N·n kernel values, on a random pool of at most N = max(10n, 10,000) objects.
        - "leverage": with probability proportional to the approximate ridge leverage score k(a, a) − k(a, P)(k(P, P) +
          |P|λI)⁻¹k(P, a), estimated from a uniform pilot sample P of at most 1000 objects; N·|P|² flops.
        - "pivoted": randomly pivoted Cholesky: each landmark with probability proportional to the part of it that the
          previous ones do not span. It has the smallest approximation error of the four; N·n² flops and N·n float32
          numbers, on a random pool of at most N = max(4n, 10,000) objects.
        - "labeled", for outputs only: all distinct labeled outputs, so that the regression loses nothing, and
          unlabeled ones at random up to n.
    random_state : int, RandomState or None, default=0
        The random seed of the choice.

    See Also
    --------
    psilearn.OEL : Takes landmarks as ``input_landmarks`` and ``output_landmarks``.

    References
    ----------
    Arthur and Vassilvitskii, *k-means++*, 2007; Rudi, Calandriello, Carratino and Rosasco, *On fast leverage score
    sampling and optimal learning*, 2018; Chen, Epperly, Tropp and Webber, *Randomly pivoted Cholesky*, 2024.

    Examples
    --------
    >>> from psilearn import OEL, Landmarks
    >>> OEL(input_landmarks=Landmarks(2000, "leverage"), output_landmarks=500).input_landmarks.n
    2000
    """

    def __init__(self, n: int, method: str = "uniform", random_state: Any = 0) -> None:
        self.n = n
        self.method = method
        self.random_state = random_state

    def choose(
        self, kernel: Kernel, A: Samples, *, alpha: float = 1.0, n_labeled: int = 0, compute: Compute | None = None
    ) -> Index:
        """Choose landmarks among objects.

        Parameters
        ----------
        kernel : Kernel
            The kernel, fitted if it takes a width from data.
        A : array, CSR matrix or sequence of N objects
            The objects. The first ``n_labeled`` ones are labeled outputs.
        alpha : float, default=1.0
            The ridge parameter λ of leverage scores.
        n_labeled : int, default=0
            The number of labeled outputs, for ``method="labeled"``.
        compute : Compute, default=None
            Precision and device. By default as set by :func:`psilearn.computing`.

        Returns
        -------
        ndarray of shape (n,)
            The row numbers of the landmarks, ascending.

        See Also
        --------
        Landmarks : The methods and their costs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import Landmarks
        >>> from psilearn.kernels import Linear
        >>> Landmarks(2, "pivoted").choose(Linear(), np.eye(3)).shape
        (2,)
        """
        size = check_collection(A, "A")
        A = A.tocsr() if sparse.issparse(A) else A
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel of psilearn.kernels; got {kernel!r:.80}.")
        self._check()
        alpha, n_labeled = validation.check_positive(alpha, "alpha"), validation.check_index(n_labeled, "n_labeled")
        if self.method == "labeled" and self.n < n_labeled:
            raise ValueError(
                f'Landmarks({self.n}, "labeled") is fewer than the {n_labeled} distinct labeled outputs: give at least '
                f"that many, or another method."
            )
        if self.n >= size:
            return np.arange(size)
        if self.method == "labeled":
            rng = validation.as_random_state(self.random_state)
            others = n_labeled + rng.choice(size - n_labeled, self.n - n_labeled, replace=False)
            return np.concatenate([np.arange(n_labeled), np.sort(others)])
        with stage(f"choice of {self.n:,} landmarks among {size:,}"):
            return np.sort(self._sample(kernel, A, alpha, current_compute() if compute is None else compute))

    def _check(self, name: str = "") -> None:
        """Raise an error about an invalid parameter; ``name`` is the parameter of an estimator that has it."""
        of_name = f" of {name}" if name else ""
        validation.check_count(self.n, f"n{of_name}")
        validation.check_option(
            self.method, METHODS if name == "input_landmarks" else OUTPUT_METHODS, f"method{of_name}"
        )
        validation.as_random_state(self.random_state, f"random_state{of_name}")

    def _sample(self, kernel: Kernel, A: Samples, alpha: float, compute: Compute) -> Index:
        size, rng = n_samples(A), validation.as_random_state(self.random_state)
        if self.method == "uniform":
            return rng.choice(size, self.n, replace=False)
        if self.method == "leverage":
            scores = _leverage_scores(kernel, A, min(self.n, MAX_PILOT), alpha, rng, compute)
            return weighted_sample(scores, self.n, rng)
        is_pivoted = self.method == "pivoted"
        pool = rng.choice(
            size, min(size, pool_size(self.n) if is_pivoted else max(MIN_POOL, 10 * self.n)), replace=False
        )
        sample = sample_pivots if is_pivoted else _sample_by_distance
        return pool[sample(kernel, take(A, pool), self.n, rng, compute)]


def as_landmarks(value: Any, name: str, method: str) -> Landmarks | None:
    """Return the value of a landmark parameter: None, a number (chosen by ``method``) or :class:`Landmarks`."""
    if value is None:
        return None
    landmarks = value if isinstance(value, Landmarks) else Landmarks(validation.check_count(value, name), method)
    landmarks._check(name)
    return landmarks


def _sample_by_distance(kernel: Kernel, A: Samples, n: int, rng: np.random.RandomState, compute: Compute) -> Index:
    """Sample in rounds by the squared distance |ψ(a) − ψ(s)|² to the nearest landmark so far."""
    size = n_samples(A)
    A = kernel.to_device(A, compute)
    lengths = kernel.diag(A)
    distances = np.full(size, np.inf)
    batch = -(-n // SAMPLING_ROUNDS)
    chosen = new = rng.choice(size, min(batch, n), replace=False)
    while len(chosen) < n:
        nearest = _nearest_landmarks(A, kernel, take(A, new), lengths[new], compute)
        distances = np.minimum(distances, nearest + lengths)
        distances[chosen] = 0
        new = weighted_sample(np.maximum(distances, 0), min(batch, n - len(chosen)), rng)
        new = new[~np.isin(new, chosen)]
        if not len(new):  # every object is at distance zero of a landmark
            rest = np.setdiff1d(np.arange(size), chosen)
            new = rng.choice(rest, n - len(chosen), replace=False)
        chosen = np.concatenate([chosen, new])
    return chosen


def _nearest_landmarks(A: Samples, kernel: Kernel, S: Samples, lengths: Array, compute: Compute) -> Array:
    """Return min over s in S of k(s, s) − 2k(a, s) for each object a, in blocks."""
    nearest = np.empty(n_samples(A))
    with compute.active():
        S, S_lengths = kernel.to_device(S, compute), compute.asarray(lengths, compute.dtype)
        for rows in compute.iter_blocks(len(nearest), 2 * 8 * len(lengths)):
            partial = kernel(take(A, rows), S, compute=compute) * -2
            partial += S_lengths
            nearest[rows] = to_numpy(array_namespace(partial).min(partial, axis=1))
    return nearest


def _leverage_scores(
    kernel: Kernel, A: Samples, n_pilot: int, alpha: float, rng: np.random.RandomState, compute: Compute
) -> Array:
    """Return k(a, a) − k(a, P)(k(P, P) + |P|λI)⁻¹k(P, a) for each object, with a uniform pilot sample P."""
    size, compute = n_samples(A), compute.with_dtype(np.float64)
    A = kernel.to_device(A, compute)
    pilot = take(A, np.sort(rng.choice(size, n_pilot, replace=False)))
    rounding = n_pilot * float(np.finfo(float).eps) * float(kernel.diag(pilot).max())
    return concat_chunks(_remaining_lengths, A, common=(kernel, pilot, n_pilot * max(alpha, rounding), compute))


def _remaining_lengths(A: Samples, kernel: Kernel, pilot: Samples, ridge: float, compute: Compute) -> Array:
    """Return k(a, a) − k(a, P)(k(P, P) + ridge·I)⁻¹k(P, a) for each object a, not below zero, in blocks."""
    captured = np.empty(n_samples(A))
    with compute.active():
        pilot = kernel.to_device(pilot, compute)
        system = ShiftedCholesky(kernel(pilot, compute=compute), ridge)
        for rows in compute.iter_blocks(len(captured), 3 * 8 * n_samples(pilot)):
            K = kernel(take(A, rows), pilot, compute=compute)
            captured[rows] = to_numpy(row_products(K, system.solve(K.T).T))
        return np.maximum(kernel.diag(A) - captured, 0)


# Randomly pivoted Cholesky factorization: landmarks with probability proportional to what others do not span.
#
# Chen, Epperly, Tropp and Webber, *Randomly pivoted Cholesky*, 2024; Epperly, Tropp and Webber, *Embrace rejection:
# Kernel matrix approximation by accelerated randomly pivoted Cholesky*, 2024.
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
