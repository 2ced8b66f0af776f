"""The nearest label sets of predictions, for kernels that are linear in a set of given size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from psilearn._backend import Compute, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils.samples import Index
from psilearn.decoding.distances import first_smallest, k_smallest, tie_tolerance
from psilearn.decoding.label_sets.label_rows import FoundSets, rows_of_labels
from psilearn.decoding.label_sets.set_limits import SetLimits, heaviest_columns
from psilearn.decoding.label_sets.size_search import SIZES_AT_ONCE, best_of_sizes
from psilearn.decoding.label_sets.size_weights import SizeQueries, SizeWeights

MAX_BLOCK_QUERIES = 64  # more of them gain no speed


@dataclass(frozen=True)
class SizeSolver:
    """Finds the nearest of all allowed sets: see :mod:`.size_search`.

    A tie goes to the smallest set, and among labels of equal weight to the lowest ones.
    """

    weights: SizeWeights
    limits: SetLimits

    def nearest(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        """Return the k nearest sets of predicted embeddings Z (q, p), for the basis (r, p) of the landmarks.

        k must not exceed the number of allowed sets, and must be 1 if labels have groups. Cost per query: 2·r·p flops
        and one pass over the nonzeros of the landmarks; then see :func:`.best_of_sizes` and :func:`.k_nearest`.
        """
        parts: list[FoundSets] = []
        for queries in iter_query_blocks(self.weights, self.limits, Z, basis, compute):
            D = best_of_sizes(queries, k)
            parts.append(self._select(queries, D) if k == 1 else self._select_several(queries, D, k))
        return FoundSets.join(parts, k, self.limits.n_labels)

    def _select(self, queries: SizeQueries, D: Array) -> FoundSets:
        """Return the nearest set of each query, from the distances of the nearest sets of each size."""
        sizes = self.limits.sizes
        slack = queries.slack(sizes)
        columns, least = first_smallest(D, slack)
        chosen = sizes[columns[:, 0]]
        W = to_numpy(queries.weights.weights_of_each(queries.vectors, chosen))
        half = np.take_along_axis(slack, columns, axis=1) / 2  # weights count twice in distances
        if self.limits.optional is None:
            labels = np.nonzero(heaviest_columns(W, chosen, half))[1]
        else:
            n_optional = chosen - self.limits.n_required
            rows = zip(W, n_optional.tolist(), half[:, 0].tolist(), strict=True)
            labels = np.concatenate([self.limits.best_labels(*row) for row in rows])
        return FoundSets(rows_of_labels(labels, chosen, self.limits.n_labels), least)

    def _select_several(self, queries: SizeQueries, D: Array, k: int) -> FoundSets:
        """Return the k nearest sets of each query."""
        ranked = [k_nearest(queries, row, D[row], k) for row in range(len(queries))]
        sets = [labels for found in ranked for labels in found.labels]
        sizes = np.array([len(labels) for labels in sets], dtype=np.intp)
        rows = rows_of_labels(np.concatenate(sets), sizes, self.limits.n_labels)
        return FoundSets(rows, np.stack([found.distances for found in ranked]))


def iter_query_blocks(
    weights: SizeWeights, limits: SetLimits, Z: Any, basis: Any, compute: Compute
) -> Iterator[SizeQueries]:
    """Yield predicted embeddings Z (q, p) as queries, in blocks that fit into memory."""
    compute = compute.on_numpy() if limits.optional is not None else compute
    T, L, r = weights.n_vectors, limits.n_labels, len(basis)
    basis = compute.asarray(basis, np.float64)
    tolerance, sums = tie_tolerance(Z), weights.summation(compute)
    for rows in compute.iter_blocks(len(Z), 8 * (r + L * (4 * T + 3 * SIZES_AT_ONCE)), MAX_BLOCK_QUERIES):
        block = compute.asarray(Z[rows], np.float64)
        vectors, totals = sums(block @ basis.T)
        squared = to_numpy(row_products(block, block))
        yield SizeQueries(weights, limits, vectors, totals, squared, tolerance)


class RankedSets(NamedTuple):
    """The nearest sets of one query, nearest first."""

    labels: list[Index]  # ascending labels of each set
    distances: Array  # (k,); tied ones are equal


class _Places(NamedTuple):
    """A set of labels as places in the order of labels by weight, and which of them may still move.

    The first ``n_first`` labels are at the first places, the next one is at ``place`` < ``end``, and the others are at
    the places ``fixed``.
    """

    n_first: int
    place: int
    end: int
    fixed: tuple[int, ...]

    def all(self) -> list[int]:
        """Return the places of all labels of the set."""
        return [*range(self.n_first), self.place, *self.fixed]

    def following(self) -> Iterator[tuple[_Places, int]]:
        """Yield the sets that follow this one, and the place from which a label moves to the next place.

        From the set of the first places every set is reached exactly once: labels move from the last to the first, each
        to its final place. A move never adds weight, because weights descend.
        """
        if self.place + 1 < self.end:
            yield self._replace(place=self.place + 1), self.place
        if 1 <= self.n_first < self.place:
            yield _Places(self.n_first - 1, self.n_first, self.place, (self.place, *self.fixed)), self.n_first - 1


class _LabelOrders:
    """For one query and each size: the labels that its k best sets consist of, heaviest first, and their weights."""

    def __init__(self, queries: SizeQueries, row: int, k: int) -> None:
        self._weights = queries.weights
        self._vectors = to_numpy(queries.vectors[:, row])  # (T, L)
        self._k = k
        self._known: dict[int, tuple[Index, Array]] = {}

    def __call__(self, size: int) -> tuple[Index, Array]:
        if size not in self._known:
            w = self._weights.coefficients(np.array([size]))[0] @ self._vectors
            order = np.argsort(-w, kind="stable")[: size + self._k - 1]
            self._known[size] = order, w[order]
        return self._known[size]


def k_nearest(queries: SizeQueries, row: int, distances: Array, k: int) -> RankedSets:
    """Return the k nearest sets of one query, or all if there are fewer.

    One heap contains the nearest set of each size, whose ``distances`` (n_sizes,) are known, and the followers of the
    sets that were taken from it: k steps, and one sorted row of weights per size that occurs. Ties are ordered by size,
    then by labels. If several sets tie with the last one, any of them may be returned.
    """
    sizes, orders = queries.limits.sizes, _LabelOrders(queries, row, k)
    heap: list[tuple[float, int, int, _Places]] = []
    for size, distance in zip(sizes[np.isfinite(distances)], distances[np.isfinite(distances)], strict=True):
        end = min(int(size) + k - 1, queries.limits.n_labels)
        heap.append((float(distance), int(size), 0, _Places(int(size) - 1, int(size) - 1, end, ())))
    heapify(heap)
    found: list[tuple[int, tuple[int, ...], float]] = []
    n_pushed = 0
    while heap and len(found) < k:
        distance, size, _, places = heappop(heap)
        if not size:
            found.append((0, (), distance))
            continue
        labels, w = orders(size)
        found.append((size, tuple(np.sort(labels[places.all()]).tolist()), distance))
        for following, place in places.following():
            n_pushed += 1
            heappush(heap, (distance + 2 * float(w[place] - w[place + 1]), size, n_pushed, following))
    return _rank(found, queries, row)


def _rank(found: list[tuple[int, tuple[int, ...], float]], queries: SizeQueries, row: int) -> RankedSets:
    """Return sets of (size, labels, distance) in the order of their distances; ties by size and labels."""
    found.sort()
    D = np.array([[distance for _, _, distance in found]])
    norms = queries.norms(np.array([size for size, _, _ in found], dtype=np.intp))
    columns, values = k_smallest(D, queries.tolerance * (queries.squared[row] + norms)[None], len(found))
    return RankedSets([np.array(found[i][1], dtype=np.intp) for i in columns[0]], values[0])
