"""Scores of decoded predictions for many settings: each pair of a true output and a candidate is compared once.

Settings of a search predict the same candidates again and again. A metric with one value per pair is therefore computed
for the pairs that occur, and the score of a setting is a mean of known values. Any other metric is computed once for
each different vector of predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from psilearn._backend import iter_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Distinct, Index, Samples, distinct, n_columns, n_samples, take
from psilearn.decoding import PathDecoder
from psilearn.decoding.path_decoder import DecodedStep
from psilearn.kernels import Kernel
from psilearn.metrics import Mean
from psilearn.metrics.scores import hits
from psilearn.model_selection.scoring import Metric, Scoring

MAX_TABLE = 2**16  # pairs that are all compared at once, because most of them will occur
MIN_BLOCK_ROWS = 4096  # pairs that are compared at a time, if there are not more examples
BYTES_PER_ENTRY = 64  # of two rows of a block of pairs while they are compared

StepScore = Callable[[DecodedStep], Array]  # the results of one step → one score per p


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
