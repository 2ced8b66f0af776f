"""Decoding among shared candidates for many p at once: distances accumulate over the components of one embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from psilearn._backend import Compute, array_namespace, take_rows, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils.samples import Index
from psilearn.decoding.distances import TIE_TOLERANCE, count_nearer, first_smallest, to_distances
from psilearn.decoding.output_set import OutputSet, compute_squared_norms
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder
from psilearn.embedding import Embedding

MAX_BLOCK_ROWS = 4096  # candidates that are scored together
BYTES_PER_DISTANCE = 40  # of a product, a distance, its slack and two comparisons


class ComponentPathDecoder(PathDecoder):
    """Decodes among shared candidates, whose coordinates are rotated to the directions of each step.

    The coordinates, c·r numbers, are computed once unless the candidates have them already. Cost of a step: 2·c·r·p
    flops to rotate them and 2·q·c·p for all sizes together.
    """

    def __init__(
        self,
        candidates: PathCandidates,
        outputs: OutputSet,
        embedding: Embedding,
        sizes: Sequence[int] | None,
        compute: Compute,
        truth: Index | None,
    ) -> None:
        super().__init__(candidates, sizes, compute, truth)
        if outputs.embedding is embedding and outputs.g is not None:
            g, norms = outputs.g, outputs.squared_norms
        else:  # equal outputs get equal coordinates, so that rounding does not tell them apart
            unique, inverse = outputs._unique.outputs, outputs._repetitions.inverse
            g, norms = embedding(unique, compute)[inverse], compute_squared_norms(unique, embedding)[inverse]
        self._values, self._norms = compute.asarray(g), compute.asarray(norms)  # (c, r), (c,)

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        g = self._values if V is None else self._values @ V  # (c, p_max)
        nearest, nearer, tied = decode_path(Z, g, self._norms, sizes, self.truth, self.compute)
        self._steps.append(DecodedStep(nearest) if self.truth is None else DecodedStep(nearest, nearer, tied))


def decode_path(
    Z: Any, g: Any, squared_norms: Any, sizes: Sequence[int], truth: Index | None, compute: Compute
) -> tuple[Index, Array, Array]:
    """Return the nearest candidate, and the numbers of nearer and tied candidates, (n_sizes, q) each, for every p.

    Row j is the answer of a model with the first sizes[j] of the components of Z (q, p_max) and g (c, p_max); sizes
    ascend. One pass over the components serves all of them: |z − g|² + r² up to p is |z|² + k(y,y) − 2 Σ_{l≤p} z_l g_l.
    ``truth`` (q,) is the index of the true candidate, −1 if there is none; None counts nothing.
    """
    shape = len(sizes), len(Z)
    nearest, distance = np.zeros(shape, dtype=np.intp), np.full(shape, np.inf)
    truth = np.full(len(Z), -1) if truth is None else truth
    is_counted = truth >= 0
    nearer, tied = np.where(is_counted, np.zeros(shape), np.inf), np.zeros(shape)
    truth_D, truth_slack = _truth_distances(Z, g, squared_norms, sizes, truth)
    for j, queries, rows, D, slack in _iter_distances(Z, g, squared_norms, sizes, compute):
        column, least = first_smallest(D, slack)
        room = to_numpy(array_namespace(D).take_along_axis(slack, column, axis=1))[:, 0]
        column, least = to_numpy(column)[:, 0] + rows.start, to_numpy(least)[:, 0]
        is_nearer = least + room < distance[j, queries]
        nearest[j, queries] = np.where(is_nearer, column, nearest[j, queries])
        distance[j, queries] = np.minimum(least, distance[j, queries])
        if is_counted[queries].any():
            counts = count_nearer(D, slack, truth_D[j, queries, None], truth_slack[j, queries, None])
            nearer[j, queries] += counts[0]
            tied[j, queries] += counts[1]
    return nearest, nearer, tied


def _truth_distances(Z: Any, g: Any, squared_norms: Any, sizes: Sequence[int], truth: Index) -> tuple[Array, Array]:
    """Return the distance of the true candidates and its slack for every p, (n_sizes, q) each; NaN if there is none."""
    D, slacks = np.full((len(sizes), len(Z)), np.nan), np.zeros((len(sizes), len(Z)))
    examples = np.flatnonzero(truth >= 0)
    if not len(examples):
        return D, slacks
    queries, candidates = take_rows(Z, examples), take_rows(g, truth[examples])
    norms = to_numpy(take_rows(squared_norms, truth[examples]))
    products, squared, done = np.zeros(len(examples)), np.zeros(len(examples)), 0
    for j, p in enumerate(sizes):
        products += to_numpy(row_products(queries[:, done:p], candidates[:, done:p]))
        squared += to_numpy(row_products(queries[:, done:p], queries[:, done:p]))
        done = p
        D[j, examples], slacks[j, examples] = to_distances(products.copy(), squared + norms, TIE_TOLERANCE)
    return D, slacks


def _iter_distances(
    Z: Any, g: Any, squared_norms: Any, sizes: Sequence[int], compute: Compute
) -> Iterator[tuple[int, slice, slice, Any, Any]]:
    """Yield the number of p, queries, candidates, distances and slacks, candidates ascending, in blocks that fit."""
    xp = array_namespace(Z)
    z_squared = xp.concat([compute.zeros((len(Z), 1)), xp.cumulative_sum(Z**2, axis=1)], axis=1)  # (q, p_max + 1)
    for start in range(0, len(g), MAX_BLOCK_ROWS):
        rows = slice(start, min(start + MAX_BLOCK_ROWS, len(g)))
        for queries in compute.iter_blocks(len(Z), BYTES_PER_DISTANCE * (rows.stop - rows.start)):
            products = compute.zeros((queries.stop - queries.start, rows.stop - rows.start))
            done = 0
            for j, p in enumerate(sizes):
                products += Z[queries, done:p] @ g[rows, done:p].T
                done = p
                lengths = z_squared[queries, p][:, None] + squared_norms[rows]
                yield j, queries, rows, *to_distances(1.0 * products, lengths, TIE_TOLERANCE)
