"""The nearest label sets of predictions, for kernels that are linear in a set of given size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import Compute, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils.samples import Index
from psilearn.decoding.distances import first_smallest, tie_tolerance
from psilearn.decoding.label_sets.found_sets import FoundSets
from psilearn.decoding.label_sets.k_best import k_nearest
from psilearn.decoding.label_sets.label_rows import rows_of_labels
from psilearn.decoding.label_sets.set_limits import SetLimits
from psilearn.decoding.label_sets.size_queries import SizeQueries
from psilearn.decoding.label_sets.size_search import SIZES_AT_ONCE, best_of_sizes
from psilearn.decoding.label_sets.size_weights import SizeWeights

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
        _, optional = self.limits.reduce(W)
        half = np.take_along_axis(slack, columns, axis=1) / 2  # weights count twice in distances
        mask = heaviest(optional, chosen - self.limits.n_required, half)
        if self.limits.optional is None:
            labels = np.nonzero(mask)[1]
        else:
            labels = np.concatenate([self.limits.best_labels(w, row) for w, row in zip(W, mask, strict=True)])
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


def heaviest(W: Array, n: Index, slack: Array) -> Any:
    """Return the mask of the n_i heaviest columns of each row of W (b, c).

    Columns whose weights differ from the n_i-th largest by at most ``slack`` (b, 1) are tied; the lowest of them are
    taken.
    """
    if not W.shape[1]:
        return np.zeros(W.shape, dtype=bool)
    ordered = np.sort(W, axis=1)
    border = np.take_along_axis(ordered, np.clip(W.shape[1] - n, 0, W.shape[1] - 1)[:, None], axis=1)
    above = (border + slack < W) & (n > 0)[:, None]
    tied = ~above & (border - slack <= W)
    free = (n - above.sum(axis=1))[:, None]
    return above | (tied & (np.cumsum(tied, axis=1) <= free))
