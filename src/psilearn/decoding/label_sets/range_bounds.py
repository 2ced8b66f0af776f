"""Bounds on the weights of labels, and on distances, for all sets whose sizes are in a range.

Let weight(s, t) = f_s ρ_st with f_s the mean over t, and let ρ⁺_t and ρ⁻_t be the largest and the smallest ρ_st of the
range a ≤ s ≤ b. With A_t = A⁺_t − A⁻_t in positive parts, the weights w_s = f_s Σ_t ρ_st A_t satisfy

    lower_j = Σ_t ρ⁻_t A⁺_tj − ρ⁺_t A⁻_tj  ≤  w_s,j / f_s  ≤  Σ_t ρ⁺_t A⁺_tj − ρ⁻_t A⁻_tj = upper_j.

So the score of a set of such a size is at most max_s f_s times the total of the b largest max(upper_j, 0), and the
labels of the best set of size s are among those with upper_j ≥ the b-th largest lower_i. If s is large compared with
all t, every ρ_st is close to 1, so both bounds are tight, and the first one falls like 1/a.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psilearn._backend import is_tensor
from psilearn._linalg import Array, clip_negative
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.size_queries import SizeQueries
from psilearn.decoding.label_sets.size_weights import to_device_of
from psilearn.decoding.label_sets.top_sums import largest_columns, nth_largest, top_sums

Heaviest = Callable[[Any], Array]

ROUNDING = 1e-12  # of bounds, relative to the largest |A|
MIN_SAVED = 2  # labels are selected if at most this part of them remains


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
