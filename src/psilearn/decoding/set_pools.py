"""Distances from each query to the candidates of its own set.

Sets are pooled, so that kernel values and embeddings come in large blocks. There are two ways from kernel values to
⟨z, g(y)⟩, with r landmarks and p components: embed the candidates, 2·r·p flops per candidate and 2·p per pair, or write
the prediction as a combination of landmarks, β = basis·z, and sum ⟨z, g(y)⟩ = Σ_l β_l k(s_l, y), 2·r flops per pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from psilearn._backend import Compute, array_namespace, block_rows, row_blocks, stream, take_rows, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils.samples import Index, Samples, concat, n_samples
from psilearn.decoding.distances import tie_tolerance, to_distances
from psilearn.decoding.output_set import OutputSet
from psilearn.embedding import Embedding
from psilearn.kernels import Kernel

SUM_COST = 10  # of a multiplication in sums over landmarks, measured in multiplications of a matrix product


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
