"""Scores from one float32 GEMM that never exceed the true ones; float64 decides what they leave in doubt.

The score s(z, y) = k(y, y) − 2⟨z, g(y)⟩ orders the candidates of a query as the distance |z|² + s does. With γ above
all rounding, relative to 2|z||g(y)| + k(y, y),

    L(z, y) = [z, 1, |z|] · [−2g(y), (1−γ)k(y, y), −2γ|g(y)|]  lies in  [s − 2γ(2|z||g| + k), s],

so that a pair whose L is above a limit need not be looked at again. γ belongs to each pair: a long candidate does not
blur the others.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device
from threadpoolctl import ThreadpoolController

from psilearn._backend import (
    array_namespace,
    asarray,
    block_rows,
    computing_rows,
    halving,
    is_tensor,
    put,
    takes_tf32,
    tensor_cores,
    to_host,
)
from psilearn._linalg import Array, at_most, non_negative, row_products
from psilearn._utils.progress import track
from psilearn._utils.samples import Index
from psilearn.decoding.candidates import CandidateSet
from psilearn.kernels.inner_products import slices

TIE = 32 * float(np.finfo(float).eps)  # the part of |z|² + k(y, y) by which equal distances may differ
AREA = 2**19  # scores in a block at the most: 2 MB of float32
WIDTH = 1024  # candidates in a block
BYTES_PER_SCORE = 128  # of the block and what selection makes of it where every pair is in doubt
PARALLEL = 2**26  # products that are worth a thread
_LIMITING = Lock()  # threads of two searches at once would leave BLAS with the limit of the other
PAIRS = 2**27  # numbers of the pairs whose distances a device computes at once
DEVICE_AREA = 2**27  # scores in a block of a GPU at the most
TRUNCATED = 1.1 * 2.0**-9  # what TF32 takes away: the last 13 bits of both factors, relative to their product
DENSE = 1 / 16  # from this part of a block on, pairs in doubt are computed by a GEMM rather than one by one


def tie(*arrays: Array) -> float:
    """Return what part of |z|² + k(y, y) may be rounding, for queries and embeddings of that precision."""
    coarsest = max(float(array_namespace(array).finfo(array.dtype).eps) for array in arrays)
    return TIE * coarsest / float(np.finfo(float).eps)


class Queries:
    """Rows of Z (q, p) with their squared lengths, in float64 whatever the precision of Z."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z
        self.squared = row_products(Z, Z)
        self.lengths = self.squared**0.5


