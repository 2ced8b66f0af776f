"""Conformal candidate sets: as many candidates as it takes to hold the true output with a stated probability.

Split conformal prediction. Let D₁ ≤ D₂ ≤ … be the squared distances |G*z(x) − ψ(y)|² of the candidates of x. The score
of the j-th of them is

    s(x, yⱼ) = #{i : Dᵢ ≤ Dⱼ} · √(Dⱼ − D₁),

its place (the last of those that tie) times how much farther it lies than the nearest: 0 for the nearest, growing along
the ranking. Let t be the ⌈(n+1)·coverage⌉-th smallest score of the true outputs of n calibration examples that the fit
has not seen. Then {y : s(x, y) ≤ t} holds the true output of a new example with probability at least ``coverage``,
whatever the model and the distribution, as long as the new example and the calibration examples are exchangeable. The
probability is over all of them, not for one example. The place keeps sets short where candidates are many, the distance
where one stands out: either alone makes larger sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from psilearn._backend import row_blocks
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, match, n_samples, take
from psilearn.decoding import CandidateSet, CandidateSets, nearest
from psilearn.embedding import Embedding


@dataclass(frozen=True)
class PredictionSets:
    """One set of candidates an example, nearest first."""

    indices: list[Index]  # places in the candidates, or in the example's own set
    distances: list[Array]  # |G*z(x) − ψ(y)|²
    threshold: float  # the largest score of a member; ∞: every candidate
    coverage: float
    candidates: Any  # the shared collection, or CandidateSets

    @property
    def sizes(self) -> Index:
        """How many candidates each set holds, (q,)."""
        return np.array([len(index) for index in self.indices], dtype=np.intp)

    @property
    def outputs(self) -> list[Samples]:
        """The members of each set, in the form in which candidates were given."""
        shared = not isinstance(self.candidates, CandidateSets)
        return [
            take(self.candidates if shared else self.candidates.sets[i], index) for i, index in enumerate(self.indices)
        ]


def tied_runs(distances: Array, slack: Array | float) -> tuple[Index, Index]:
    """Return where the run of ties of each candidate begins and ends, (c,) each, for ascending distances (c,).

    Neighbours tie where they differ by no more than the slack of either.
    """
    slack = np.broadcast_to(slack, distances.shape)
    first = np.concatenate([[True], np.diff(distances) > np.maximum(slack[1:], slack[:-1])])
    starts = np.flatnonzero(first)
    run = np.cumsum(first) - 1
    return starts[run], np.append(starts[1:], len(distances))[run]


def conformal_scores(distances: Array, start: Index, stop: Index) -> Array:
    """Return s(x, y) of candidates in ascending order of distance, (c,), from their runs of ties.

    Those that tie have one distance, that of the first: the root would magnify their rounding.
    """
    return stop * np.sqrt(np.maximum(distances[start] - distances[0], 0))


def scores_of_truth(Z: Array, truth: Samples, candidates: CandidateSet | CandidateSets, embedding: Embedding) -> Array:
    """Return the score of each true output, (q,); ∞ where it is no candidate."""
    scores = np.full(len(Z), np.inf)
    places = candidates.match(truth) if isinstance(candidates, CandidateSets) else match(truth, candidates.outputs)
    for i, index, _, own in _scored(Z, candidates, embedding):
        if places[i] >= 0:
            scores[i] = own[np.argmax(index == places[i])]
    return scores


def threshold(scores: Array, coverage: float) -> float:
    """Return the ⌈(n+1)·coverage⌉-th smallest score; ∞ where n is too small for such a coverage.

    >>> threshold(np.array([0.1, 0.4, 0.2, 0.3]), 0.8), threshold(np.array([0.1]), 0.8)
    (0.4, inf)
    """
    coverage = validation.check_fraction(coverage, "coverage")
    place = ceil((len(scores) + 1) * coverage - 1e-9)
    if place > len(scores):
        return float("inf")
    return float(np.sort(scores)[place - 1]) if place else -1.0  # coverage 0: the empty set has it


def sets_within(
    Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding, limit: float, coverage: float
) -> PredictionSets:
    """Return the candidates whose score is at most ``limit``."""
    indices: list[Index] = []
    distances: list[Array] = []
    for _, index, D, scores in _scored(Z, candidates, embedding):
        inside = within(scores, limit)
        indices.append(index[inside])
        distances.append(D[inside])
    given = candidates if isinstance(candidates, CandidateSets) else candidates.outputs
    return PredictionSets(indices, distances, limit, coverage, given)


def within(scores: Array, limit: float) -> Any:
    """Return which scores are at most ``limit``, rounding apart; none for a negative limit."""
    return scores <= limit + (1e-9 * (1 + limit) if limit >= 0 else 0)


def _scored(
    Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding
) -> Iterator[tuple[int, Index, Array, Array]]:
    """Yield each example with its candidates, nearest first: places, distances and scores, each (c,).

    Examples are taken in blocks within ``working_memory``.
    """
    sizes = [n_samples(one) for one in candidates.sets] if isinstance(candidates, CandidateSets) else [len(candidates)]
    for rows in row_blocks(len(Z), 128 * max(sizes)):
        some = CandidateSets(candidates.sets[rows]) if isinstance(candidates, CandidateSets) else candidates
        top = nearest(Z[rows], some, embedding, max(sizes))
        for i, (index, D) in enumerate(zip(top.indices, top.distances, strict=True), rows.start):
            index, D = index[index >= 0], D[index >= 0]
            yield i, index, D, conformal_scores(D, *tied_runs(D, 0.0))  # ``nearest`` gives those that tie one distance
