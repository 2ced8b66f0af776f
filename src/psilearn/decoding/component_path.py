"""Decoding among shared candidates for many p at once: distances accumulate over the components of one embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from psilearn._backend import Compute, array_namespace, iter_slices, take_rows, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils.samples import Index
from psilearn.decoding.distances import TIE_TOLERANCE, count_nearer, first_smallest, to_distances
from psilearn.decoding.output_set import OutputSet, compute_squared_norms
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder
from psilearn.embedding import Embedding

MAX_SCORED_CANDIDATES = 4096  # candidates that are scored together
MAX_TOGETHER = 2**14  # distances of several p that are compared together
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

    @property
    def n_candidates(self) -> int:
        """The number of candidates."""
        return len(self._norms)

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
    for some, queries, rows, block in _iter_blocks(Z, g, squared_norms, sizes, compute):
        where = some, queries
        column, least, room = (part.reshape(distance[where].shape) for part in block.nearest())
        is_nearer = least + room < distance[where]
        nearest[where] = np.where(is_nearer, column + rows.start, nearest[where])
        distance[where] = np.minimum(least, distance[where])
        if is_counted[queries].any():
            counts = count_nearer(*block.distances(), truth_D[where].reshape(-1, 1), truth_slack[where].reshape(-1, 1))
            nearer[where] += counts[0].reshape(least.shape)
            tied[where] += counts[1].reshape(least.shape)
    return nearest, nearer, tied


class DistanceBlock(NamedTuple):
    """Squared distances of queries and candidates as |z|² (b,) and k(y, y) − 2⟨z, g(y)⟩ (b, c)."""

    z_squared: Any
    norms: Any  # (c,)  k(y, y)
    offsets: Any  # (b, c)

    def take(self, queries: Index) -> DistanceBlock:
        """Return the distances of some of the queries."""
        return DistanceBlock(take_rows(self.z_squared, queries), self.norms, take_rows(self.offsets, queries))

    def distances(self) -> tuple[Any, Any]:
        """Return the distances (b, c) and their slacks."""
        return to_distances((self.norms - self.offsets) / 2, self.z_squared[:, None] + self.norms, TIE_TOLERANCE)

    def nearest(self) -> tuple[Index, Array, Array]:
        """Return the first nearest candidate of each query, its distance and its slack, NumPy arrays (b,).

        Slacks of all candidates are computed only for queries for which a second candidate may be tied.
        """
        xp = array_namespace(self.offsets)
        column = xp.argmin(self.offsets, axis=1, keepdims=True)
        least = xp.take_along_axis(self.offsets, column, axis=1)
        limit = least + 2 * TIE_TOLERANCE * (self.z_squared + xp.max(self.norms))[:, None]
        is_close = self.offsets <= limit
        column = to_numpy(column)[:, 0]
        if xp.count_nonzero(is_close) > len(column):
            several = np.flatnonzero(to_numpy(xp.count_nonzero(is_close, axis=1)) > 1)
            column = column.copy()
            column[several] = to_numpy(first_smallest(*self.take(several).distances())[0])[:, 0]
        z_squared = to_numpy(self.z_squared)
        room = TIE_TOLERANCE * (z_squared + to_numpy(self.norms)[column])
        return column, np.maximum(to_numpy(least)[:, 0] + z_squared, 0), room


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


def _iter_blocks(
    Z: Any, g: Any, squared_norms: Any, sizes: Sequence[int], compute: Compute
) -> Iterator[tuple[slice, slice, slice, DistanceBlock]]:
    """Yield numbers of p, queries, candidates and their distances, candidates ascending, in blocks that fit.

    A block has one row for each of its p and queries. Tiny blocks of several p are yielded together, because a call on
    them takes longer than its work.
    """
    xp = array_namespace(Z)
    z_squared = xp.concat([compute.zeros((len(Z), 1)), xp.cumulative_sum(Z**2, axis=1)], axis=1)  # (q, p_max + 1)
    factor = -2.0 * Z
    for start in range(0, len(g), MAX_SCORED_CANDIDATES):
        rows = slice(start, min(start + MAX_SCORED_CANDIDATES, len(g)))
        norms = squared_norms[rows]
        for queries in compute.iter_blocks(len(Z), BYTES_PER_DISTANCE * len(norms)):
            offsets = compute.zeros((queries.stop - queries.start, 1)) + norms
            done = 0
            n_together = max(1, MAX_TOGETHER // (len(offsets) * len(norms)))
            for some in iter_slices(len(sizes), n_together):
                parts = []
                for p in sizes[some]:
                    offsets += factor[queries, done:p] @ g[rows, done:p].T
                    parts.append(offsets if n_together == 1 else 1.0 * offsets)
                    done = p
                lengths = xp.concat([z_squared[queries, p] for p in sizes[some]])
                block = offsets if n_together == 1 else xp.concat(parts)
                yield some, queries, rows, DistanceBlock(lengths, norms, block)