class Bounds:
    """Lower bounds of scores, and exact distances, for one block of candidates."""

    def __init__(self, queries: Queries, g: Array, squared_norms: Array, start: int) -> None:
        self.queries, self.g, self.start = queries, g, start
        xp = array_namespace(g)
        self.squared_norms = asarray(squared_norms, np.float64)
        g_squared = row_products(g, g)
        self.lengths = g_squared**0.5
        if not (xp.all(xp.isfinite(g_squared)) and xp.all(xp.isfinite(self.squared_norms))):
            raise ValueError("The embedded candidates hold numbers that are not finite: build the CandidateSet again.")
        self.excess = max(0.0, float((g_squared - self.squared_norms).max()))  # of |g|² over k(y, y): rounding
        z, length = float(queries.lengths.max()) if len(queries.Z) else 0.0, float(self.lengths.max())
        largest = 2 * z * length + float(abs(self.squared_norms).max())
        fits = largest > 1e-30 and max(largest, z, 2 * length) < 1e37
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if fits else np.float64)
        kind = np.finfo(np.float32 if fits else np.float64)
        p = g.shape[1]
        self.tie = tie(queries.Z, g)
        self.gamma = (p + 16) * (float(kind.eps) / (1 if is_tensor(g) else 2) + 2.0**-53) + 2 * self.tie
        if fits and takes_tf32():
            self.gamma += TRUNCATED
        self.tiny = (p + 16) * float(kind.tiny) * (1 + z + 2 * length)  # what underflow may take away
        self.largest = largest
        self._step = block_rows(32 * max(1, p), 1024)  # pairs whose rows stay in the cache
        self._right = xp.empty((len(g), p + 2), dtype=getattr(xp, self.dtype.name), device=device(g))
        self._right[:, :p] = g
        self._right[:, :p] *= -2
        self._right[:, p] = (1 - self.gamma) * self.squared_norms
        self._right[:, p + 1] = -2 * self.gamma * self.lengths

    def left(self, rows: slice) -> Array:
        """Return [z, 1, |z|] for some queries."""
        p, xp = self.g.shape[1], array_namespace(self.g)
        shape = rows.stop - rows.start, p + 2
        left = xp.ones(shape, dtype=getattr(xp, self.dtype.name), device=device(self.g))
        left[:, :p] = self.queries.Z[rows]
        left[:, p + 1] = self.queries.lengths[rows]
        return left

    def lower(self, left: Array, columns: slice, out: Array | None) -> Array:
        """Return L, shape (q, c), written over ``out`` where there is one."""
        right = self._right[columns]
        if out is None:
            with tensor_cores():
                return left @ right.T
        return np.matmul(left, right.T, out=out[: len(left) * len(right)].reshape(len(left), len(right)))

    def spread(self, rows: Any, columns: Any) -> Array:
        """Return 2γ(2|z||g| + k): the score is at most L and this."""
        z, g = self.queries.lengths[rows], self.lengths[columns]
        return 2 * self.gamma * (2 * z * g + abs(self.squared_norms[columns])) + self.tiny

    def limit(self, distances: Array, rows: Any) -> Array:
        """Return the L above which no distance is, or ties with, one of at most ``distances``."""
        squared = self.queries.squared[rows]
        return distances - squared + 2 * self.tie * squared + self.tiny

    def largest_spread(self, limit: Array, rows: Any) -> Array:
        """Return the largest spread of a row's candidates with L ≤ limit.

        |ψ(y)| ≤ |z| + |G*z − ψ(y)| bounds the length of a candidate that is near; the factor makes room for γ.
        """
        z = self.queries.lengths[rows]
        if self.gamma >= 0.02:
            return 2 * self.gamma * self.largest + self.tiny + 0 * z
        length = 1.25 * (z + (z**2 + abs(limit) + self.excess) ** 0.5)
        return 2 * self.gamma * at_most(length**2 + 2 * z * length, self.largest) + self.tiny

    def distances(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """Return |z|² − 2⟨z, g⟩ + k(y, y), at least 0, and its slack in float64, pair by pair; in NumPy."""
        if is_tensor(self.g):
            return self._distances_on_device(rows, columns)
        products = np.empty(len(rows))
        for start in range(0, len(rows), self._step):
            pairs = slice(start, start + self._step)
            left, right = self.queries.Z[rows[pairs]], self.g[columns[pairs]]
            products[pairs] = np.einsum("ij,ij->i", left, right, dtype=np.float64)
        return self._distances(products, rows, columns)

    def _distances_on_device(self, rows: Any, columns: Any) -> tuple[Array, Array]:
        rows, columns = put(rows, self.g.device), put(columns, self.g.device)

        def some(pairs: slice) -> Array:
            i, j = rows[pairs], columns[pairs]
            pair = self._distances(row_products(self.queries.Z[i], self.g[j]), i, j)
            return np.stack([to_host(part) for part in pair])

        steps = slices(len(rows), max(1, PAIRS // max(1, self.g.shape[1])))
        found = [values for step in steps for _, values in halving(step, some)]
        D, slack = np.concatenate([np.empty((2, 0)), *found], axis=1)
        return D, slack

    def many_distances(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """Return the same for many pairs, sorted by row, from one GEMM over their rows and columns."""
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        inverse = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        first, last = columns.min(), columns.max() + 1
        near = self.g[first:last].astype(np.float64, copy=False)
        products = self.queries.Z[rows[starts]].astype(np.float64, copy=False) @ near.T
        return self._distances(products[inverse, columns - first], rows, columns)

    def _distances(self, products: Array, rows: Index, columns: Index) -> tuple[Array, Array]:
        lengths = self.queries.squared[rows] + self.squared_norms[columns]
        return non_negative(lengths - 2 * products), self.tie * lengths


class Scored(NamedTuple):
    """A block of lower bounds; L is overwritten by the next one."""

    bounds: Bounds
    queries: slice
    columns: slice  # within the candidates of ``bounds``
    lower: Array  # (q, c)

    def places(self, j: Index) -> Index:
        """Return the places in the whole set of columns of this block."""
        return j + (self.bounds.start + self.columns.start)

    def distances(self, i: Index, j: Index) -> tuple[Array, Array]:
        """Return exact distances and slacks of pairs of this block, sorted by i."""
        many = not is_tensor(self.lower) and len(i) > DENSE * self.lower.size
        exact = self.bounds.many_distances if many else self.bounds.distances
        return exact(i + self.queries.start, j + self.columns.start)


def score(work: Callable[[Scored], None], queries: Queries, candidates: CandidateSet, k: int = 1) -> None:
    """Let ``work`` see every block of queries × candidates, candidates ascending for each query.

    A block fits into the cache of one core. As many threads as BLAS may use take blocks of queries, each with a BLAS of
    one thread: no query is seen by two threads at once.

    Cost: 2·q·c·(p + 2) flops in float32 (float64 where float32 would overflow); memory: ``working_memory``.
    """
    n, p = queries.Z.shape
    if is_tensor(queries.Z):
        _score_on_device(work, queries, candidates)
        return
    blas = _blas()
    n_threads = max((library["num_threads"] for library in blas.info()), default=1)
    n_threads = min(n_threads, n, 1 + n * len(candidates) * (p + 2) // PARALLEL)
    area = block_rows(BYTES_PER_SCORE * n_threads, AREA)
    width = min(max(WIDTH, k), area, len(candidates))
    height = min(area // max(width, k), block_rows(20 * (p + 2) * n_threads, area), -(-n // n_threads))
    height = max(1, height)
    tops = range(0, n, height)
    parts = [tops[i * len(tops) // n_threads : (i + 1) * len(tops) // n_threads] for i in range(n_threads)]
    for rows, g in track(candidates.blocks(), "search of candidates"):
        bounds = Bounds(queries, g, candidates.squared_norms[rows], rows.start)
        with _LIMITING, blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
            others = [pool.submit(_score, work, bounds, part, height, width) for part in parts[1:]]
            _score(work, bounds, parts[0], height, width)
            for other in others:
                other.result()


def _score_on_device(work: Callable[[Scored], None], queries: Queries, candidates: CandidateSet) -> None:
    """Let ``work`` see blocks as large as the memory of the device allows, halved where it runs out.

    That may happen before ``work`` has kept anything of a block, not after: see ``pairs_of`` and ``distances``.
    """
    n = len(queries.Z)
    for rows, g in track(candidates.blocks(), "search of candidates"):
        bounds, everything = Bounds(queries, g, candidates.squared_norms[rows], rows.start), slice(0, len(g))

        def look(chosen: slice, bounds: Bounds = bounds, everything: slice = everything) -> None:
            work(Scored(bounds, chosen, everything, bounds.lower(bounds.left(chosen), everything, None)))

        area = computing_rows(BYTES_PER_SCORE, DEVICE_AREA)
        for chosen in slices(n, max(1, area // len(g))):
            for _ in halving(chosen, look):
                pass


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def _score(work: Callable[[Scored], None], bounds: Bounds, tops: range, height: int, width: int) -> None:
    out = np.empty(height * width, dtype=bounds.dtype)
    for top in tops:
        chosen = slice(top, min(top + height, len(bounds.queries.Z)))
        left = bounds.left(chosen)
        for start in range(0, len(bounds.g), width):
            columns = slice(start, min(start + width, len(bounds.g)))
            work(Scored(bounds, chosen, columns, bounds.lower(left, columns, out)))


def round_up(limit: Array, dtype: Any) -> Array:
    """Return the limit in another precision, not below it."""
    if is_tensor(limit):
        xp = array_namespace(limit)
        rounded = xp.astype(limit, dtype)
        return xp.nextafter(rounded, xp.full_like(rounded, np.inf))
    with np.errstate(over="ignore"):
        return np.nextafter(limit.astype(dtype), dtype.type(np.inf))


def round_down(limit: Array, dtype: Any) -> Array:
    """Return the limit in another precision, not above it."""
    return -round_up(-limit, dtype)
