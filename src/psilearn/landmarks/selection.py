"""Which objects become landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from psilearn._backend import (
    array_namespace,
    asarray,
    computing_blocks,
    precision,
    rows_of,
    to_host,
    working_dtype,
    zeros,
)
from psilearn._linalg import Array, ShiftedCholesky, row_products, solve_lower
from psilearn._utils import validation
from psilearn._utils.progress import stage
from psilearn._utils.samples import Index, Samples, n_samples, take
from psilearn.kernels.blocks import block, diagonal, resident
from psilearn.kernels.kernel import Kernel

METHODS = ("uniform", "kmeans++", "leverage", "pivoted")
OUTPUT_METHODS = (*METHODS, "labeled")
PILOT = 1000  # objects that leverage scores are estimated from, at the most
ROUNDS = 8  # of sampling by distance
PROPOSALS = 100  # pivots that are proposed together
POOL = 10_000  # objects, at least, that landmarks are chosen from where not all are looked at


def pool_size(n: int) -> int:
    """Return how many objects to look at for n landmarks."""
    return max(POOL, 4 * n)


class Landmarks(BaseEstimator):
    """How many landmarks to take, and how they are chosen.

    Parameters
    ----------
    n : int
        how many at the most: all objects where there are fewer, and no more than are linearly independent.
    method : {"uniform", "kmeans++", "leverage", "pivoted", "labeled"}
        * uniform: at random. Costs nothing.
        * kmeans++: in rounds, with probability proportional to the squared distance to the nearest landmark so far;
          N·n kernel values for N objects.
        * leverage: with probability proportional to the approximate ridge leverage score k(a, a) − k(a, P)(k(P, P) +
          |P|λI)⁻¹k(P, a), estimated from a uniform pilot P of at most 1000 objects; N·|P|² flops.
        * pivoted: randomly pivoted Cholesky, each landmark with probability proportional to what the span of those
          before leaves of it. The smallest span error of the four; N·n² flops and N·n float32 numbers, on a random
          pool of N = max(4n, 10,000) objects at the most.
        * labeled: of outputs only: all distinct labeled ones, so that the regression loses nothing, and unlabeled ones
          at random up to n.
    random_state : int or RandomState
        makes the choice reproducible.

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

    def choose(self, kernel: Kernel, A: Samples, alpha: float, name: str, n_labeled: int = 0) -> Index:
        """Return the row numbers of the landmarks among the objects A, ascending; ``alpha`` is λ for leverage scores.

        ``name`` is the parameter that the kernel came from; the first ``n_labeled`` objects are labeled outputs.
        """
        size = n_samples(A)
        if self.method == "labeled" and self.n < n_labeled:
            raise ValueError(
                f'Landmarks({self.n}, "labeled") is fewer than the {n_labeled} distinct labeled outputs: give that '
                f"many at least, or another method."
            )
        if self.n >= size:
            return np.arange(size)
        if self.method == "labeled":
            rng = check_random_state(self.random_state)
            others = n_labeled + rng.choice(size - n_labeled, self.n - n_labeled, replace=False)
            return np.concatenate([np.arange(n_labeled), np.sort(others)])
        with stage(f"choice of {self.n:,} landmarks among {size:,}"):
            return np.sort(self._sampled(kernel, A, alpha, name))

    def _sampled(self, kernel: Kernel, A: Samples, alpha: float, name: str) -> Index:
        size, rng = n_samples(A), check_random_state(self.random_state)
        if self.method == "uniform":
            return rng.choice(size, self.n, replace=False)
        if self.method == "kmeans++":
            return _far_apart(kernel, A, self.n, rng, name)
        if self.method == "leverage":
            return _sample(_leverage_scores(kernel, A, min(self.n, PILOT), alpha, rng, name), self.n, rng)
        pool = rng.choice(size, min(size, pool_size(self.n)), replace=False)
        return pool[_randomly_pivoted(kernel, take(A, pool), self.n, rng, name)]


def as_landmarks(value: Any, name: str, method: str) -> Landmarks | None:
    """Return what a user gave for a landmark parameter: None, a number (chosen by ``method``) or :class:`Landmarks`."""
    if value is None:
        return None
    landmarks = value if isinstance(value, Landmarks) else Landmarks(validation.check_count(value, name), method)
    validation.check_count(landmarks.n, f"n of {name}")
    methods = OUTPUT_METHODS if name == "output_landmarks" else METHODS
    if landmarks.method not in methods:
        raise ValueError(f"method of {name} must be one of {', '.join(methods)}; got {landmarks.method!r}.")
    return landmarks


def _sample(weights: Array, n: int, rng: np.random.RandomState) -> Index:
    """Return n different numbers, drawn with these weights; where too few weights are positive, others at random."""
    positive = np.flatnonzero(weights > 0)
    if len(positive) > n:
        return rng.choice(positive, n, replace=False, p=weights[positive] / np.sum(weights[positive]))
    others = np.setdiff1d(np.arange(len(weights)), positive)
    return np.concatenate([positive, rng.choice(others, n - len(positive), replace=False)])


