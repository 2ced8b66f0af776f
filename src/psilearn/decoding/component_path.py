"""Decoding for many p at once: distances accumulate over the components of one embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from psilearn._backend import array_namespace, computing_blocks, rows_of, to_host, zeros
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.nearest import Ranks, count_nearer, distances_and_slack

BLOCK_ROWS = 4096  # candidates that are scored together at the most


def nearest_path(Z: Array, g: Array, squared_norms: Array, sizes: Sequence[int]) -> Index:
    """Return the nearest candidate of each query for each p, shape (len(sizes), q).

    Row j is the answer of a model with the first sizes[j] components; ties go to the lowest index. One pass over the
    components serves all of them: |z − g|² + r² up to p is |z|² + k(y,y) − 2 Σ_{l≤p} z_l g_l.

    Parameters
    ----------
    Z : array (q, p_max), g : array (c, p_max), squared_norms : array (c,)
    sizes : ascending
    """
    best = np.zeros((len(sizes), len(Z)), dtype=np.intp)
    distance = np.full((len(sizes), len(Z)), np.inf)
    for j, queries, rows, D, slack in _distance_path(Z, g, squared_norms, sizes):
        xp = array_namespace(D)
        least = xp.min(D, axis=1, keepdims=True)
        here = xp.argmax(xp.astype(D - slack <= least, xp.int8), axis=1, keepdims=True)  # the first that ties with it
        room = to_host(xp.take_along_axis(slack, here, axis=1))[:, 0]
        nearest, least = to_host(here)[:, 0] + rows.start, to_host(least)[:, 0]
        closer = least + room < distance[j, queries]
        best[j, queries] = np.where(closer, nearest, best[j, queries])
        distance[j, queries] = np.minimum(least, distance[j, queries])
    return best


def rank_path(Z: Array, g: Array, squared_norms: Array, sizes: Sequence[int], places: Index) -> list[Ranks]:
    """Return where the true candidate of each query, ``places`` (q,), stands for each p; −1 is no candidate."""
    ranks = [Ranks(np.where(places >= 0, 0.0, np.inf), np.zeros(len(Z))) for _ in sizes]
    own = np.full((len(sizes), len(Z), 1), np.nan)  # of the truth, found on a first pass
    own_slack = np.zeros_like(own)
    for j, queries, rows, D, slack in _distance_path(Z, g, squared_norms, sizes):
        here = np.flatnonzero((places[queries] >= rows.start) & (places[queries] < rows.stop))
        columns = places[queries][here] - rows.start
        for kept, values in ((own, D), (own_slack, slack)):
            kept[j, queries][here, 0] = to_host(rows_of(values, here))[np.arange(len(here)), columns]
    for j, queries, _, D, slack in _distance_path(Z, g, squared_norms, sizes):
        nearer, tied = count_nearer(D, slack, own[j, queries], own_slack[j, queries])
        ranks[j].nearer[queries] += nearer
        ranks[j].tied[queries] += tied
    return ranks


def _distance_path(
    Z: Array, g: Array, squared_norms: Array, sizes: Sequence[int]
) -> Iterator[tuple[int, slice, slice, Array, Array]]:
    """Yield (which p, queries, candidates, distances, slack), candidates ascending, in blocks that fit."""
    xp = array_namespace(Z)
    z_norms = xp.concat([zeros((len(Z), 1)), xp.cumulative_sum(Z**2, axis=1)], axis=1)  # (q, p_max + 1)
    for start in range(0, len(g), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(g)))
        for queries in computing_blocks(len(Z), 5 * 8 * (rows.stop - rows.start)):
            products = zeros((queries.stop - queries.start, rows.stop - rows.start))
            done = 0
            for j, p in enumerate(sizes):
                products += Z[queries, done:p] @ g[rows, done:p].T
                done = p
                yield j, queries, rows, *distances_and_slack(1.0 * products, z_norms[queries, p], squared_norms[rows])
