"""Models that turn features of candidates into probabilities: conditional logits, and one of known molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from psilearn.utils import Index
from psilearn_chem.molecules.fingerprints import Bits

# A candidate with the features f has the probability exp(w·f)/Σ exp(w·f'), the sum over all candidates of its query.
# The weights w maximize the mean log-probability of the true candidates minus a ridge penalty, which is a concave
# problem.
#
# A few queries whose true candidate has a low score would dominate these weights. The mixture of this softmax with a
# flat one, (1 − ε) softmax(w·f) + ε softmax(τ w·f), has the same order of candidates and leaves room for such queries.

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


# Most molecules of a library were never measured, and those that are differ from the others of their formula. A
# conditional logit on the bits of fingerprints learns this from the molecules of the training spectra, each among the
# molecules of its formula.


MAX_PRIOR_CANDIDATES = 40  # per molecule, drawn at random, the true one among them
PRIOR_RIDGE = 1e-3
MAX_ROWS = 4096  # molecules whose bytes are looked up at once


@dataclass(frozen=True)
class MoleculePrior:
    """The logarithm of the probability that a molecule is the measured one, up to a constant: one weight per bit."""

    weights: Array  # (8 b,)  of the unpacked bits

    @classmethod
    def fit(cls, sets: Sequence[Bits], truth: Index, seed: int, ridge: float = PRIOR_RIDGE) -> MoleculePrior:
        """Learn from the candidates of labeled spectra, and the index of the true one; one spectrum per molecule."""
        rng = np.random.default_rng(seed)
        chosen = [_thin(candidates, index, rng) for candidates, index in zip(sets, truth, strict=True)]
        bits = sparse.vstack([sparse.csr_matrix(np.unpackbits(rows, axis=1)) for rows in chosen], format="csr")
        sizes = np.array([len(rows) for rows in chosen])
        lists = Lists(bits.astype(np.float64), sizes, np.zeros(len(sizes), dtype=np.intp))
        return cls(fit_logit(lists, ridge))

    @cached_property
    def _byte_scores(self) -> Array:
        """The sum of the weights of the bits of each value of each byte, of shape (b, 256)."""
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
        return np.asarray(self.weights.reshape(-1, 8) @ bits.T)

    def __call__(self, bits: Bits) -> Array:
        """Return the scores of molecules with these packed fingerprints, of shape (n,)."""
        bytes_ = np.arange(bits.shape[1])
        parts = range(0, len(bits), MAX_ROWS)
        scores = [self._byte_scores[bytes_, bits[start : start + MAX_ROWS]].sum(axis=1) for start in parts]
        return np.concatenate(scores) if scores else np.empty(0)


def _thin(candidates: Bits, truth: int, rng: np.random.Generator) -> Bits:
    """Return the true candidate, followed by some of the others."""
    others = np.setdiff1d(np.arange(len(candidates)), [truth])
    n_others = min(len(others), MAX_PRIOR_CANDIDATES - 1)
    return candidates[np.append(truth, rng.choice(others, n_others, replace=False))]


# Known molecules, those with reference spectra, cannot be ranked like new ones: their spectra attract the prediction,
# which is right if they match and misleading otherwise. A logistic regression therefore decides for each known
# candidate whether it is the truth, from the match of its reference spectra and from how far it is ahead of the new
# candidates. Its inputs interact (a lead counts less if the spectra do not match), so it is quadratic. Given that the
# truth is new, the new candidates have the probabilities of a conditional logit that is fitted to new molecules only.
#
# If oᶜ are the odds of the known candidates, candidate c has the probability oᶜ/(1 + Σo), and the new ones together
# 1/(1 + Σo). Queries whose candidates are all known are ranked by ``CandidateModel``.

Mask = NDArray[np.bool_]

OWN_INPUTS = ("pull", "records", "embedding", "prior", "neighbor")  # features of the candidate
LEAD_INPUTS = ("embedding_lead", "lead", "lead_over_all", "best_new", "candidates")
INPUTS = (*OWN_INPUTS, *LEAD_INPUTS)
INVERSE_RIDGE = 0.1
MAX_KNOWN_ITERATIONS = 3000


def known_inputs(features: Mapping[str, Array], scores: Array, is_known: Mask) -> Array:
    """Return the inputs of the known candidates of a query, of shape (known candidates, inputs).

    ``scores`` are those of the conditional logit for new molecules. There must be a known and a new candidate. The
    leads are the distance in the output space compared with the nearest new candidate, and the score compared with the
    highest and with the logarithm of the sum of the exponentials of those of the new ones.
    """
    known, new = scores[is_known], scores[~is_known]
    embedding = features["embedding"]
    log_p = mixture_log_probabilities(new, np.array([len(new)]))
    leads = (
        embedding[is_known] - embedding[~is_known].max(),
        known - new.max(),
        known - np.logaddexp.reduce(new),
        np.full(len(known), log_p.max()),
        np.full(len(known), np.log(len(scores))),
    )
    return np.stack([*(features[name][is_known] for name in OWN_INPUTS), *leads], axis=1)


@dataclass(frozen=True)
class KnownMolecules:
    """A quadratic logistic regression on the inputs of known candidates."""

    means: Array  # (d,)
    scales: Array  # (d,)
    limits: Array  # (2, d)  smallest and largest standardized inputs of the fit, beyond which they are cut off
    coefficients: Array  # (1 + d + d(d+1)/2,)  of 1, of the standardized inputs, and of their products

    def __post_init__(self) -> None:
        d = len(INPUTS)
        shapes = self.means.shape, self.scales.shape, self.limits.shape, self.coefficients.shape
        if shapes != ((d,), (d,), (2, d), (1 + d + d * (d + 1) // 2,)):
            raise ValueError(f"its model of known molecules has shapes {shapes}")

    @classmethod
    def fit(cls, inputs: Array, is_true: Mask) -> KnownMolecules:
        """Learn from known candidates of out-of-fold queries, and whether each is the truth."""
        means, scales = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-12)
        standard = (inputs - means) / scales
        terms = _expand(standard)[:, 1:]
        center, spread = terms.mean(axis=0), np.maximum(terms.std(axis=0), 1e-12)
        model = LogisticRegression(C=INVERSE_RIDGE, max_iter=MAX_KNOWN_ITERATIONS).fit(
            (terms - center) / spread, is_true
        )
        weights = model.coef_[0] / spread
        limits = np.stack([standard.min(axis=0), standard.max(axis=0)])
        return cls(means, scales, limits, np.append(model.intercept_[0] - weights @ center, weights))

    def __call__(self, inputs: Array) -> Array:
        """Return the logarithm of the odds that each candidate is the truth."""
        standard = np.clip((inputs - self.means) / self.scales, *self.limits)  # squares grow without bounds
        return np.asarray(_expand(standard) @ self.coefficients)

    def log_probabilities(self, features: Mapping[str, Array], scores: Array, is_known: Mask) -> Array:
        """Return the log-probabilities of all candidates of a query, given the scores of the logit for new ones.

        At least one candidate must be new.
        """
        if not is_known.any():
            return mixture_log_probabilities(scores, np.array([len(scores)]))
        log_odds = self(known_inputs(features, scores, is_known))
        total = np.logaddexp.reduce(np.append(log_odds, 0.0))
        log_p = np.empty(len(scores))
        log_p[is_known] = log_odds - total
        new = scores[~is_known]
        log_p[~is_known] = mixture_log_probabilities(new, np.array([len(new)])) - total
        return log_p


def _expand(inputs: Array) -> Array:
    """Return 1, the inputs and their products, of shape (n, 1 + d + d(d+1)/2)."""
    first, second = np.triu_indices(inputs.shape[1])
    return np.column_stack([np.ones(len(inputs)), inputs, inputs[:, first] * inputs[:, second]])


REFERENCE_FEATURES = ("reference", "evidence", "pull")
FRAGMENT_FEATURES = ("explained", "explained_cheaply")
NEIGHBOR_FEATURES = ("neighbors", "neighbor")
NEW_FEATURES = ("embedding", "prior", *NEIGHBOR_FEATURES, *FRAGMENT_FEATURES)
FEATURES = (*NEW_FEATURES, *REFERENCE_FEATURES)


def score_with(weights: Mapping[str, float], features: Mapping[str, Array]) -> Array:
    """Return the sum of features times their weights; features without a weight count 0."""
    total = np.zeros(len(features["embedding"]))
    for name, weight in weights.items():
        if name in features:
            total += weight * features[name]
    return total


@dataclass(frozen=True)
class CandidateModel:
    """Weights of a conditional logit over all candidates or, with a model of known molecules, over the new ones."""

    weights: Mapping[str, float]
    known: KnownMolecules | None = None

    def log_probabilities(self, features: Mapping[str, Array]) -> Array:
        """Return the log-probabilities of the candidates of a query."""
        scores = score_with(self.weights, features)
        is_known = features["reference"] > 0
        if self.known is None:
            return mixture_log_probabilities(scores, np.array([len(scores)]))
        if is_known.all():
            scores = self._scores_of_known(features)
            return mixture_log_probabilities(scores, np.array([len(scores)]))
        return self.known.log_probabilities(features, scores, is_known)

    def _scores_of_known(self, features: Mapping[str, Array]) -> Array:
        """Return scores of candidates that all have reference spectra, so that none of them is new.

        Evidence is a logarithm of likelihoods and is added. Neighbors are left out: the references of a candidate are
        neighbors of its isomers, but not of itself.
        """
        weights = {name: weight for name, weight in self.weights.items() if name not in NEIGHBOR_FEATURES}
        return score_with(weights, features) + features["records"]
