"""Scores of a setting: the squared error in closed form, or any metric of decoded predictions. Higher is better."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer, get_scorer_names

from psilearn import metrics
from psilearn._backend import iter_blocks, tensor_to_numpy, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Distinct, Index, Samples, distinct, n_columns, n_samples, take
from psilearn.decoding import PathDecoder
from psilearn.decoding.path_decoder import DecodedStep
from psilearn.kernels import HierarchicalDice, Kernel
from psilearn.metrics import Mean
from psilearn.metrics.scores import hits

# A function of the true and the predicted outputs and the output kernel: a metrics.Mean if it has one value per pair of
# a true and a predicted output, else a float.
Metric = Callable[[Samples, Samples, Kernel], float]

METRICS = {  # name: function of psilearn.metrics, and −1 if lower is better
    "edit_distance": ("edit_distance", -1),
    "edit_similarity": ("edit_similarity", 1),
    "f1": ("f1_score", 1),
    "hamming": ("hamming_loss", -1),
    "jaccard": ("jaccard_score", 1),
    "kendall_tau": ("kendall_tau", 1),
    "pairwise_accuracy": ("pairwise_accuracy", 1),
    "spearman_rho": ("spearman_rho", 1),
    "subset_accuracy": ("subset_accuracy", 1),
}
HIERARCHY_METRICS = ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall")
ALLOWED = (
    '"mse", "loss", "f1", "hamming", "jaccard", "subset_accuracy", "kendall_tau", "spearman_rho", '
    '"pairwise_accuracy", "hierarchical_f1", "hierarchical_precision", "hierarchical_recall", "edit_distance", '
    '"edit_similarity", "top_1" (or another k), a function (y_true, y_pred) → float or one value per example, or a '
    'scorer of scikit-learn based on predictions, such as "f1_samples" or make_scorer(...)'
)
MAX_TABLE = 2**16  # pairs that are all compared at once, because most of them will occur
MIN_BLOCK_ROWS = 4096  # pairs that are compared at a time, if there are not more examples
BYTES_PER_ENTRY = 64  # of two rows of a block of pairs while they are compared

StepScore = Callable[[DecodedStep], Array]  # the results of one step → one score per p


@dataclass(frozen=True)
class Scoring:
    """A score and what it is computed from."""

    name: str
    top_k: int | None = None  # based on the position of the truth among the candidates
    metric: Metric | None = None  # based on the nearest candidate
    needs_one_kernel: bool = False  # measured in the space of the output kernel, so kernels cannot be compared by it

    @property
    def decodes(self) -> bool:
        """Whether candidates are searched at all."""
        return self.metric is not None or self.top_k is not None

    def of_model(self, model: Any, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Return the score of a fitted estimator on examples."""
        if self.top_k is not None:
            return float(metrics.top_k_accuracy(model.truth_positions(X, y, candidates), self.top_k))
        y = model._check_outputs(y, "y")
        if self.metric is not None:
            return float(self.metric(y, model.predict(X, candidates), model.output_kernel_))
        return -squared_error(model, X, y)


def squared_error(model: Any, X: Samples, y: Samples) -> float:
    """Return the mean of |G*z(x) − ψ(y)|² = |z(x)|² − 2⟨z(x), g(y)⟩ + k(y, y) for a fitted estimator."""
    kernel = model.output_kernel_
    Z, g = (to_numpy(array).astype(np.float64) for array in (model.embed(X), model.transform_outputs(y)))
    if len(Z) != len(g):
        raise ValueError(f"X has {len(Z)} examples, y has {len(g)}.")
    return float(np.mean(np.sum(Z * (Z - 2 * g), axis=1) + kernel.diag(kernel.check(y, "y"))))


def as_scorings(scoring: Any) -> list[Scoring]:
    """Return the scores of the parameter ``scoring``, one or several; the first of them chooses."""
    if not isinstance(scoring, list | tuple):
        return [as_scoring(scoring)]
    scorings = [as_scoring(entry) for entry in scoring]
    names = [entry.name for entry in scorings]
    if not names or len(set(names)) < len(names) or "score" in names:
        raise ValueError(f"scoring must have at least one score, with different names other than 'score'; got {names}.")
    return scorings


def as_scoring(scoring: Any) -> Scoring:
    """Return the score of one entry of the parameter ``scoring``."""
    if isinstance(scoring, _Scorer):
        return _from_scorer(scoring, _scorer_name(scoring))
    if callable(scoring) and not isinstance(scoring, type):
        return Scoring(getattr(scoring, "__name__", "score"), metric=_FunctionMetric(scoring))
    if isinstance(scoring, str):
        return _named_scoring(scoring)
    raise ValueError(f"scoring must be one of {ALLOWED}; got {scoring!r}.")


