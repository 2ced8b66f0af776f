"""The conditional logit: probabilities of the candidates of a query, from features of each candidate.

A candidate with the features f has the probability exp(w·f)/Σ exp(w·f'), the sum over all candidates of its query. The
weights w maximize the mean log-probability of the true candidates minus a ridge penalty, which is a concave problem.

A few queries whose true candidate has a low score would dominate these weights. The mixture of this softmax with a flat
one, (1 − ε) softmax(w·f) + ε softmax(τ w·f), has the same order of candidates and leaves room for such queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from psilearn.utils import Index

Array = NDArray[np.float64]

MAX_ITERATIONS = 200
FLAT_SHARE = 0.3  # ε
FLATNESS = 0.2  # τ


@dataclass(frozen=True)
class Lists:
    """The features of the candidates of q queries, one query after another."""

    features: Any  # (N, d)  array or CSR matrix, one row per candidate
    sizes: Index  # (q,)  number of candidates of each query, at least 1
    truth: Index  # (q,)  index of the true candidate among those of its query
    weights: Array | None = None  # (q,)  weight of each query; None: all equal

    def __post_init__(self) -> None:
        if self.features.shape[0] != int(np.sum(self.sizes)) or len(self.sizes) != len(self.truth):
            raise ValueError(
                f"features have {self.features.shape[0]} rows, but sizes add up to {int(np.sum(self.sizes))}; there "
                f"are {len(self.sizes)} sizes and {len(self.truth)} true candidates."
            )

    @property
    def starts(self) -> Index:
        """The row of the first candidate of each query, of shape (q,)."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def shares(self) -> Array:
        """The weight of each query, of shape (q,); the sum is 1."""
        weights = np.ones(len(self.sizes)) if self.weights is None else self.weights
        return np.asarray(weights / np.sum(weights))


def log_probabilities(scores: Array, sizes: Index) -> Array:
    """Return scores minus the logarithm of the sum of their exponentials over the candidates of each query."""
    starts = np.cumsum(sizes) - sizes
    shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), sizes)
    totals = np.add.reduceat(np.exp(shifted), starts)
    return np.asarray(shifted - np.repeat(np.log(totals), sizes))


def mixture_log_probabilities(scores: Array, sizes: Index) -> Array:
    """Return log((1 − ε) softmax(scores) + ε softmax(τ scores)) for the candidates of each query."""
    sharp, flat = log_probabilities(scores, sizes), log_probabilities(FLATNESS * scores, sizes)
    return np.logaddexp(np.log(1 - FLAT_SHARE) + sharp, np.log(FLAT_SHARE) + flat)


def loss_and_gradient(w: Array, lists: Lists, ridge: float, flat_share: float = 0.0) -> tuple[float, Array]:
    """Return −Σ share · log-probability of the truth + ridge/2 |w|², and its gradient.

    With ``flat_share`` = ε > 0, probabilities are those of the mixture, else those of the softmax.
    """
    scores = np.asarray(lists.features @ w)
    truth = lists.starts + lists.truth
    sharp, flat = (np.exp(log_probabilities(factor * scores, lists.sizes)) for factor in (1.0, FLATNESS))
    p = (1 - flat_share) * sharp[truth] + flat_share * flat[truth]
    of_sharp = lists.shares * (1 - flat_share) * sharp[truth] / p
    of_flat = lists.shares * flat_share * flat[truth] / p * FLATNESS
    residual = sharp * np.repeat(of_sharp, lists.sizes) + flat * np.repeat(of_flat, lists.sizes)
    residual[truth] -= of_sharp + of_flat
    loss = -float(lists.shares @ np.log(p)) + ridge / 2 * float(w @ w)
    return loss, np.asarray(lists.features.T @ residual) + ridge * w


def fit_logit(lists: Lists, ridge: float, flat_share: float = 0.0) -> Array:
    """Return the weights, of shape (d,); those of the mixture are found from those of the softmax."""
    start = np.zeros(lists.features.shape[1]) if flat_share == 0 else fit_logit(lists, ridge)
    options = {"maxiter": MAX_ITERATIONS, "maxcor": 20}
    arguments = (lists, ridge, flat_share)
    found = minimize(loss_and_gradient, start, arguments, method="L-BFGS-B", jac=True, options=options)
    return np.asarray(found.x, dtype=np.float64)
