"""The best label set of each size, exactly.

For a fixed size s the score of a set is linear, Σ_{j∈y} w_s,j + e_s (:mod:`.size_weights`), so its best set of size s
consists of the s labels that weigh most, and the nearest of all 2^L sets is the nearest of L + 1 of them. A separable
kernel has one order of labels for all sizes: one sorted row gives all of them. For other kernels sizes are visited in
ranges that double, and :mod:`.range_bounds` leaves out ranges that cannot contain the answer, and labels that no set of
the range can consist of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.range_bounds import Heaviest, RangeBounds
from psilearn.decoding.label_sets.size_queries import SizeQueries
from psilearn.decoding.label_sets.top_sums import largest_first, nth_largest, top_sums

SIZES_AT_ONCE = 16  # sizes whose weights are computed together
MIN_RANGE = 4  # sizes of the first range

Visit = Callable[[RangeBounds, SizeQueries, Index, Index, int], tuple[Array, Array]]


def best_of_sizes(queries: SizeQueries, k: int = 1) -> Array:
    """Return the distance of the nearest set of each allowed size, (b, n_sizes).

    It is ∞ for sizes that contain none of the k nearest sets. Cost per query for a separable kernel: L log L. For other
    kernels: O(T·L) per range of sizes, and for a size that is visited 2·T flops per label that its sets can consist of.
    """
    sizes = queries.limits.sizes
    if queries.weights.form.separable:
        return _best_by_one_order(queries, sizes)
    return visit_ranges(queries, k, _visit_selected)


def visit_ranges(queries: SizeQueries, k: int, visit: Visit, heaviest: Heaviest | None = None) -> Array:
    """Return the distance of the nearest set of each allowed size, (b, n_sizes), as ``visit`` finds it.

    It is ∞ for ranges of sizes that cannot contain one of the k nearest sets. ``visit`` gets the bounds of a range, the
    queries, the numbers of those that must be searched, the sizes, and k; ``heaviest`` is that of the bounds.
    """
    sizes = queries.limits.sizes
    D = np.full((len(queries), len(sizes)), np.inf)
    limit = np.full(len(queries), np.inf)  # the k nearest sets are at most so far
    slack = queries.slack(sizes).max(axis=1)
    active = np.arange(len(queries))  # queries that larger sets may improve
    for part in size_ranges(sizes):
        rest = RangeBounds.of(queries, sizes[part.start :], heaviest)
        still = rest.distances <= (limit + slack)[active]
        active, queries = active[still], queries.take(np.flatnonzero(still))
        bounds = RangeBounds.of(queries, sizes[part], heaviest)
        kept = np.flatnonzero(bounds.distances <= (limit + slack)[active])
        rows = active[kept]
        if not len(active):
            break
        if len(rows):
            D[rows, part], farthest = visit(bounds, queries, kept, sizes[part], k)
            limit[rows] = np.minimum(limit[rows], farthest)
        if 1 < k <= D.shape[1]:
            limit[rows] = np.minimum(limit[rows], np.partition(D[rows], k - 1, axis=1)[:, k - 1])
    return D


def size_ranges(sizes: Index) -> Iterator[slice]:
    """Split consecutive sizes into ranges whose lengths grow with the sizes."""
    start = 0
    while start < len(sizes):
        stop = min(len(sizes), start + max(MIN_RANGE, int(sizes[start]) + 1))
        yield slice(start, stop)
        start = stop


def _best_by_one_order(queries: SizeQueries, sizes: Index) -> Array:
    """Return the distances for all sizes, (b, S), from one sorted row of weights per query."""
    total, optional = queries.limits.reduce(queries.vectors[0])
    ordered = largest_first(optional)
    sums = np.concatenate([np.zeros((len(ordered), 1)), np.cumsum(ordered, axis=1)], axis=1)
    scores = sums[:, sizes - queries.limits.n_required] + np.reshape(total, (-1, 1))
    return queries.distances(scores * queries.weights.coefficients(sizes)[:, 0], sizes)


def _visit_selected(
    bounds: RangeBounds, queries: SizeQueries, rows: Index, sizes: Index, k: int
) -> tuple[Array, Array]:
    """Return the result of :func:`_visit` for some queries, with only those labels that their sets can consist of."""
    return _visit(bounds.select_labels(queries, rows, k), sizes, k)


def _visit(queries: SizeQueries, sizes: Index, k: int) -> tuple[Array, Array]:
    """Return the distance of the nearest set of each size, (b, S), and one within which there are k sets, (b,)."""
    scores, gaps = np.empty((len(queries), len(sizes))), np.full((len(queries), len(sizes)), np.inf)
    limits = queries.limits
    for first in range(0, len(sizes), SIZES_AT_ONCE):
        part = sizes[first : first + SIZES_AT_ONCE]
        total, optional = limits.reduce(queries.weights.weights(queries.vectors, part))
        for i, size in enumerate(part, start=first):
            n, W = int(size) - limits.n_required, optional[i - first]
            scores[:, i] = top_sums(W, n)
            if k == 1:
                gaps[:, i] = 0
            elif n >= 1 and n + k - 1 <= limits.n_optional:  # k − 1 labels can replace the last one
                gaps[:, i] = nth_largest(W, n) - nth_largest(W, n + k - 1)
        if limits.n_required:
            scores[:, first : first + len(part)] += total.T
    D = queries.distances(scores, sizes)
    return D, (D + 2 * gaps).min(axis=1)