def _named_scoring(name: str) -> Scoring:
    if name == "mse":
        return Scoring(name, needs_one_kernel=True)
    if name == "loss":
        return Scoring(name, metric=_minus_kernel_loss, needs_one_kernel=True)
    if name in METRICS:
        return Scoring(name, metric=_NamedMetric(*METRICS[name]))
    if name in HIERARCHY_METRICS:
        return Scoring(name, metric=_HierarchyMetric(name))
    top = re.fullmatch(r"top_([1-9]\d*)", name)
    if top:
        return Scoring(name, top_k=int(top[1]))
    if name in get_scorer_names():
        return _from_scorer(get_scorer(name), name)
    raise ValueError(f"scoring must be one of {ALLOWED}; got {name!r}.")


def _minus_kernel_loss(y: Samples, prediction: Samples, kernel: Kernel) -> metrics.Mean:
    return metrics.Mean(-metrics.kernel_loss(y, prediction, kernel).values)


@dataclass(frozen=True)
class _NamedMetric:
    """A metric of psilearn.metrics."""

    function: str
    sign: int

    def __call__(self, y: Samples, prediction: Samples, kernel: Kernel) -> metrics.Mean:
        return metrics.Mean(self.sign * getattr(metrics, self.function)(y, prediction).values)


@dataclass(frozen=True)
class _HierarchyMetric:
    """A metric of psilearn.metrics for label sets in the hierarchy of the output kernel."""

    function: str

    def __call__(self, y: Samples, prediction: Samples, kernel: Kernel) -> metrics.Mean:
        if not isinstance(kernel, HierarchicalDice):
            raise ValueError(
                f"scoring={self.function!r} takes the hierarchy from the output kernel HierarchicalDice, but the "
                f"kernel is {kernel!r}. Pass a function that calls psilearn.metrics.{self.function} instead."
            )
        score: metrics.Mean = getattr(metrics, self.function)(y, prediction, kernel.hierarchy)
        return score


@dataclass(frozen=True)
class _FunctionMetric:
    """A user's function of true and predicted outputs, which returns one number, or one value per pair of them."""

    function: Callable[[Samples, Samples], Any]

    def __call__(self, y: Samples, prediction: Samples, kernel: Kernel) -> float:
        score = self.function(y, prediction)
        if isinstance(score, metrics.Mean):
            return score
        if np.ndim(score) == 0 and not isinstance(score, Real):
            raise TypeError(f"scoring must return a number; {self.function!r:.80} returned {score!r:.80}.")
        if np.ndim(score) == 0:
            return float(score)
        if np.shape(score) != (n_samples(y),):
            raise ValueError(
                f"scoring must return a number, or one value per example, of shape ({n_samples(y)},); got shape "
                f"{np.shape(score)}."
            )
        return metrics.Mean(score)


# scikit-learn's scorers take an estimator, X and y, and make predictions themselves: they get an estimator whose
# predictions are known already, so that signs and keyword arguments are theirs.

_Scorer = type(get_scorer("accuracy"))  # the class of everything that make_scorer returns


class _KnownPredictions(BaseEstimator):
    """An estimator that predicts for X what X is."""

    def fit(self, X: Samples, y: Samples = None) -> _KnownPredictions:
        """Do nothing."""
        return self

    def predict(self, X: Samples) -> Samples:
        """Return X."""
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(frozen=True)
class _ScorerMetric:
    """A scorer of scikit-learn that is based on predictions."""

    scorer: Any

    def __call__(self, y: Samples, prediction: Samples, kernel: Kernel) -> float:
        y, prediction = tensor_to_numpy(y), tensor_to_numpy(prediction)
        if n_samples(y) != n_samples(prediction):
            raise ValueError(f"y has {n_samples(y)} outputs for {n_samples(prediction)} predictions.")
        return float(self.scorer(_KnownPredictions(), prediction, y))


def _from_scorer(scorer: Any, name: str) -> Scoring:
    response = getattr(scorer, "_response_method", "predict")
    if "predict" not in ([response] if isinstance(response, str) else list(response)):
        raise ValueError(
            f"scoring={name!r} is based on {response!r}; a search can only use scorers that are based on predictions "
            f'(response_method="predict").'
        )
    return Scoring(name, metric=_ScorerMetric(scorer))


def _scorer_name(scorer: Any) -> str:
    return getattr(getattr(scorer, "_score_func", None), "__name__", "scorer")


# Scores of decoded predictions for many settings: each pair of a true output and a candidate is compared once.
#
# Settings of a search predict the same candidates again and again. A metric with one value per pair is therefore
# computed for the pairs that occur, and the score of a setting is a mean of known values. Any other metric is computed
# once for each different vector of predictions.
class DecodedScores:
    """The scores of the predictions of one decoder, computed as soon as its steps are finished.

    Parameters
    ----------
    decoder : PathDecoder
        Decodes the q held-out examples; with positions of the truth if a scoring needs them.
    scorings : sequence of Scoring
        The scores; those that do not decode are ignored.
    truth : collection of q outputs
        The true outputs of the held-out examples.
    kernel : Kernel
        The output kernel.
    """

    def __init__(self, decoder: PathDecoder, scorings: Sequence[Scoring], truth: Samples, kernel: Kernel) -> None:
        self.decoder = decoder
        self._step_scores = {
            scoring.name: _step_score(scoring, decoder, truth, kernel) for scoring in scorings if scoring.decodes
        }
        self._scores: dict[str, list[Array]] = {name: [] for name in self._step_scores}

    def add(self, V: Any, Z: Any) -> None:
        """Decode a step: directions V (s, p), None for all of them, and predictions Z (q, p)."""
        self.decoder.add(V, Z)
        self._score(self.decoder.take_finished())

    def scores(self, name: str) -> Array:
        """Return one scoring of all steps and every p, of shape (n_steps, n_sizes)."""
        self._score(self.decoder.take_finished(flush=True))
        return np.stack(self._scores[name])

    def _score(self, steps: Sequence[DecodedStep]) -> None:
        for step in steps:
            for name, step_score in self._step_scores.items():
                self._scores[name].append(step_score(step))


