"""Distances to the candidates of each query's own set, and to candidates for many settings at once.

A predicted embedding z stands for G*z = Σ_l β_l ψ(s_l) with β = basis·z, so that

    |G*z − ψ(y)|² = |z|² − 2 Σ_l β_l k(s_l, y) + k(y, y)

needs r kernel values per candidate and no embedding of it. Models with the same landmarks, for other λ, c or p, share
these values: candidates are visited once for all settings, and c·p numbers are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import (
    Compute,
    array_namespace,
    block_rows,
    iter_slices,
    row_blocks,
    stream,
    take_rows,
    to_numpy,
    working_bytes,
)
from psilearn._linalg import Array, row_products
from psilearn._utils.progress import track
from psilearn._utils.samples import Index, Samples, concat, n_samples, take
from psilearn.decoding.distances import count_nearer, first_smallest, tie_tolerance, to_distances
from psilearn.decoding.output_set import OutputSet
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder
from psilearn.embedding import Embedding
from psilearn.kernels import Kernel

MAX_POOL_ROWS = 8192  # candidates whose kernel values are computed together
BYTES_PER_DISTANCE = 48  # of a distance, its slack, and what they are compared with
SUM_COST = 10  # of a multiplication in sums over landmarks, measured in multiplications of a matrix product


# Distances from each query to the candidates of its own set.
#
# Sets are pooled, so that kernel values and embeddings come in large blocks. There are two ways from kernel values to
# ⟨z, g(y)⟩, with r landmarks and p components: embed the candidates, 2·r·p flops per candidate and 2·p per pair, or
# write the prediction as a combination of landmarks, β = basis·z, and sum ⟨z, g(y)⟩ = Σ_l β_l k(s_l, y), 2·r flops per
# pair.
class SetPools:
    """The different sets of q examples, in pools that fit into memory.

    ``owner`` (q,) is the number of the set that each example has. Sets with more than ``max_rows`` candidates do not
    fit into a pool: they are listed in ``large``, and :meth:`iter_distances` leaves them out.
    """

    def __init__(self, sets: Sequence[OutputSet], owner: Index, embedding: Embedding, compute: Compute) -> None:
        self.sets, self.owner, self.embedding, self.compute = sets, owner, embedding, compute
        self.sizes = np.array([len(part) for part in sets], dtype=np.intp)
        self.members = members_of(owner)
        r, p = embedding.basis.shape
        self.has_embeddings = all(part.g is not None for part in sets)
        self.sums_landmarks = not self.has_embeddings and sums_over_landmarks(
            r, p, int(self.sizes.sum()), int(self.sizes[owner].sum()), len(owner)
        )
        numbers = 2 * p if self.has_embeddings else 2 * r if self.sums_landmarks else r + p
        self.max_rows = compute.block_rows(compute.itemsize * numbers, int(self.sizes.sum()))
        self.large = np.flatnonzero(self.sizes > self.max_rows)

    def iter_distances(self, Z: Any) -> Iterator[tuple[Index, Array, Array]]:
        """Yield examples, the distances of their candidates (m, c), ∞ beyond the end of a set, and slacks.

        The sets that are yielded together have similar sizes.
        """
        squared, xp = to_numpy(row_products(Z, Z)), array_namespace(Z)
        basis = self.compute.asarray(self.embedding.basis) if self.sums_landmarks else None
        width = Z.shape[1] if basis is None else len(basis)
        values_of = self._values_function()
        pooled = np.flatnonzero((self.sizes > 0) & (self.sizes <= self.max_rows))
        for numbers in iter_pools(self.sizes, pooled, self.max_rows):
            sizes = self.sizes[numbers]
            values, norms = self._pool_values([self.sets[i] for i in numbers], values_of)
            examples = np.concatenate([self.members[i] for i in numbers])
            number = np.repeat(
                np.arange(len(numbers)), [len(self.members[i]) for i in numbers]
            )  # of the set in the pool
            order = np.lexsort((number, sizes[number]))
            examples, number, stops = examples[order], number[order], np.cumsum(sizes)
            tolerance = tie_tolerance(Z, values)
            for part in _similar_sizes(sizes[number], 8 * width):
                rows, own = examples[part], number[part]
                queries = xp.astype(take_rows(Z, rows), xp.float64, copy=False)
                queries = queries if basis is None else queries @ basis.T
                products, lengths = self._pad(queries, values, norms, sizes[own], stops[own])
                lengths += squared[rows, None]
                D, slack = to_distances(products, lengths, tolerance)
                slack[np.isinf(slack)] = 0
                yield rows, D, slack

    def _values_function(self) -> Callable[[Samples], Any] | None:
        """Return what to compute for a block of outputs: kernel values, embeddings, or None if these are known."""
        if self.has_embeddings:
            return None
        if self.sums_landmarks:
            return landmark_values(self.embedding.kernel, self.embedding.landmarks, self.compute)
        return self.embedding.block_function(self.compute)

    def _pool_values(self, sets: list[OutputSet], values_of: Callable[[Samples], Any] | None) -> tuple[Any, Array]:
        """Return g (n, p) or kernel values (n, r) of the candidates of a pool, and their k(y, y)."""
        kernel = self.embedding.kernel
        if values_of is None:
            values = self.compute.asarray(np.concatenate([part.g for part in sets if part.g is not None]))
        else:
            values = values_in_blocks(concat([part.outputs for part in sets]), values_of, kernel, self.compute)
        return values, pool_norms(sets, kernel)

    def _pad(self, queries: Any, values: Any, norms: Array, sizes: Index, stops: Index) -> tuple[Array, Array]:
        """Return products and k(y, y), both (m, c), for the rows stops[i] − sizes[i] … stops[i] of the pool."""
        shape = len(queries), int(sizes.max())
        products, squared = self.compute.zeros(shape), np.full(shape, np.inf)
        xp = array_namespace(queries)
        sums_rows = self.sums_landmarks and self.compute.device is None
        runs = np.flatnonzero(np.diff(stops, prepend=-1))  # examples with the same set
        for first, last in zip(runs, [*runs[1:], len(queries)], strict=True):
            size, rows = sizes[first], slice(stops[first] - sizes[first], stops[first])
            candidates = xp.astype(values[rows], xp.float64, copy=False)
            if sums_rows:  # row by row, so that equal candidates have equal sums, as large as the terms may be
                for i in range(first, last):
                    np.einsum("cr,r->c", candidates, queries[i], out=products[i, :size])
            else:
                products[first:last, :size] = queries[first:last] @ candidates.T
            squared[first:last, :size] = norms[rows]
        return to_numpy(products), squared


def sums_over_landmarks(r: int, p: int, n_candidates: int, n_pairs: int, n_queries: int) -> bool:
    """Return whether sums over landmarks are faster than embeddings of the candidates."""
    return r * p * n_queries + SUM_COST * r * n_pairs < r * p * n_candidates + SUM_COST * p * n_pairs


def landmark_values(kernel: Kernel, landmarks: Samples, compute: Compute) -> Callable[[Samples], Any]:
    """Return y ↦ k(y, landmarks) for blocks of outputs, with the landmarks on the device."""
    resident = kernel.to_device(landmarks, compute)
    return lambda block: kernel(block, resident, compute=compute)


def values_in_blocks(outputs: Samples, values_of: Callable[[Samples], Any], kernel: Kernel, compute: Compute) -> Any:
    """Return the values of all outputs on the device, in halves if its memory runs out on the way."""
    whole = row_blocks(outputs, [slice(0, n_samples(outputs))])
    parts = [values for _, values in stream(whole, values_of, compute, kernel.supports_torch)]
    return parts[0] if len(parts) == 1 else array_namespace(*parts).concat(parts)


def pool_norms(sets: Sequence[OutputSet], kernel: Kernel) -> Array:
    """Return k(y, y) of the candidates of several sets, one after the other."""
    known = [part.squared_norms for part in sets if part.squared_norms is not None]
    if len(known) == len(sets):
        return np.concatenate(known)
    return kernel.diag(concat([part.outputs for part in sets]))


def iter_pools(sizes: Index, numbers: Index, max_rows: int) -> Iterator[Index]:
    """Split the sets with these numbers into groups of at most ``max_rows`` candidates; a larger set is alone."""
    stops, start = np.cumsum(sizes[numbers]), 0
    while start < len(numbers):
        before = stops[start] - sizes[numbers[start]]
        stop = max(start + 1, int(np.searchsorted(stops, before + max_rows, side="right")))
        yield numbers[start:stop]
        start = stop


def members_of(owner: Index) -> list[Index]:
    """Return the examples that have each set."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)


def _similar_sizes(sizes: Index, extra_bytes: int) -> Iterator[slice]:
    """Split ascending sizes where one is a quarter above the first, or the matrix exceeds ``working_memory``."""
    start = 0
    while start < len(sizes):
        widest = sizes[start] + sizes[start] // 4 + 4
        rows = block_rows(64 * int(widest) + extra_bytes, len(sizes))
        stop = min(int(np.searchsorted(sizes, widest, side="right")), start + rows)
        yield slice(start, stop)
        start = stop


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
