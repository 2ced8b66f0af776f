"""Exact nearest candidates by streaming: blocks of scores, the best k kept, never all distances at once.

A distance is |G*z − ψ(y)|² = |z|² − 2⟨z, g(y)⟩ + k(y, y), the squared distance in the output space. Rounding makes
equal distances differ in the last bits, by a few ε(|z|² + k(y, y)), ε that of the precision of the embedding: what
differs by less than 32ε(|z|² + k(y, y)) is a tie, and a tie goes to the lowest index, whatever the block sizes. Shared
candidates are preselected by float32 bounds (:mod:`psilearn.decoding.bounds`); what is returned is compared in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import array_namespace, asarray, halving, is_tensor, to_host
from psilearn._linalg import Array, least, non_negative, where_true
from psilearn._utils.samples import Index, Samples, concat, match, n_samples, take
from psilearn.decoding.bounds import TIE, Bounds, Queries, Scored, round_down, round_up, score, tie
from psilearn.decoding.candidates import CandidateSet
from psilearn.decoding.per_example import CandidateSets
from psilearn.embedding import Embedding
from psilearn.kernels.inner_products import cut_below
from psilearn.metrics import TruthPositions as Ranks

MANY = 2**22  # pairs that are looked at together, at the most
CROWDED = 32  # hits of a row from which on it is worth to look for the k least of them first


@dataclass(frozen=True)
class TopK:
    """The k nearest candidates of each example, nearest first.

    k is at most the size of the (largest) candidate set; where an example has fewer candidates its row ends in index −1
    and distance ∞.
    """

    indices: Index  # (q, k)  places in the candidates as they were given; in the example's own set where it has one
    distances: Array  # (q, k)  |G*z(x) − ψ(y)|²; as the indices, tensors where the inputs were
    candidates: Any  # the shared collection, or CandidateSets

    @property
    def outputs(self) -> list[Samples]:
        """For each example its nearest candidates, in the form in which candidates were given."""
        return [take(self._set(i), row[row >= 0]) for i, row in enumerate(to_host(self.indices))]

    @property
    def nearest(self) -> Samples:
        """The nearest candidate of each example, as one collection."""
        indices = to_host(self.indices)
        if not isinstance(self.candidates, CandidateSets):
            return take(self.candidates, indices[:, 0])
        return concat([take(self._set(i), row[:1]) for i, row in enumerate(indices)])

    @property
    def margins(self) -> Array:
        """How much farther the second candidate is than the first, (q,); ∞ where there is no second."""
        if self.indices.shape[1] < 2:
            raise ValueError("A margin needs two candidates: ask for k ≥ 2.")
        return self.distances[:, 1] - self.distances[:, 0]

    def _set(self, i: int) -> Samples:
        return self.candidates.sets[i] if isinstance(self.candidates, CandidateSets) else self.candidates


def nearest(Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding, k: int) -> TopK:
    """Find the k nearest candidates of each query z(x), rows of Z (q, p).

    Cost: 2·q·c·p flops in float32 and about p·k·log(c) a query in float64, and the embedding of candidates that are not
    embedded yet (c·r·p); many exact ties are computed in float64 altogether. Sets of their own cost 2·Σcᵢ·p flops in
    float64, and sets that are one object are embedded once. Memory: ``working_memory`` and the answer.
    """
    Z = asarray(Z)
    k = min(k, max(map(n_samples, candidates.sets)) if isinstance(candidates, CandidateSets) else len(candidates))
    indices, distances = np.full((len(Z), k), -1, dtype=np.intp), np.full((len(Z), k), np.inf)
    if isinstance(candidates, CandidateSets):
        for examples, D, slack in _distances_in_sets(Z, candidates, embedding):
            best, values = smallest(D, slack, min(k, D.shape[1]))
            indices[examples, : best.shape[1]] = np.where(np.isfinite(values), best, -1)
            distances[examples, : best.shape[1]] = values
        return TopK(indices, distances, candidates)
    candidates.require(embedding)
    slacks = np.zeros((len(Z), k))

    def keep_best(scored: Scored) -> None:
        so_far: tuple[Any, ...] = tuple(part[scored.queries] for part in (distances, slacks, indices))
        within = _within_reach_on_device if is_tensor(scored.lower) else _within_reach
        for i, j in within(scored, so_far[0][:, -1], k):
            _merge(so_far, i, scored.places(j), *scored.distances(i, j))

    score(keep_best, Queries(Z), candidates, k)
    return TopK(indices, distances, candidates.outputs)


def _within_reach(scored: Scored, farthest: Array, k: int) -> Iterator[tuple[Index, Index]]:
    """Yield the pairs of a block, sorted by row, that may be nearer than the k-th best so far, ``farthest`` (q,)."""
    bounds, lower = scored.bounds, scored.lower
    limit = round_up(bounds.limit(farthest, scored.queries), lower.dtype)
    first = lower.argmin(axis=1)
    rows = np.flatnonzero(lower[np.arange(len(lower)), first] <= limit)
    if len(rows) == 0:
        return
    lower, limit, first = (lower[rows], limit[rows], first[rows]) if len(rows) < len(lower) else (lower, limit, first)
    if k == 1:
        limit = np.minimum(limit, _limit_of(scored, rows, lower, first[:, None]))
        hits = lower <= limit[:, None]
    else:
        hits = lower <= limit[:, None]
        crowded = np.flatnonzero(np.count_nonzero(hits, axis=1) > CROWDED + 4 * k)
        if len(crowded) and k < lower.shape[1]:
            some = lower[crowded]
            columns = np.argpartition(some, k - 1, axis=1)[:, :k]
            hits[crowded] &= some <= _limit_of(scored, rows[crowded], some, columns)[:, None]
    i, j = where_true(hits)
    yield rows[i], j


def _within_reach_on_device(scored: Scored, farthest: Array, k: int) -> Iterator[tuple[Index, Index]]:
    """Yield the same for tensors, in rows that hold not too many pairs together."""
    bounds, lower = scored.bounds, scored.lower
    xp = array_namespace(lower)
    limit = round_up(bounds.limit(asarray(farthest), scored.queries), lower.dtype)
    if k <= lower.shape[1]:
        rows = asarray(np.arange(len(farthest)))
        limit = xp.minimum(limit, _limit_of(scored, rows, lower, least(lower, k)))
    hits = lower <= limit[:, None]
    yield from pairs_of(hits)


def pairs_of(mask: Any) -> Iterator[tuple[Index, Index]]:
    """Yield rows and columns of what is true in a mask, in NumPy, sorted by row, so many rows at a time as fit.

    Memory of a device that runs out is dealt with in here, so that what was yielded is not asked for again.
    """
    if not is_tensor(mask):
        yield where_true(mask)
        return
    counts = np.cumsum(to_host(array_namespace(mask).count_nonzero(mask, axis=1)))
    start = 0
    while start < len(counts):
        before = counts[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(counts, before + MANY, side="right")))
        for rows, (i, j) in halving(slice(start, stop), lambda rows: tuple(map(to_host, where_true(mask[rows])))):
            if len(i):
                yield i + rows.start, j
        start = stop


def _limit_of(scored: Scored, rows: Index, lower: Array, columns: Index) -> Array:
    """Return the L above which nothing is nearer than all of these columns (q, k) of some rows, or ties with them."""
    bounds, queries = scored.bounds, rows + scored.queries.start
    spread = bounds.spread(queries[:, None], columns + scored.columns.start)
    xp = array_namespace(lower)
    farthest = xp.max(xp.take_along_axis(lower, columns, axis=1) + spread, axis=1) + bounds.queries.squared[queries]
    return round_up(bounds.limit(non_negative(farthest), queries), lower.dtype)  # distances are never below 0


def _merge(best: tuple[Any, ...], i: Index, places: Index, distances: Array, slacks: Array) -> None:
    """Put pairs, sorted by row and place, among the best so far: distances, slacks and indices, each (q, k)."""
    starts = np.flatnonzero(np.diff(i, prepend=-1))
    counts = np.diff(starts, append=len(i))
    rows, k = i[starts], best[0].shape[1]
    to = np.repeat(np.arange(len(rows)), counts), k + np.arange(len(i)) - np.repeat(starts, counts)
    # earlier candidates stand first, so that a tie stays with the lower index
    merged = []
    for part, new, empty in zip(best, (distances, slacks, places), (np.inf, 0, -1), strict=True):
        wide = np.full((len(rows), k + counts.max()), empty, dtype=part.dtype)
        wide[:, :k] = part[rows]
        wide[to] = new
        merged.append(wide)
    order, best[0][rows] = smallest(merged[0], merged[1], k)
    for part, wide in zip(best[1:], merged[1:], strict=True):
        part[rows] = np.take_along_axis(wide, order, axis=1)


def rank_of_truth(Z: Array, truth: Samples, candidates: CandidateSet | CandidateSets, embedding: Embedding) -> Ranks:
    """Count, for each query, the distinct candidates nearer than the true output and those at its distance.

    Cost and memory are those of :func:`nearest`; candidates that are not embedded yet are embedded twice.
    """
    Z = asarray(Z)
    nearer, tied = np.full(len(Z), np.inf), np.zeros(len(Z))
    if isinstance(candidates, CandidateSets):
        candidates = candidates.distinct()
        places = candidates.match(truth)
        nearer[places >= 0] = 0
        for examples, D, slack in _distances_in_sets(Z, candidates, embedding):
            at = places[examples, None]
            own = np.where(at >= 0, np.take_along_axis(D, np.maximum(at, 0), axis=1), np.nan)
            counts = count_nearer(D, slack, own, np.take_along_axis(slack, np.maximum(at, 0), axis=1))
            nearer[examples] += counts[0]
            tied[examples] += counts[1]
        return Ranks(nearer, tied)
    candidates.require(embedding)
    candidates, queries = candidates.distinct(), Queries(Z)
    places = match(truth, candidates.outputs)
    own, own_slack = np.full(len(Z), -np.inf), np.zeros(len(Z))  # of the truth, found on a first pass
    for rows, g in candidates.blocks():
        here = np.flatnonzero((places >= rows.start) & (places < rows.stop))
        bounds = Bounds(queries, g, candidates.squared_norms[rows], rows.start)
        own[here], own_slack[here] = bounds.distances(here, places[here] - rows.start)
    nearer[places >= 0] = 0

    def count(scored: Scored) -> None:
        closer, equal = _count_block(scored, own[scored.queries], own_slack[scored.queries])
        nearer[scored.queries] += closer
        tied[scored.queries] += equal

    score(count, queries, candidates)
    return Ranks(nearer, tied)


def _count_block(scored: Scored, own: Array, own_slack: Array) -> tuple[Index, Index]:
    """Return how many candidates of a block are nearer than ``own`` (q,) and how many tie; bounds decide most."""
    bounds, lower, queries = scored.bounds, scored.lower, scored.queries
    squared = to_host(bounds.queries.squared[queries])
    high = own + own_slack - squared + 2 * bounds.tie * squared + bounds.tiny  # −∞ where there is no truth
    spread = to_host(bounds.largest_spread(asarray(np.where(own >= 0, high, 0)), queries))
    low = own - own_slack - 2 * bounds.tie * squared - spread
    low = np.where(low > 0, low - squared, -np.inf)  # nothing is nearer than 0
    clear = lower < round_down(asarray(low), lower.dtype)[:, None]
    doubtful = lower <= round_up(asarray(high), lower.dtype)[:, None]
    doubtful &= ~clear
    nearer = to_host(array_namespace(clear).count_nonzero(clear, axis=1)).astype(np.intp)
    tied = np.zeros_like(nearer)
    for i, j in pairs_of(doubtful):
        D, slack = scored.distances(i, j)
        room = np.maximum(slack, own_slack[i])
        nearer += np.bincount(i[own[i] - room > D], minlength=len(lower))
        tied += np.bincount(i[np.abs(D - own[i]) <= room], minlength=len(lower))
    return nearer, tied


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
    """Return how many entries of each row lie below ``own`` (q, 1), and how many tie with it; none for NaN.

    In NumPy, counted where the distances are.
    """
    xp = array_namespace(D)
    if is_tensor(D):
        own, own_slack = asarray(own), asarray(own_slack)
    room = xp.maximum(slack, own_slack)
    nearer, tied = own - room > D, abs(D - own) <= room
    return to_host(xp.count_nonzero(nearer, axis=1)), to_host(xp.count_nonzero(tied, axis=1))


def _distances_in_sets(
    Z: Array, candidates: CandidateSets, embedding: Embedding
) -> Iterator[tuple[Index, Array, Array]]:
    """Yield examples with the distances to their own candidates (m, c), ∞ beyond the end of a set, and slacks."""
    z_norms = to_host(Queries(Z).squared)
    for examples, products, norms in candidates.products(Z, embedding):
        D, slack = distances_and_slack(products, z_norms[examples], norms, tie(Z))
        slack[np.isinf(slack)] = 0
        yield examples, D, slack


def distances_and_slack(
    products: Array, z_norms: Array, squared_norms: Array, part: float = TIE
) -> tuple[Array, Array]:
    """Return |z|² − 2⟨z, g⟩ + k(y, y), at least 0, and its part that may be rounding, 32ε(|z|² + k(y, y)).

    Both (q, c); products are overwritten.
    """
    lengths = z_norms[:, None] + squared_norms
    products *= -2
    products += lengths
    cut_below(products)
    lengths *= part
    return products, lengths