def _step_score(scoring: Scoring, decoder: PathDecoder, truth: Samples, kernel: Kernel) -> StepScore:
    """Return the function that scores one step."""
    k = scoring.top_k
    if k is not None:
        return lambda step: hits(step.positions(), k).mean(axis=1)
    assert scoring.metric is not None
    return MetricScores(scoring.metric, decoder, truth, kernel)


class MetricScores:
    """One metric of the predictions of many settings.

    Whether the metric has one value per pair is seen from its first result, for all held-out examples. Memory: two
    numbers per pair that occurs, or one digest and one score per different vector of predictions.
    """

    def __init__(self, metric: Metric, decoder: PathDecoder, truth: Samples, kernel: Kernel) -> None:
        self.metric = metric
        self.decoder = decoder
        self.truth = truth
        self.kernel = kernel
        self._examples = np.arange(n_samples(truth))
        equal = distinct(truth) if decoder.shares_candidates else Distinct(self._examples, self._examples)
        self._first_examples, self._truth_numbers = equal  # of each different true output; of each example
        self._has_pair_values: bool | None = None  # None before the first result
        self._pairs, self._pair_values = np.empty(0, dtype=np.intp), np.empty(0)  # ascending
        self._known: dict[bytes, float] = {}  # digest of predictions → score

    def __call__(self, step: DecodedStep) -> Array:
        """Return the score for each p, of shape (n_sizes,)."""
        if self._has_pair_values is None:
            first = self._evaluate(self._examples, step.nearest[0])
            self._has_pair_values = _pair_values(first, len(self._examples)) is not None
            n_candidates = self.decoder.n_candidates
            if self._has_pair_values and n_candidates and n_candidates * len(self._first_examples) <= MAX_TABLE:
                self._learn(np.arange(n_candidates)[:, None], self._first_examples)
        if self._has_pair_values:
            pairs = self._learn(step.nearest, self._examples)
        if self._has_pair_values:
            means: Array = self._pair_values[np.searchsorted(self._pairs, pairs)].mean(axis=1)
            return means
        return np.array([self._score_of(nearest) for nearest in step.nearest])

    def _evaluate(self, examples: Index, indices: Index) -> float:
        """Return the metric of examples and their candidates with these indices."""
        return self.metric(take(self.truth, examples), self.decoder.take(examples, indices), self.kernel)

    def _learn(self, indices: Index, examples: Index) -> Index:
        """Compute the values of candidates (…, m) for examples (m,) that are not known; return numbers of the pairs."""
        pairs: Index = np.asarray(indices * len(self._examples) + self._truth_numbers[examples])
        places = np.searchsorted(self._pairs, pairs)
        is_known = places < len(self._pairs)
        is_known[is_known] = self._pairs[places[is_known]] == pairs[is_known]
        if not is_known.all():
            new, first = np.unique(pairs[~is_known], return_index=True)
            values = self._compare(np.broadcast_to(examples, pairs.shape)[~is_known][first], new // len(self._examples))
            places = np.searchsorted(self._pairs, new)
            self._pairs = np.insert(self._pairs, places, new)
            self._pair_values = np.insert(self._pair_values, places, values)
        return pairs

    def _compare(self, examples: Index, indices: Index) -> Array:
        """Return the value of each pair, computed in blocks."""
        values = np.zeros(len(examples))
        bytes_per_row = BYTES_PER_ENTRY * (n_columns(self.truth) or 1)
        for part in iter_blocks(len(values), bytes_per_row, max(MIN_BLOCK_ROWS, len(self._examples))):
            found = _pair_values(self._evaluate(examples[part], indices[part]), part.stop - part.start)
            if found is None:  # the number of values was that of the examples by chance
                self._has_pair_values = False
                break
            values[part] = found
        return values

    def _score_of(self, nearest: Index) -> float:
        """Return the score of the predictions of one setting."""
        key = blake2b(np.ascontiguousarray(nearest).tobytes(), digest_size=16).digest()
        if key not in self._known:
            self._known[key] = float(self._evaluate(self._examples, nearest))
        return self._known[key]


def _pair_values(score: float, n_pairs: int) -> Array | None:
    """Return the values of a metric of n pairs if it is the mean of one value per pair, else None."""
    return score.values if isinstance(score, Mean) and len(score.values) == n_pairs else None
