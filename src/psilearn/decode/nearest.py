"""Exact nearest candidates by streaming: blocks of distances, the best k kept, never all of them at once.

A distance is |G*z − ψ(y)|² = |z|² − 2⟨z, g(y)⟩ + k(y, y), the squared distance in the output space. Rounding makes
equal distances differ in the last bits, so each is put on a grid of 2⁻³⁶ of its scale first: what is equal there is a
tie, and a tie goes to the lowest index, whatever the block sizes and the order of summation.
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
from psilearn.samples import Index, Samples, concat, match, take

GRID = 2.0**-36


@dataclass(frozen=True)
class TopK:
    """The k nearest candidates of each example, nearest first.

    Where an example has fewer than k candidates its row ends in index −1 and distance ∞.
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
    """Where the true output stands among the candidates of each example."""

    nearer: Array  # (q,)  candidates strictly nearer than the truth; ∞ where the truth is no candidate
    tied: Array  # (q,)  candidates at the truth's distance, the truth included


def nearest(Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding, k: int) -> TopK:
    """Find the k nearest candidates of each query z(x), rows of Z (q, p).

    Cost: q·c·p flops, and the embedding of candidates that are not embedded yet (c·r·p); memory: ``working_memory`` and
    the answer.
    """
    if isinstance(candidates, CandidateSets):
        indices, distances = _blank(len(Z), k)
        for i, D in _distances_in_sets(Z, candidates, embedding):
            best = smallest(D, min(k, D.shape[1]))
            indices[i, : best.shape[1]] = best[0]
            distances[i, : best.shape[1]] = D[0, best[0]]
        return TopK(indices, distances, candidates)
    indices, distances = _blank(len(Z), k)
    for queries, rows, D in _distances_shared(Z, candidates):
        best = smallest(D, min(k, D.shape[1]))
        # earlier candidates stand first, so that a tie stays with the lower index
        merged = np.concatenate([distances[queries], np.take_along_axis(D, best, axis=1)], axis=1)
        places = np.concatenate([indices[queries], best + rows.start], axis=1)
        order = smallest(merged, k)
        distances[queries] = np.take_along_axis(merged, order, axis=1)
        indices[queries] = np.take_along_axis(places, order, axis=1)
    return TopK(indices, distances, candidates.outputs)


def rank_of_truth(Z: Array, truth: Samples, candidates: CandidateSet | CandidateSets, embedding: Embedding) -> Ranks:
    """Count, for each query, the candidates nearer than the true output and those at its distance."""
    nearer, tied = np.full(len(Z), np.inf), np.zeros(len(Z))
    if isinstance(candidates, CandidateSets):
        for i, D in _distances_in_sets(Z, candidates, embedding):
            place = int(match(take(truth, slice(i, i + 1)), candidates.sets[i])[0])
            if place >= 0:
                own_distance = D[0, place]
                nearer[i], tied[i] = np.sum(own_distance > D), np.sum(own_distance == D)
        return Ranks(nearer, tied)
    places = match(truth, candidates.outputs)
    own = np.full((len(Z), 1), np.nan)  # distance to the truth, found on a first pass
    for queries, rows, D in _distances_shared(Z, candidates):
        here = np.flatnonzero((places[queries] >= rows.start) & (places[queries] < rows.stop))
        own[queries][here, 0] = D[here, places[queries][here] - rows.start]
    found = places >= 0
    nearer[found] = 0
    for queries, _, D in _distances_shared(Z, candidates):
        nearer[queries] += np.sum(own[queries] > D, axis=1)
        tied[queries] += np.sum(own[queries] == D, axis=1)
    return Ranks(nearer, tied)


def smallest(D: Array, k: int) -> Index:
    """Return the columns of the k smallest entries of each row, ascending; equal entries by the lower column.

    ``numpy.argpartition`` alone would break ties at random.
    """
    if k == 1:
        return np.argmin(D, axis=1)[:, None]
    if k < D.shape[1]:
        border = np.partition(D, k - 1, axis=1)[:, k - 1 : k]  # (q, 1)  the k-th smallest value
        below, at = border > D, border == D
        kept = below | (at & (np.cumsum(at, axis=1) <= k - np.sum(below, axis=1, keepdims=True)))
        columns = np.nonzero(kept)[1].reshape(len(D), k)
    else:
        columns = np.broadcast_to(np.arange(k), D.shape)
    order = np.argsort(np.take_along_axis(D, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _blank(q: int, k: int) -> tuple[Index, Array]:
    return np.full((q, k), -1, dtype=np.intp), np.full((q, k), np.inf)


def _distances_shared(Z: Array, candidates: CandidateSet) -> Iterator[tuple[slice, slice, Array]]:
    """Yield blocks of queries × candidates with their distances."""
    z_norms = np.einsum("ij,ij->i", Z, Z)
    largest = float(candidates.squared_norms.max())
    for rows, g in candidates.blocks():
        for queries in row_blocks(len(Z), 4 * 8 * len(g)):  # the block and what selection makes of it
            yield queries, rows, _distances(Z[queries], z_norms[queries], g, candidates.squared_norms[rows], largest)


def _distances_in_sets(Z: Array, candidates: CandidateSets, embedding: Embedding) -> Iterator[tuple[int, Array]]:
    """Yield each example with the distances (1, cᵢ) to its own candidates."""
    z_norms = np.einsum("ij,ij->i", Z, Z)
    for examples, gs, norms in candidates.groups(embedding):
        for i, g, norm in zip(examples, gs, norms, strict=True):
            yield i, _distances(Z[i : i + 1], z_norms[i : i + 1], g, norm, float(norm.max()))


def _distances(Z: Array, z_norms: Array, g: Array, squared_norms: Array, largest: float) -> Array:
    """Return |z|² − 2⟨z, g⟩ + k(y, y) on the grid of ties, (q, c)."""
    D = Z @ g.T
    D *= -2
    D += z_norms[:, None]
    D += squared_norms
    return on_grid(D, z_norms + largest)


def on_grid(D: Array, scale: Array) -> Array:
    """Put the distances of each query, in place, on a grid of 2⁻³⁶ of its scale (q,); below 0 they become 0."""
    np.maximum(D, 0, out=D)
    grid = GRID * np.exp2(np.ceil(np.log2(np.maximum(scale, np.finfo(float).tiny))))[:, None]
    D /= grid  # by a power of two: exact
    np.rint(D, out=D)
    D *= grid
    return D
