"""Lower bounds of scores from one float32 matrix product, and the exact scores of the pairs that they leave in doubt.

The score s(z, y) = k(y, y) − 2⟨z, g(y)⟩ orders the candidates of a query as the distance |z|² + s does. With γ above
all rounding, relative to 2|z||g(y)| + k(y, y),

    L(z, y) = [z, 1, |z|] · [−2g(y), (1−γ)k(y, y), −2γ|g(y)|]  lies in  [s − 2γ(2|z||g| + k), s],

so that a pair whose L is above a limit needs no exact distance. γ is relative to each pair: a candidate with a long
embedding does not widen the bounds of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device

from psilearn._backend import Compute, array_namespace, block_rows, halve_if_needed, iter_slices, to_device, to_numpy
from psilearn._linalg import (
    HALF_ERROR,
    SPLIT_UNDERFLOW,
    Array,
    HalfMatrix,
    SplitMatrix,
    clip_above,
    is_split_faster,
    row_products,
)
from psilearn._utils.samples import Index
from psilearn.decoding.distances import tie_tolerance, to_distances

TF32_ERROR = 1.1 * 2.0**-9  # of a product whose factors lose their last 13 bits, relative to it
MAX_CACHED_PAIRS = 1024  # pairs whose rows stay in the cache
SMALL_BYTES = 2**14  # of pairs for which memory is not considered
MAX_PAIR_NUMBERS = 2**27  # numbers in the rows of the pairs whose distances a device computes together
MIN_SCALED = 1e-25  # largest entry of candidates that can be scaled to half precision
FLOAT32_RANGE = 1e-30, 1e37  # scores in this range neither underflow nor overflow in float32


class Queries:
    """Rows of Z (q, p) with their squared lengths, which are float64 whatever the precision of Z is."""

    def __init__(self, Z: Any) -> None:
        self.Z = Z
        self.squared = _squared_lengths(Z)
        self.lengths = self.squared**0.5


class Bounds:
    """Lower bounds of scores, and exact distances, for one block of candidates.

    ``g`` (c, p) holds the embedded candidates, ``squared_norms`` (c,) their k(y, y), and ``start`` is the index of the
    first of them.
    """

    def __init__(self, queries: Queries, g: Any, squared_norms: Array, start: int, compute: Compute) -> None:
        self.queries, self.g, self.start, self.compute = queries, g, start, compute
        xp = array_namespace(g)
        self.squared_norms: Any = squared_norms if compute.device is None else to_device(squared_norms, g.device)
        g_squared = _squared_lengths(g)
        self.lengths = g_squared**0.5
        if not (xp.all(xp.isfinite(g_squared)) and xp.all(xp.isfinite(self.squared_norms))):
            raise ValueError("The embedded candidates hold numbers that are not finite: build the candidates again.")
        self.excess = max(0.0, float((g_squared - self.squared_norms).max()))  # of |g|² over k(y, y): rounding
        z, length = float(queries.lengths.max()) if len(queries.Z) else 0.0, float(self.lengths.max())
        self.largest = 2 * z * length + float(abs(self.squared_norms).max())
        is_single = self.largest > FLOAT32_RANGE[0] and max(self.largest, z, 2 * length) < FLOAT32_RANGE[1]
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if is_single else np.float64)
        rounding = np.finfo(self.dtype)
        p = g.shape[1]
        self.tolerance = tie_tolerance(queries.Z, g)
        unit = float(rounding.eps) / (2 if compute.device is None else 1)
        self.gamma = (p + 16) * (unit + 2.0**-53) + 2 * self.tolerance
        if is_single and compute.device is not None and compute.uses_tf32:
            self.gamma += TF32_ERROR
        self.tiny = (p + 16) * float(rounding.tiny) * (1 + z + 2 * length)  # what underflow may take away
        self._lower_dtype: Any = self.dtype if isinstance(g, np.ndarray) else getattr(xp, self.dtype.name)
        is_split = is_split_faster((len(g), p), compute.with_dtype(np.float32))
        self._halves: HalfMatrix | None = None
        largest = max(2 * length, float(abs(self.squared_norms).max()))
        if is_single and is_split and largest > MIN_SCALED and not compute.uses_tf32:
            self.gamma += HALF_ERROR  # the sums of p + 2 terms are truncated by no more than γ has for them
            self.tiny += (p + 2) * SPLIT_UNDERFLOW * (1 + z) * largest
            self._halves = HalfMatrix.empty((len(g), p + 2), largest, g.device)
            self._halves.fill(slice(0, p), g, -2)
            self._halves.fill(p, self.squared_norms, 1 - self.gamma)
            self._halves.fill(p + 1, self.lengths, -2 * self.gamma)
            return
        self._right = xp.empty((len(g), p + 2), dtype=self._lower_dtype, device=device(g))
        self._right[:, :p] = g
        self._right[:, :p] *= -2
        self._right[:, p] = (1 - self.gamma) * self.squared_norms
        self._right[:, p + 1] = -2 * self.gamma * self.lengths

    def left(self, rows: slice) -> Any:
        """Return [z, 1, |z|] for a slice of the queries."""
        p, xp = self.g.shape[1], array_namespace(self.g)
        n = rows.stop - rows.start
        if self.compute.device is None:
            left = np.ones((n, p + 2), dtype=self._lower_dtype, order="F")  # products are faster than with order C
        else:
            left = xp.ones((n, p + 2), dtype=self._lower_dtype, device=device(self.g))
        left[:, :p] = self.queries.Z[rows]
        left[:, p + 1] = self.queries.lengths[rows]
        return left

    def lower(self, left: Any, columns: slice, out: Any) -> Any:
        """Return L (q, c), written into ``out`` unless that is None."""
        if self._halves is not None:
            return SplitMatrix.of(left).times_rows(self._halves[columns])
        right = self._right[columns]
        if out is None:
            with self.compute.tensor_cores():
                return left @ right.T
        return np.matmul(left, right.T, out=out[: len(left) * len(right)].reshape(len(left), len(right)))

    def spread(self, rows: Any, columns: Any) -> Any:
        """Return 2γ(2|z||g| + k): the score exceeds L by at most this."""
        z, g = self.queries.lengths[rows], self.lengths[columns]
        return 2 * self.gamma * (2 * z * g + abs(self.squared_norms[columns])) + self.tiny

    def limit(self, distances: Any, rows: Any) -> Any:
        """Return the limit on L above which a distance is neither below ``distances`` nor ties with it."""
        squared = self.queries.squared[rows]
        return round_up(distances - squared + 2 * self.tolerance * squared + self.tiny, self._lower_dtype)

    def largest_spread(self, limit: Any, rows: Any) -> Any:
        """Return the largest spread among the candidates of a row with L ≤ limit.

        |ψ(y)| ≤ |z| + |G*z − ψ(y)| bounds the length of a candidate that is near; the factor 1.25 allows for γ.
        """
        z = self.queries.lengths[rows]
        if self.gamma >= 0.02:
            return 2 * self.gamma * self.largest + self.tiny + 0 * z
        length = 1.25 * (z + (z**2 + abs(limit) + self.excess) ** 0.5)
        return 2 * self.gamma * clip_above(length**2 + 2 * z * length, self.largest) + self.tiny

    def distances(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """Return the distances and slacks of pairs in float64, pair by pair, as NumPy arrays."""
        if self.compute.device is not None:
            return self._distances_on_device(rows, columns)
        products, bytes_per_pair = np.empty(len(rows)), 32 * max(1, self.g.shape[1])
        is_small = len(rows) * bytes_per_pair <= SMALL_BYTES
        step = len(rows) or 1 if is_small else block_rows(bytes_per_pair, MAX_CACHED_PAIRS)
        for start in range(0, len(rows), step):
            pairs = slice(start, start + step)
            left, right = self.queries.Z[rows[pairs]], self.g[columns[pairs]]
            products[pairs] = np.einsum("ij,ij->i", left, right, dtype=np.float64)
        return self._distances(products, rows, columns)

    def _distances_on_device(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        i, j = to_device(rows, self.g.device), to_device(columns, self.g.device)

        def compute_pairs(pairs: slice) -> Array:
            products = row_products(self.queries.Z[i[pairs]], self.g[j[pairs]])
            return np.stack([to_numpy(part) for part in self._distances(products, i[pairs], j[pairs])])

        steps = iter_slices(len(rows), max(1, MAX_PAIR_NUMBERS // max(1, self.g.shape[1])))
        parts = [part for step in steps for _, part in halve_if_needed(step, compute_pairs, self.compute)]
        D, slack = np.concatenate([np.empty((2, 0)), *parts], axis=1)
        return D, slack

    def many_distances(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """Return the same for many pairs, sorted by row, from one matrix product over their rows and columns."""
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        inverse = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        first, last = columns.min(), columns.max() + 1
        g = self.g[first:last].astype(np.float64, copy=False)
        products = self.queries.Z[rows[starts]].astype(np.float64, copy=False) @ g.T
        return self._distances(products[inverse, columns - first], rows, columns)

    def _distances(self, products: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
        return to_distances(products, self.queries.squared[rows] + self.squared_norms[columns], self.tolerance)


def round_up(limit: Any, dtype: Any) -> Any:
    """Return a limit in another precision, at least as large."""
    if isinstance(limit, np.ndarray):
        with np.errstate(over="ignore"):
            return np.nextafter(limit.astype(dtype), dtype.type(np.inf))
    xp = array_namespace(limit)
    rounded = xp.astype(limit, dtype)
    return xp.nextafter(rounded, xp.full_like(rounded, np.inf))


def round_down(limit: Any, dtype: Any) -> Any:
    """Return a limit in another precision, at most as large."""
    return -round_up(-limit, dtype)


def _squared_lengths(A: Any) -> Any:
    """Return |aᵢ|² for the rows of an array or tensor, in float64."""
    if not A.shape[1]:
        return row_products(A, A)
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, A, dtype=np.float64)
    xp = array_namespace(A)
    return xp.linalg.vector_norm(A, axis=1, dtype=xp.float64) ** 2  # in one pass
