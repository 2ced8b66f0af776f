"""Decoding for many p at once: distances accumulate over the components of one embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from psilearn.backend import row_blocks
from psilearn.decode.nearest import Ranks, on_grid
from psilearn.linalg import Array
from psilearn.samples import Index

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
    for j, queries, rows, D in _distance_path(Z, g, squared_norms, sizes):
        here = np.argmin(D, axis=1)
        found = D[np.arange(len(D)), here]
        closer = found < distance[j, queries]
        best[j, queries] = np.where(closer, here + rows.start, best[j, queries])
        distance[j, queries] = np.where(closer, found, distance[j, queries])
    return best


def rank_path(Z: Array, g: Array, squared_norms: Array, sizes: Sequence[int], places: Index) -> list[Ranks]:
    """Return where the true candidate of each query, ``places`` (q,), stands for each p; −1 is no candidate."""
    ranks = [Ranks(np.where(places >= 0, 0.0, np.inf), np.zeros(len(Z))) for _ in sizes]
    largest = squared_norms.max()
    truth = np.maximum(places, 0)
    products = np.cumsum(Z * g[truth], axis=1)
    z_norms = np.cumsum(Z**2, axis=1)
    own = np.full((len(sizes), len(Z), 1), np.nan)
    for j, p in enumerate(sizes):
        raw = z_norms[:, p - 1] + squared_norms[truth] - 2 * products[:, p - 1]
        own[j] = on_grid(raw[:, None].copy(), z_norms[:, p - 1] + largest)
    own[:, places < 0] = np.nan
    for j, queries, _, D in _distance_path(Z, g, squared_norms, sizes):
        ranks[j].nearer[queries] += np.sum(own[j, queries] > D, axis=1)
        ranks[j].tied[queries] += np.sum(own[j, queries] == D, axis=1)
    return ranks


def _distance_path(
    Z: Array, g: Array, squared_norms: Array, sizes: Sequence[int]
) -> Iterator[tuple[int, slice, slice, Array]]:
    """Yield (which p, queries, candidates, distances), candidates ascending, each block within ``working_memory``."""
    z_norms = np.concatenate([np.zeros((len(Z), 1)), np.cumsum(Z**2, axis=1)], axis=1)  # (q, p_max + 1)
    largest = squared_norms.max()
    for start in range(0, len(g), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(g)))
        for queries in row_blocks(len(Z), 3 * 8 * (rows.stop - rows.start)):
            products = np.zeros((queries.stop - queries.start, rows.stop - rows.start))
            done = 0
            for j, p in enumerate(sizes):
                products += Z[queries, done:p] @ g[rows, done:p].T
                done = p
                D = squared_norms[rows] - 2 * products + z_norms[queries, p][:, None]
                yield j, queries, rows, on_grid(D, z_norms[queries, p] + largest)
