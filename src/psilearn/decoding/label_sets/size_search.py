"""The best label set of each size, exactly.

For a fixed size s the score of a set is linear, Σ_{j∈y} w_s,j + e_s (:mod:`.size_weights`), so its best set of size s
consists of the s labels that weigh most, and the nearest of all 2^L sets is the nearest of L + 1 of them. A separable
kernel has one order of labels for all sizes: one sorted row gives all of them. For other kernels sizes are visited in
ranges that double, and :class:`RangeBounds` leaves out ranges that cannot contain the answer, and labels that no set of
the range can consist of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psilearn._backend import is_tensor
from psilearn._linalg import Array, clip_negative
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.size_weights import (
    SizeQueries,
    largest_columns,
    largest_first,
    nth_largest,
    to_device_of,
    top_sums,
)

SIZES_AT_ONCE = 16  # sizes whose weights are computed together
MIN_RANGE = 4  # sizes of the first range

Visit = Callable[["RangeBounds", SizeQueries, Index, Index, int], tuple[Array, Array]]
Heaviest = Callable[[Any], Array]

ROUNDING = 1e-12  # of bounds, relative to the largest |A|
MIN_SAVED = 2  # labels are selected if at most this part of them remains


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


# Bounds on the weights of labels, and on distances, for all sets whose sizes are in a range.
#
# Let weight(s, t) = f_s ρ_st with f_s the mean over t, and let ρ⁺_t and ρ⁻_t be the largest and the smallest ρ_st of
# the range a ≤ s ≤ b. With A_t = A⁺_t − A⁻_t in positive parts, the weights w_s = f_s Σ_t ρ_st A_t satisfy
#
#     lower_j = Σ_t ρ⁻_t A⁺_tj − ρ⁺_t A⁻_tj  ≤  w_s,j / f_s  ≤  Σ_t ρ⁺_t A⁺_tj − ρ⁻_t A⁻_tj = upper_j.
#
# So the score of a set of such a size is at most max_s f_s times the total of the b largest max(upper_j, 0), and the
# labels of the best set of size s are among those with upper_j ≥ the b-th largest lower_i. If s is large compared with
# all t, every ρ_st is close to 1, so both bounds are tight, and the first one falls like 1/a.
@dataclass(frozen=True)
class RangeBounds:
    """Bounds for the sets of some sizes."""

    upper: Any  # (b, L)
    lower: Any  # (b, L)
    largest: int  # size
    distances: Array  # (b,)  a lower bound on the distances of all sets

    @classmethod
    def of(cls, queries: SizeQueries, sizes: Index, heaviest: Heaviest | None = None) -> RangeBounds:
        """Compute the bounds: 4·T·L flops per query.

        ``heaviest`` returns at least the total weight of any allowed set, (b,), for weights (b, L), and at least 0. By
        default it is the total of the largest positive weights.
        """
        coefficients = queries.weights.coefficients(sizes)  # (S, T)
        factors = coefficients.mean(axis=1)
        positive = factors[factors > 0]  # a size without weights may have any factor, because its ratios are 0
        factors = np.where(factors > 0, factors, positive.min() if len(positive) else 1.0)
        ratios = coefficients / factors[:, None]
        largest, smallest = ratios.max(axis=0), ratios.min(axis=0)
        center = _combine(queries.vectors, (largest + smallest) / 2)
        spread = _combine(queries.magnitudes, (largest - smallest) / 2 + ROUNDING * largest)
        upper = center + spread
        score = _largest_total(queries, upper, int(sizes[-1])) if heaviest is None else heaviest(upper)
        score = np.maximum(factors.max() * score, factors.min() * score)
        score = score + queries.weights.constants(sizes, queries.totals).max(axis=1)
        distances = queries.squared - 2 * score + queries.norms(sizes).min()
        return cls(upper, center - spread, int(sizes[-1]), distances)

    def select_labels(self, queries: SizeQueries, rows: Index, k: int) -> SizeQueries:
        """Return some rows of the queries with only those labels that the k best sets of each size can consist of.

        With groups, or if most labels remain, all labels are kept.
        """
        queries = queries.take(rows)
        n, n_labels = self.largest + k - 1, queries.limits.n_labels
        if not n or queries.limits.optional is not None or MIN_SAVED * n >= n_labels:
            return queries
        index = to_device_of(self.upper, rows)
        upper, lower = self.upper[index], self.lower[index]
        possible = upper >= to_device_of(upper, nth_largest(lower, n))[:, None]
        n_kept = int(possible.sum(1).max())
        if MIN_SAVED * n_kept >= n_labels:
            return queries
        return replace(queries, vectors=_take_columns(queries.vectors, largest_columns(upper, n_kept)))


def _largest_total(queries: SizeQueries, upper: Any, largest: int) -> Array:
    """Return the total of the largest positive weights of up to ``largest`` labels, (b,)."""
    total, optional = queries.limits.reduce(upper)
    n = min(largest - queries.limits.n_required, queries.limits.n_optional)
    return np.asarray(top_sums(clip_negative(optional), n) + total)


def _combine(vectors: Any, coefficients: Array) -> Any:
    """Return Σ_t c_t A_t, (b, L), for vectors (T, b, L)."""
    return (to_device_of(vectors, coefficients) @ vectors.reshape(len(vectors), -1)).reshape(vectors.shape[1:])


def _take_columns(vectors: Any, columns: Any) -> Any:
    """Return the entries of vectors (T, b, L) at the columns (b, n) of each row, (T, b, n)."""
    if is_tensor(vectors):
        return vectors.gather(2, columns.expand(len(vectors), *columns.shape))
    return np.take_along_axis(vectors, columns[None], axis=2)
