"""Exact nearest candidates of one shared set, in blocks of bounds: never all distances at once.

Every pair gets a lower bound of its score from a float32 matrix product (:mod:`psilearn.decoding.bounds`). Pairs whose
bound says that they may be among the answers get their distance in float64, which decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from psilearn._backend import Compute, array_namespace, halve_if_needed, iter_slices, to_numpy, working_bytes
from psilearn._linalg import Array, argsmallest, clip_negative, nonzero_pairs
from psilearn._utils.progress import step, track
from psilearn._utils.samples import Index
from psilearn.decoding.bounds import Bounds, Queries, round_down, round_up
from psilearn.decoding.distances import k_smallest

BLOCK_COLUMNS = 1024  # candidates in a block of bounds
MAX_BLOCK_BOUNDS = 2**19  # bounds in a block: 2 MB of float32
WIDE_COLUMNS = 8192  # candidates in a block from which only the nearest is selected: two passes that read it once
MAX_WIDE_BOUNDS = 2**21  # bounds in such a block: few blocks, so that threads rarely wait for the interpreter lock
LONE_BLOCKS = 3  # times as many bounds in a block if one thread visits all: its products use the threads of BLAS
LONE_PRODUCTS = 2**29  # multiplications per thread of BLAS, which stays busy for 30 ms after its last product
MAX_DEVICE_BOUNDS = 2**27  # bounds in a block of a GPU
BYTES_PER_BOUND = 128  # of the block and what selection makes of it if every pair is in doubt
PRODUCTS_PER_THREAD = 2**26  # multiplications that are worth a thread
DENSE_SHARE = 1 / 16  # of the pairs of a block: if more are in doubt, a matrix product computes them
MANY_HITS = 32  # pairs of a row in doubt, besides 4k, from which on the k smallest bounds are searched for first
MAX_PAIRS = 2**22  # pairs of a device in doubt that are processed together
_BLAS_LIMIT = Lock()  # threads of two searches at once would leave BLAS with the limit of the other one
_limits: list[Any] = []  # what limits BLAS while a search holds the lock


def _end_searches() -> None:
    """Free the lock and the threads of BLAS in a forked child, where the thread that searches does not exist."""
    global _BLAS_LIMIT
    _BLAS_LIMIT = Lock()
    while _limits:
        _limits.pop().restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_searches)


class Layout(NamedTuple):
    """The shape of the blocks of a search on the CPU."""

    width: int  # candidates in a block
    max_bounds: int  # bounds in a block
    lone_products: int = 0  # multiplications per thread of BLAS up to which one thread visits all blocks


Blocks = Callable[[Compute], Iterator[tuple[slice, Any]]]  # yields consecutive rows and their embeddings g


class BoundBlock(NamedTuple):
    """A block of lower bounds; the next block overwrites ``lower``."""

    bounds: Bounds
    queries: slice
    columns: slice  # within the candidates of ``bounds``
    lower: Any  # (q, c)

    def distances(self, i: Index, j: Index) -> tuple[Array, Array]:
        """Return exact distances and slacks of pairs of this block, sorted by i."""
        is_dense = isinstance(self.lower, np.ndarray) and len(i) > DENSE_SHARE * self.lower.size
        exact = self.bounds.many_distances if is_dense else self.bounds.distances
        return exact(i + self.queries.start, j + self.columns.start)


Visit = Callable[[BoundBlock], None]


def search_nearest(Z: Any, blocks: Blocks, squared_norms: Array, k: int, compute: Compute) -> tuple[Index, Array]:
    """Return the indices and distances (q, k) of the k nearest candidates of each query z(x), rows of Z (q, p).

    ``squared_norms`` (c,) holds k(y, y) of the candidates.
    """
    return search_nearest_with_slacks(Z, blocks, squared_norms, k, compute)[:2]


def search_nearest_with_slacks(
    Z: Any, blocks: Blocks, squared_norms: Array, k: int, compute: Compute
) -> tuple[Index, Array, Array]:
    """Return the same, and by how much each distance may differ from one that ties with it."""
    indices, distances = np.full((len(Z), k), -1, dtype=np.intp), np.full((len(Z), k), np.inf)
    slacks = np.zeros((len(Z), k))
    select_pairs = _pairs_within_reach if compute.device is None else _pairs_within_reach_on_device
    merge = _merge_nearest if k == 1 else _merge

    def keep_nearest(block: BoundBlock) -> None:
        best: tuple[Any, ...] = tuple(part[block.queries] for part in (distances, slacks, indices))
        for i, j in select_pairs(block, best[0][:, -1], k):
            merge(best, i, j + (block.bounds.start + block.columns.start), *block.distances(i, j))

    wide = Layout(WIDE_COLUMNS, MAX_WIDE_BOUNDS, LONE_PRODUCTS)
    layout = wide if k == 1 else Layout(max(BLOCK_COLUMNS, k), MAX_BLOCK_BOUNDS)
    _scan(keep_nearest, Queries(Z), blocks(compute), squared_norms, layout, compute)
    return indices, distances, slacks


def merge_nearest(parts: Sequence[tuple[Index, Array, Array]], k: int) -> tuple[Index, Array]:
    """Return the k nearest of what was found in separate parts of the candidates: indices, distances and slacks."""
    indices, distances, slacks = (np.concatenate(column, axis=1) for column in zip(*parts, strict=True))
    order = np.argsort(indices, axis=1)  # a tie goes to the lower index
    indices, distances, slacks = (np.take_along_axis(part, order, axis=1) for part in (indices, distances, slacks))
    columns, nearest = k_smallest(distances, slacks, k)
    return np.take_along_axis(indices, columns, axis=1), nearest


def search_positions(
    Z: Any, blocks: Blocks, squared_norms: Array, truth: Index, compute: Compute
) -> tuple[Array, Array]:
    """Return how many candidates are nearer than the one with index ``truth`` (q,), and how many tie with it.

    Where the index is −1 they are ∞ and 0. Candidates that are not embedded yet are embedded twice.
    """
    nearer, tied = np.where(truth >= 0, 0.0, np.inf), np.zeros(len(Z))
    queries = Queries(Z)
    truth_D, truth_slack = np.full(len(Z), -np.inf), np.zeros(len(Z))  # found by a first pass
    for rows, g in blocks(compute):
        examples = np.flatnonzero((truth >= rows.start) & (truth < rows.stop))
        bounds = Bounds(queries, g, squared_norms[rows], rows.start, compute)
        truth_D[examples], truth_slack[examples] = bounds.distances(examples, truth[examples] - rows.start)

    def count(block: BoundBlock) -> None:
        counts = _count_block(block, truth_D[block.queries], truth_slack[block.queries])
        nearer[block.queries] += counts[0]
        tied[block.queries] += counts[1]

    _scan(count, queries, blocks(compute), squared_norms, Layout(BLOCK_COLUMNS, MAX_BLOCK_BOUNDS), compute)
    return nearer, tied


def _scan(
    visit: Visit,
    queries: Queries,
    blocks: Iterator[tuple[slice, Any]],
    squared_norms: Array,
    layout: Layout,
    compute: Compute,
) -> None:
    """Call ``visit`` on every block of queries × candidates, with ascending candidates for each query.

    As many threads as BLAS may use process blocks of queries, each with BLAS limited to one thread: no query is visited
    by two threads at once. Short searches of a layout that has ``lone_products`` are done by one thread, and BLAS uses
    its threads: these still wait actively for work after the product that made the queries, and would take the cores of
    other threads.

    Cost: 2·q·c·(p + 2) flops in float32 (float64 if float32 would overflow); memory: ``working_memory``.
    """
    if compute.device is not None:
        _scan_on_device(visit, queries, track(blocks, "search of candidates"), squared_norms, compute)
        return
    (n, p), n_candidates = queries.Z.shape, len(squared_norms)
    blas, n_products = _blas(), n * n_candidates * (p + 2)
    n_threads = max((library["num_threads"] for library in blas.info()), default=1)
    n_threads = min(n_threads, max(1, n), 1 + n_products // PRODUCTS_PER_THREAD)
    is_lone = n_threads > 1 and n_products < layout.lone_products * n_threads
    n_visitors = 1 if is_lone else n_threads
    bytes_per_thread = working_bytes() // n_visitors
    max_bounds = LONE_BLOCKS * layout.max_bounds if is_lone else layout.max_bounds
    area = max(1, min(max_bounds, bytes_per_thread // BYTES_PER_BOUND))
    width = max(1, min(layout.width, area, n_candidates))
    share = max(1, -(-n // n_visitors))  # queries of a thread, in equal steps
    height = max(1, min(area // width, bytes_per_thread // (20 * (p + 2)), share))
    height = -(-share // -(-share // height))
    is_short = n_products < PRODUCTS_PER_THREAD
    for rows, g in blocks if is_short else track(blocks, "search of candidates"):
        bounds = Bounds(queries, g, squared_norms[rows], rows.start, compute)
        with _BLAS_LIMIT, nullcontext() if is_lone else blas.limit(limits=1) as limit:
            _limits[:] = [] if limit is None else [limit]
            try:
                _scan_in_threads(visit, bounds, n_visitors, height, width)
            finally:
                _limits.clear()


def _scan_in_threads(visit: Visit, bounds: Bounds, n_threads: int, height: int, width: int) -> None:
    """Visit the blocks of all queries; this thread and others take the next ``height`` queries when they are free."""
    tops: SimpleQueue[int] = SimpleQueue()
    for top in range(0, len(bounds.queries.Z), height):
        tops.put(top)
    if n_threads <= 1:
        _scan_queries(visit, bounds, tops, height, width)
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:
        pending = [pool.submit(_scan_queries, visit, bounds, tops, height, width) for _ in range(n_threads - 1)]
        _scan_queries(visit, bounds, tops, height, width)
        for result in pending:
            result.result()


def _scan_queries(visit: Visit, bounds: Bounds, tops: SimpleQueue[int], height: int, width: int) -> None:
    out = np.empty(height * width, dtype=bounds.dtype)
    while True:
        try:
            top = tops.get_nowait()
        except Empty:
            return
        rows = slice(top, min(top + height, len(bounds.queries.Z)))
        left = bounds.left(rows)
        for start in range(0, len(bounds.g), width):
            columns = slice(start, min(start + width, len(bounds.g)))
            visit(BoundBlock(bounds, rows, columns, bounds.lower(left, columns, out)))


def _scan_on_device(
    visit: Visit, queries: Queries, blocks: Iterator[tuple[slice, Any]], squared_norms: Array, compute: Compute
) -> None:
    """Visit blocks as large as the memory of the device allows, halved if it runs out.

    It may run out before ``visit`` has kept anything of a block, not after: see ``_iter_pairs`` and ``distances``.
    """
    for rows, g in blocks:
        with step("lengths of candidates"):
            bounds, columns = Bounds(queries, g, squared_norms[rows], rows.start, compute), slice(0, len(g))

        def visit_queries(part: slice, bounds: Bounds = bounds, columns: slice = columns) -> None:
            with step("bounds of scores"):
                lower = bounds.lower(bounds.left(part), columns, None)
            with step("selection of candidates"):
                visit(BoundBlock(bounds, part, columns, lower))

        area = compute.block_rows(BYTES_PER_BOUND, MAX_DEVICE_BOUNDS)
        for part in iter_slices(len(queries.Z), max(1, area // len(g))):
            for _ in halve_if_needed(part, visit_queries, compute):
                pass


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def _pairs_within_reach(block: BoundBlock, farthest: Array, k: int) -> Iterator[tuple[Index, Index]]:
    """Yield the pairs of a block, sorted by row, that may be nearer than the k-th nearest so far, ``farthest`` (q,)."""
    if k == 1:
        yield from _pairs_near_least(block, farthest)
        return
    lower = block.lower
    limit = block.bounds.limit(farthest, block.queries)
    rows = np.flatnonzero(lower.min(axis=1) <= limit)
    if len(rows) == 0:
        return
    if len(rows) < len(lower):
        lower, limit = lower[rows], limit[rows]
    hits = lower <= limit[:, None]
    crowded = np.flatnonzero(np.count_nonzero(hits, axis=1) > MANY_HITS + 4 * k)
    if len(crowded) and k < lower.shape[1]:
        columns = np.argpartition(lower[crowded], k - 1, axis=1)[:, :k]
        hits[crowded] &= lower[crowded] <= _limit_of(block, rows[crowded], lower[crowded], columns)[:, None]
    i, j = np.divmod(np.flatnonzero(hits), hits.shape[1])
    yield rows[i], j


def _pairs_near_least(block: BoundBlock, farthest: Array) -> Iterator[tuple[Index, Index]]:
    """Yield the same for k = 1; overwrites the smallest bound of each row."""
    lower, bounds, queries = block.lower, block.bounds, block.queries
    first = lower.argmin(axis=1)
    least = lower[np.arange(len(lower)), first]
    reach = least + bounds.spread(queries, first + block.columns.start) + bounds.queries.squared[queries]
    limit = bounds.limit(np.minimum(farthest, np.maximum(reach, 0)), queries)  # distances are never below 0
    rows = np.flatnonzero(least <= limit)
    if len(rows) == 0:
        return
    if len(rows) < len(lower):
        lower, limit, first = lower[rows], limit[rows], first[rows]
    i, j = _pairs_near_first(lower, first, limit)
    yield rows[i], j


def _pairs_near_first(lower: Any, first: Index, limit: Array) -> tuple[Index, Index]:
    """Return the pairs of bounds (q, c) up to a limit (q,), sorted, given the smallest of each row; overwrites them.

    Mostly the smallest bound is the only one. So the second smallest is found, faster than a mask of all pairs.
    """
    everything = np.arange(len(lower))
    lower[everything, first] = np.inf
    crowded = np.flatnonzero(lower.min(axis=1) <= limit)
    if len(crowded) == 0:
        return everything, first
    hits = lower[crowded] <= limit[crowded, None]
    hits[np.arange(len(crowded)), first[crowded]] = False  # ∞ ≤ ∞
    others, j = np.divmod(np.flatnonzero(hits), lower.shape[1])
    i, j = np.concatenate([everything, crowded[others]]), np.concatenate([first, j])
    order = np.lexsort((j, i))
    return i[order], j[order]


def _pairs_within_reach_on_device(block: BoundBlock, farthest: Array, k: int) -> Iterator[tuple[Index, Index]]:
    """Yield the same for tensors, in groups of rows with a limited number of pairs."""
    lower, compute = block.lower, block.bounds.compute
    limit = block.bounds.limit(compute.asarray(farthest), block.queries)
    if k <= lower.shape[1]:
        rows = compute.asarray(np.arange(len(farthest)))
        limit = array_namespace(lower).minimum(limit, _limit_of(block, rows, lower, argsmallest(lower, k)))
    yield from _iter_pairs(lower <= limit[:, None], compute)


def _iter_pairs(mask: Any, compute: Compute) -> Iterator[tuple[Index, Index]]:
    """Yield rows and columns of the true entries of a mask as NumPy arrays, sorted by row, in groups of rows.

    A device that runs out of memory is handled in here, so that nothing is yielded twice.
    """
    if compute.device is None:
        yield np.divmod(np.flatnonzero(mask), mask.shape[1])
        return
    counts = np.cumsum(to_numpy(array_namespace(mask).count_nonzero(mask, axis=1)))
    start = 0
    while start < len(counts):
        before = counts[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(counts, before + MAX_PAIRS, side="right")))

        def find_pairs(rows: slice) -> tuple[Index, Index]:
            i, j = nonzero_pairs(mask[rows])
            return to_numpy(i), to_numpy(j)

        for rows, (i, j) in halve_if_needed(slice(start, stop), find_pairs, compute):
            if len(i):
                yield i + rows.start, j
        start = stop


def _limit_of(block: BoundBlock, rows: Any, lower: Any, columns: Any) -> Any:
    """Return the L above which nothing is nearer than all of the columns (q, k) of these rows, or ties with them."""
    bounds, queries = block.bounds, rows + block.queries.start
    spread = bounds.spread(queries[:, None], columns + block.columns.start)
    if isinstance(lower, np.ndarray):
        farthest = np.max(np.take_along_axis(lower, columns, axis=1) + spread, axis=1) + bounds.queries.squared[queries]
        return bounds.limit(np.maximum(farthest, 0), queries)  # distances are never below 0
    xp = array_namespace(lower)
    farthest = xp.max(xp.take_along_axis(lower, columns, axis=1) + spread, axis=1) + bounds.queries.squared[queries]
    return bounds.limit(clip_negative(farthest), queries)


def _merge(best: tuple[Any, ...], i: Index, indices: Index, distances: Array, slacks: Array) -> None:
    """Insert pairs, sorted by row and index, into the best so far: distances, slacks and indices, each (q, k)."""
    starts = np.flatnonzero(np.diff(i, prepend=-1))
    counts = np.diff(starts, append=len(i))
    rows, k = i[starts], best[0].shape[1]
    target = np.repeat(np.arange(len(rows)), counts), k + np.arange(len(i)) - np.repeat(starts, counts)
    # Earlier candidates come first, so that a tie goes to the lower index.
    merged = []
    for part, new, empty in zip(best, (distances, slacks, indices), (np.inf, 0, -1), strict=True):
        wide = np.full((len(rows), k + counts.max()), empty, dtype=part.dtype)
        wide[:, :k] = part[rows]
        wide[target] = new
        merged.append(wide)
    order, best[0][rows] = k_smallest(merged[0], merged[1], k)
    for part, wide in zip(best[1:], merged[1:], strict=True):
        part[rows] = np.take_along_axis(wide, order, axis=1)


def _merge_nearest(best: tuple[Any, ...], i: Index, indices: Index, distances: Array, slacks: Array) -> None:
    """Do the same for k = 1: the first candidate of a row that ties with the smallest distance, which is kept, wins.

    Distances that are NaN, as those of a damaged model, are passed over.
    """
    starts = np.flatnonzero(np.diff(i, prepend=-1))
    rows, everything = i[starts], np.arange(len(i))
    known, known_slacks, known_indices = (part[:, 0] for part in best)
    smallest = np.fmin(known[rows], np.fmin.reduceat(distances, starts))
    least = np.repeat(smallest, np.diff(starts, append=len(i)))
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        is_tie = (distances == least) | (distances - slacks <= least)  # a slack may be NaN too
    winners = np.minimum.reduceat(np.where(is_tie, everything, len(i)), starts)
    is_new = known[rows] - known_slacks[rows] > smallest
    rows_of_new, winners = rows[is_new], winners[is_new]
    known[rows], known_slacks[rows_of_new], known_indices[rows_of_new] = smallest, slacks[winners], indices[winners]


def _count_block(block: BoundBlock, truth: Array, truth_slack: Array) -> tuple[Index, Index]:
    """Return how many candidates of a block are nearer than ``truth`` (q,) and how many tie; bounds decide most."""
    bounds, lower, queries, compute = block.bounds, block.lower, block.queries, block.bounds.compute
    squared = to_numpy(bounds.queries.squared[queries])
    high = truth + truth_slack - squared + 2 * bounds.tolerance * squared + bounds.tiny  # −∞ if there is no truth
    spread = to_numpy(bounds.largest_spread(compute.asarray(np.where(truth >= 0, high, 0)), queries))
    low = truth - truth_slack - 2 * bounds.tolerance * squared - spread
    low = np.where(low > 0, low - squared, -np.inf)  # nothing is nearer than 0
    is_nearer = lower < round_down(compute.asarray(low), lower.dtype)[:, None]
    in_doubt = lower <= round_up(compute.asarray(high), lower.dtype)[:, None]
    in_doubt &= ~is_nearer
    nearer = to_numpy(array_namespace(is_nearer).count_nonzero(is_nearer, axis=1)).astype(np.intp)
    tied = np.zeros_like(nearer)
    for i, j in _iter_pairs(in_doubt, compute):
        D, slack = block.distances(i, j)
        slack = np.maximum(slack, truth_slack[i])
        nearer += np.bincount(i[truth[i] - slack > D], minlength=len(lower))
        tied += np.bincount(i[np.abs(D - truth[i]) <= slack], minlength=len(lower))
    return nearer, tied