def _far_apart(kernel: Kernel, A: Samples, n: int, rng: np.random.RandomState, name: str) -> Index:
    """Sample in rounds by the squared distance |ψ(a) − ψ(s)|² to the nearest landmark so far."""
    size = n_samples(A)
    A = resident(kernel, A)
    lengths = diagonal(kernel, A, name)
    distances = np.full(size, np.inf)
    batch = -(-n // ROUNDS)
    chosen = new = rng.choice(size, min(batch, n), replace=False)
    while len(chosen) < n:
        S = take(A, new)
        for rows in computing_blocks(size, 2 * 8 * len(new)):
            gaps = block(kernel, take(A, rows), S, name) * -2
            gaps += asarray(lengths[new], working_dtype())
            least = to_host(array_namespace(gaps).min(gaps, axis=1))
            distances[rows] = np.minimum(distances[rows], least + lengths[rows])
        distances[chosen] = 0
        new = _sample(np.maximum(distances, 0), min(batch, n - len(chosen)), rng)
        new = new[~np.isin(new, chosen)]
        if not len(new):  # every object is at distance zero of a landmark
            rest = np.setdiff1d(np.arange(size), chosen)
            new = rng.choice(rest, n - len(chosen), replace=False)
        chosen = np.concatenate([chosen, new])
    return chosen


def _leverage_scores(
    kernel: Kernel, A: Samples, n_pilot: int, alpha: float, rng: np.random.RandomState, name: str
) -> Array:
    """Return k(a, a) − k(a, P)(k(P, P) + |P|λI)⁻¹k(P, a) for each object, with a uniform pilot P."""
    size = n_samples(A)
    A = resident(kernel, A)
    pilot = take(A, np.sort(rng.choice(size, n_pilot, replace=False)))
    scores = diagonal(kernel, A, name).copy()
    with precision(np.float64):
        rounding = n_pilot * float(np.finfo(float).eps) * float(scores.max())
        system = ShiftedCholesky(block(kernel, pilot, None, name), n_pilot * max(alpha, rounding))
        for rows in computing_blocks(size, 3 * 8 * n_pilot):
            K = block(kernel, take(A, rows), pilot, name)
            scores[rows] -= to_host(row_products(K, system.solve(K.T).T))
    return np.maximum(scores, 0)


def _randomly_pivoted(kernel: Kernel, A: Samples, n: int, rng: np.random.RandomState, name: str) -> Index:
    """Choose pivots of a Cholesky factorisation k(A, A) ≈ FFᵀ with probability proportional to the rest's diagonal.

    Pivots are proposed in blocks and each is accepted with the probability that remains of it once those accepted
    before it are taken out: the same distribution as one at a time, at the speed of matrix products.
    """
    A = resident(kernel, A)
    rest = diagonal(kernel, A, name)
    scale = float(rest.max())
    if scale <= 0:
        return np.zeros(1, dtype=np.intp)  # every object has length zero: one stands for all
    rest = rest / scale
    floor = 1e-6  # below that single precision sees no difference
    F = zeros((n_samples(A), n), np.float32)
    chosen: list[int] = []
    with precision(np.float64):  # kernel values may be of any size, F is not
        while len(chosen) < n and np.any(rest > floor):
            rest[rest <= floor] = 0
            proposed = _sample(rest, min(PROPOSALS, int(np.sum(rest > 0))), rng)
            known = F[:, : len(chosen)]
            those = rows_of(known, proposed)
            left = to_host(block(kernel, take(A, proposed), None, name)) / scale - to_host(those @ those.T)
            accepted = _accept(left, floor, rng)[: n - len(chosen)]
            new = proposed[accepted]
            if not len(new):  # what seemed to be left of them was rounding
                rest[proposed] = 0
                continue
            L = np.linalg.cholesky(left[np.ix_(accepted, accepted)] + floor * np.eye(len(new)))
            columns = asarray(block(kernel, A, take(A, new), name) / scale, np.float32)
            columns -= known @ rows_of(known, new).T
            columns = solve_lower(asarray(np.asfortranarray(L), np.float32), columns.T).T
            F[:, len(chosen) : len(chosen) + len(new)] = columns
            rest -= to_host(row_products(columns, columns))
            rest[new] = 0
            chosen.extend(new)
    return np.array(chosen, dtype=np.intp)


def _accept(left: Array, floor: float, rng: np.random.RandomState) -> Index:
    """Return which proposals to take, from the (b, b) Gram matrix of what is left of them."""
    thresholds = np.maximum(rng.random_sample(len(left)) * np.diagonal(left), floor)
    accepted = []
    for j, threshold in enumerate(thresholds):
        if left[j, j] > threshold:
            accepted.append(j)
            column = left[:, j] / np.sqrt(left[j, j])
            left = left - np.outer(column, column)
    return np.array(accepted, dtype=np.intp)
