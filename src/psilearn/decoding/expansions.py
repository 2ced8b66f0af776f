"""Predictions of many settings as combinations of landmarks, compared with candidates by kernel values.

A predicted embedding z stands for G*z = Σ_l β_l ψ(s_l) with β = basis·z, so that

    |G*z − ψ(y)|² = |z|² − 2 Σ_l β_l k(s_l, y) + k(y, y)

needs r kernel values per candidate and no embedding of it. Models with the same landmarks, for other λ, c or p, share
these values: candidates are visited once for all settings, and c·p numbers are never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import Compute, block_rows, iter_slices, to_numpy, working_bytes
from psilearn._linalg import Array, row_products
from psilearn._utils.progress import track
from psilearn._utils.samples import Index, Samples, concat, n_samples, take
from psilearn.decoding.distances import count_nearer, first_smallest, tie_tolerance, to_distances
from psilearn.decoding.output_set import OutputSet
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder
from psilearn.decoding.set_pools import iter_pools, landmark_values, members_of, pool_norms, values_in_blocks
from psilearn.embedding import Embedding
from psilearn.kernels import Kernel

MAX_POOL_ROWS = 8192  # candidates whose kernel values are computed together
BYTES_PER_DISTANCE = 48  # of a distance, its slack, and what they are compared with


@dataclass(frozen=True)
class Expansions:
    """The predictions of s settings for each of q examples, as combinations of the same r landmarks."""

    kernel: Kernel
    landmarks: Samples
    weights: Array  # (q, s, r)  β
    squared: Array  # (q, s)  |z|²

    @classmethod
    def of(cls, Z: Array, embedding: Embedding) -> Expansions:
        """Return the predictions Z (q, p) of one model."""
        weights = (Z @ embedding.basis.T)[:, None, :]
        return cls(embedding.kernel, embedding.landmarks, weights, row_products(Z, Z)[:, None])


def distances_in_sets(
    predictions: Expansions, sets: Sequence[OutputSet], owner: Index, compute: Compute
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each example with the distances (s, c) of the candidates of its set, and their slacks.

    ``owner`` (q,) is the number of the set of each example; examples with the same set come one after the other. Equal
    candidates have exactly equal distances.

    Cost: r kernel values per distinct candidate and 2·s·r flops per example and candidate. Memory: ``working_memory``
    and the distances of one example.
    """
    kernel, n_settings, r = predictions.kernel, *predictions.weights.shape[1:]
    compute = compute.with_dtype(predictions.weights.dtype)
    max_rows = compute.block_rows(2 * compute.itemsize * r, MAX_POOL_ROWS)
    values_of = landmark_values(kernel, predictions.landmarks, compute)
    members = members_of(owner)
    sizes = np.array([len(part._unique) for part in sets], dtype=np.intp)
    for numbers in track(iter_pools(sizes, np.flatnonzero(sizes), max_rows), "candidate sets"):
        unique = [sets[i]._unique for i in numbers]
        pool, norms = concat([part.outputs for part in unique]), pool_norms(unique, kernel)

        def iter_values(pool: Samples = pool) -> Iterator[tuple[slice, Any]]:
            for rows in iter_slices(n_samples(pool), max_rows):
                yield rows, values_in_blocks(take(pool, rows), values_of, kernel, compute)

        known = list(iter_values()) if len(norms) <= max_rows else None  # a single large set is visited in blocks
        stops = np.cumsum(sizes[numbers])
        for number, stop in zip(numbers, stops, strict=True):
            rows = slice(stop - sizes[number], stop)
            inverse = sets[number]._repetitions.inverse
            step = block_rows(BYTES_PER_DISTANCE * n_settings * len(inverse), len(members[number]))
            for part in iter_slices(len(members[number]), step):
                examples = members[number][part]
                blocks = iter_values() if known is None else known
                yield from _distances_of(predictions, examples, blocks, rows, norms[rows], inverse, compute)


