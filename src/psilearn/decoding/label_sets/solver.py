"""The nearest label sets of predictions, for kernels that are linear in a set of given size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import Compute, to_numpy
from psilearn._linalg import Array, row_products
from psilearn.decoding.distances import first_smallest, tie_tolerance
from psilearn.decoding.label_sets.found_sets import FoundSets
from psilearn.decoding.label_sets.k_best import k_nearest
from psilearn.decoding.label_sets.label_rows import rows_of_labels
from psilearn.decoding.label_sets.set_limits import SetLimits, heaviest_columns
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
