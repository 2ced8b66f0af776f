"""Exact nearest candidates by streaming: blocks of distances, the best k kept, never all of them at once.

A distance is |G*z − ψ(y)|² = |z|² − 2⟨z, g(y)⟩ + k(y, y), the squared distance in the output space. Rounding makes
equal distances differ in the last bits, by a few ε(|z|² + k(y, y)): what differs by less than 32 times that is a tie,
and a tie goes to the lowest index, whatever the block sizes and the order of summation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psilearn.backend import row_blocks
from psilearn.decode.candidates import CandidateSet, CandidateSets
from psilearn.embed import Embedding
from psilearn.linalg import Array
from psilearn.samples import Index, Samples, concat, distinct, match, n_samples, take

TIE = 32 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class TopK:
    """The k nearest candidates of each example, nearest first.

    k is at most the size of the (largest) candidate set; where an example has fewer candidates its row ends in index −1
    and distance ∞.
    """

    indices: Index  # (q, k)  places in the candidates as they were given; in the example's own set where it has one
    distances: Array  # (q, k)  |G*z(x) − ψ(y)|²
    candidates: Any  # the shared collection, or CandidateSets

    @property
    def outputs(self) -> list[Samples]:
        """For each example its nearest candidates, in the form in which candidates were given."""
        return [take(self._set(i), row[row >= 0]) for i, row in enumerate(self.indices)]

    @property
    def nearest(self) -> Samples:
        """The nearest candidate of each example, as one collection."""
        if not isinstance(self.candidates, CandidateSets):
            return take(self.candidates, self.indices[:, 0])
        return concat([take(self._set(i), row[:1]) for i, row in enumerate(self.indices)])

    @property
    def margins(self) -> Array:
        """How much farther the second candidate is than the first, (q,); ∞ where there is no second."""
        if self.indices.shape[1] < 2:
            raise ValueError("A margin needs two candidates: ask for k ≥ 2.")
        return self.distances[:, 1] - self.distances[:, 0]

    def _set(self, i: int) -> Samples:
        return self.candidates.sets[i] if isinstance(self.candidates, CandidateSets) else self.candidates


class Ranks(NamedTuple):
    """Where the true output stands among the distinct candidates of each example."""

    nearer: Array  # (q,)  candidates strictly nearer than the truth; ∞ where the truth is no candidate
    tied: Array  # (q,)  candidates at the truth's distance, the truth included


def nearest(Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding, k: int) -> TopK:
    """Find the k nearest candidates of each query z(x), rows of Z (q, p).

    Cost: q·c·p flops, and the embedding of candidates that are not embedded yet (c·r·p); memory: ``working_memory`` and
    the answer.
    """
    if isinstance(candidates, CandidateSets):
        k = min(k, max(map(n_samples, candidates.sets)))
        indices, distances = np.full((len(Z), k), -1, dtype=np.intp), np.full((len(Z), k), np.inf)
        for i, D, slack in _distances_in_sets(Z, candidates, embedding):
            best, values = smallest(D, slack, min(k, D.shape[1]))
            indices[i, : best.shape[1]] = best[0]
            distances[i, : best.shape[1]] = values[0]
        return TopK(indices, distances, candidates)
    k = min(k, len(candidates))
    indices, distances = np.full((len(Z), k), -1, dtype=np.intp), np.full((len(Z), k), np.inf)
    slacks = np.zeros((len(Z), k))
    for queries, rows, D, slack in _distances_shared(Z, candidates):
        best, values = smallest(D, slack, min(k, D.shape[1]))
        # earlier candidates stand first, so that a tie stays with the lower index
        merged = np.concatenate([distances[queries], values], axis=1)
        places = np.concatenate([indices[queries], best + rows.start], axis=1)
        merged_slacks = np.concatenate([slacks[queries], np.take_along_axis(slack, best, axis=1)], axis=1)
        order, distances[queries] = smallest(merged, merged_slacks, k)
        indices[queries] = np.take_along_axis(places, order, axis=1)
        slacks[queries] = np.take_along_axis(merged_slacks, order, axis=1)
    return TopK(indices, distances, candidates.outputs)


def rank_of_truth(Z: Array, truth: Samples, candidates: CandidateSet | CandidateSets, embedding: Embedding) -> Ranks:
    """Count, for each query, the distinct candidates nearer than the true output and those at its distance."""
    nearer, tied = np.full(len(Z), np.inf), np.zeros(len(Z))
    if isinstance(candidates, CandidateSets):
        candidates = CandidateSets([take(one, distinct(one).first) for one in candidates.sets])
        for i, D, slack in _distances_in_sets(Z, candidates, embedding):
            place = int(match(take(truth, slice(i, i + 1)), candidates.sets[i])[0])
            if place >= 0:
                nearer[i], tied[i] = (count[0] for count in count_nearer(D, slack, D[:, [place]], slack[:, [place]]))
        return Ranks(nearer, tied)
    candidates = candidates.distinct()
    places = match(truth, candidates.outputs)
    own, own_slack = np.full((len(Z), 1), np.nan), np.zeros((len(Z), 1))  # of the truth, found on a first pass
    for queries, rows, D, slack in _distances_shared(Z, candidates):
        here = np.flatnonzero((places[queries] >= rows.start) & (places[queries] < rows.stop))
        columns = places[queries][here] - rows.start
        own[queries][here, 0], own_slack[queries][here, 0] = D[here, columns], slack[here, columns]
    nearer[places >= 0] = 0
    for queries, _, D, slack in _distances_shared(Z, candidates):
        counts = count_nearer(D, slack, own[queries], own_slack[queries])
        nearer[queries] += counts[0]
        tied[queries] += counts[1]
    return Ranks(nearer, tied)


def smallest(D: Array, slack: Array, k: int) -> tuple[Index, Array]:
    """Return the columns and values of the k smallest entries of each row, ascending; ties by the lower column.

    Two entries tie where they differ by less than the slack of either. Tied entries get the value of the smallest of
    them, so that what is returned ascends. ``numpy.argpartition`` alone would break ties at random.

    Parameters
    ----------
    D, slack : arrays (q, c)
    """
    if k == 1:
        least = D.min(axis=1, keepdims=True)
        column = np.argmax(D - slack <= least, axis=1)[:, None]  # the first that ties with the least
        return column, least
    if k < D.shape[1]:
        border = np.partition(D, k - 1, axis=1)[:, k - 1 : k]  # (q, 1)  the k-th smallest value
        below = D + slack < border
        at = ~below & (D - slack <= border)
        kept = below | (at & (np.cumsum(at, axis=1) <= k - np.sum(below, axis=1, keepdims=True)))
        columns = np.nonzero(kept)[1].reshape(len(D), k)
    else:
        columns = np.broadcast_to(np.arange(k), D.shape)
    values, room = (np.take_along_axis(part, columns, axis=1) for part in (D, slack))
    order = np.argsort(values, axis=1, kind="stable")
    values, room = (np.take_along_axis(part, order, axis=1) for part in (values, room))
    with np.errstate(invalid="ignore"):  # ∞ − ∞, where a row has no more candidates
        starts = np.diff(values, axis=1, prepend=-np.inf) > room
    group = np.cumsum(starts, axis=1)  # neighbours closer than their slack are one group
    by_column = np.lexsort((np.take_along_axis(columns, order, axis=1), group), axis=1)
    first = np.maximum.accumulate(np.where(starts, np.arange(k), 0), axis=1)
    return (
        np.take_along_axis(columns, np.take_along_axis(order, by_column, axis=1), axis=1),
        np.take_along_axis(values, first, axis=1),
    )


def count_nearer(D: Array, slack: Array, own: Array, own_slack: Array) -> tuple[Array, Array]:
    """Return how many entries of each row lie below ``own`` (q, 1), and how many tie with it; none for NaN."""
    room = np.maximum(slack, own_slack)
    return np.sum(own - room > D, axis=1), np.sum(np.abs(D - own) <= room, axis=1)


def _distances_shared(Z: Array, candidates: CandidateSet) -> Iterator[tuple[slice, slice, Array, Array]]:
    """Yield blocks of queries × candidates with their distances and what may be rounding in them."""
    z_norms = np.einsum("ij,ij->i", Z, Z)
    for rows, g in candidates.blocks():
        for queries in row_blocks(len(Z), 6 * 8 * len(g)):  # the block and what selection makes of it
            norms = candidates.squared_norms[rows]
            yield queries, rows, *distances_and_slack(Z[queries] @ g.T, z_norms[queries], norms)


def _distances_in_sets(Z: Array, candidates: CandidateSets, embedding: Embedding) -> Iterator[tuple[int, Array, Array]]:
    """Yield each example with the distances (1, cᵢ) to its own candidates."""
    z_norms = np.einsum("ij,ij->i", Z, Z)
    for examples, gs, norms in candidates.groups(embedding):
        for i, g, norm in zip(examples, gs, norms, strict=True):
            yield i, *distances_and_slack(Z[i : i + 1] @ g.T, z_norms[i : i + 1], norm)


def distances_and_slack(products: Array, z_norms: Array, squared_norms: Array) -> tuple[Array, Array]:
    """Return |z|² − 2⟨z, g⟩ + k(y, y), at least 0, and 32ε(|z|² + k(y, y)), both (q, c); products are overwritten."""
    lengths = z_norms[:, None] + squared_norms
    products *= -2
    products += lengths
    np.maximum(products, 0, out=products)
    lengths *= TIE
    return products, lengths