def _distances_of(
    predictions: Expansions,
    examples: Index,
    blocks: Iterable[tuple[slice, Any]],
    rows: slice,
    norms: Array,
    inverse: Index,
    compute: Compute,
) -> Iterator[tuple[int, Array, Array]]:
    """Yield the distances of examples with the same set, whose kernel values are these rows of the blocks."""
    weights = predictions.weights[examples]  # (m, s, r)
    m, s, r = weights.shape
    weights = compute.asarray(weights.reshape(m * s, r))
    parts = [
        to_numpy(weights @ values[max(0, rows.start - block.start) : rows.stop - block.start].T)
        for block, values in blocks
    ]
    products = np.concatenate(parts, axis=1).astype(np.float64, copy=False).reshape(m, s, -1)
    lengths = predictions.squared[examples][:, :, None] + norms
    D, slack = to_distances(products, lengths, tie_tolerance(weights))
    for i, example in enumerate(examples):
        if len(inverse) == len(norms):
            yield int(example), D[i], slack[i]
        else:
            yield int(example), D[i][:, inverse], slack[i][:, inverse]


class ExpansionPathDecoder(PathDecoder):
    """Decodes within one set per example, by kernel values that all steps share.

    Steps are kept as weights of landmarks until ``working_memory`` is filled with them or results are asked for.
    """

    def __init__(
        self,
        candidates: PathCandidates,
        sets: Sequence[OutputSet],
        owner: Index,
        embedding: Embedding,
        sizes: Sequence[int] | None,
        compute: Compute,
        truth: Index | None,
    ) -> None:
        super().__init__(candidates, sizes, compute, truth)
        self.sets, self.owner, self.embedding = sets, owner, embedding
        self._weights: list[Array] = []  # (q, n_sizes, r) for each step
        self._squared: list[Array] = []  # (q, n_sizes)

    @property
    def shares_candidates(self) -> bool:
        """False: each example has its own candidates."""
        return False

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        compute, basis = self.compute, self.compute.asarray(self.embedding.basis)
        basis = basis if V is None else basis @ V  # (r, p_max)
        weights = np.empty((len(Z), len(sizes), len(basis)), dtype=compute.dtype)
        squared = np.empty((len(Z), len(sizes)))
        total, length, done = compute.zeros((len(Z), len(basis))), compute.zeros((len(Z),)), 0
        for j, p in enumerate(sizes):
            total += Z[:, done:p] @ basis[:, done:p].T
            length += row_products(Z[:, done:p], Z[:, done:p])
            weights[:, j], squared[:, j], done = to_numpy(total), to_numpy(length), p
        self._weights.append(weights)
        self._squared.append(squared)
        if sum(part.nbytes for part in self._weights) > working_bytes() // 2:  # they are copied once
            self._finish()

    def _finish(self) -> None:
        if not self._weights:
            return
        n_steps, q, n_sizes = len(self._weights), *self._squared[0].shape
        predictions = Expansions(
            self.embedding.kernel,
            self.embedding.landmarks,
            np.concatenate(self._weights, axis=1),
            np.concatenate(self._squared, axis=1),
        )
        self._weights, self._squared = [], []
        truth = np.full(q, -1) if self.truth is None else self.truth
        nearest = np.full((n_steps * n_sizes, q), -1, dtype=np.intp)
        nearer, tied = np.full(nearest.shape, np.inf), np.zeros(nearest.shape)
        for i, D, slack in distances_in_sets(predictions, self.sets, self.owner, self.compute):
            nearest[:, i] = first_smallest(D, slack)[0][:, 0]
            if truth[i] >= 0:
                column = slice(truth[i], truth[i] + 1)
                nearer[:, i], tied[:, i] = count_nearer(D, slack, D[:, column], slack[:, column])
        for rows in np.arange(n_steps * n_sizes).reshape(n_steps, n_sizes):
            counts = () if self.truth is None else (nearer[rows], tied[rows])
            self._steps.append(DecodedStep(nearest[rows], *counts))
