"""One candidate set an example, of whatever sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import (
    array_namespace,
    block_rows,
    computing_rows,
    cut,
    is_tensor,
    rows_of,
    stream,
    to_host,
    zeros,
)
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, concat, distinct, match, n_samples, take
from psilearn.embedding import Embedding
from psilearn.kernels.blocks import diagonal


class CandidateSets:
    """One candidate set an example; sets may have different sizes.

    Sets that are the same object are checked, embedded and scored once. A plain list of collections says the
    same wherever it cannot be mistaken for one shared list of objects.

    Examples
    --------
    >>> from psilearn import CandidateSets
    >>> len(CandidateSets([["a", "b"], ["c"]]))
    2
    """

    def __init__(self, sets: Sequence[Samples]) -> None:
        self.sets = list(sets)

    def __len__(self) -> int:
        return len(self.sets)

    def checked(self, check: Callable[[Samples, str], Samples], n_examples: int) -> CandidateSets:
        """Return the sets as the kernel's check gives them; each must hold a candidate, one set an example."""
        if len(self) != n_examples:
            raise ValueError(
                f"candidates holds {len(self)} sets for {n_examples} examples: give one set an example, or one array "
                f"of candidates for all."
            )
        for i, one in enumerate(self.sets):
            if n_samples(one) == 0:
                raise ValueError(f"candidates[{i}] is empty: every example needs at least one candidate.")
        return self._map(lambda i, one: check(one, f"candidates[{i}]"))

    def distinct(self) -> CandidateSets:
        """Return each set without repetitions."""
        return self._map(lambda _, one: take(one, distinct(one).first))

    def match(self, outputs: Samples) -> Index:
        """Return the place of each example's output in its own set, (q,); −1 where it is not there."""
        places = np.full(len(self), -1, dtype=np.intp)
        for one, examples in self.groups():
            places[examples] = match(take(outputs, examples), one)
        return places

    def groups(self) -> Iterator[tuple[Samples, Index]]:
        """Yield each set that is an object of its own, and the examples that have it."""
        different, owner = self._different()
        yield from zip(different, _members(owner), strict=True)

    def products(self, Z: Array, embedding: Embedding) -> Iterator[tuple[Index, Array, Array]]:
        """Yield examples (m,) with sets of similar size, ⟨z, g(y)⟩ and k(y, y), both (m, c), padded with 0 and ∞.

        As many sets as fit into ``working_memory`` are embedded together; a single set that does not is embedded whole.
        """
        different, owner = self._different()
        sizes = np.array([n_samples(one) for one in different], dtype=np.intp)
        members = _members(owner)
        limit = computing_rows(embedding.bytes_per_output, int(sizes.sum()))
        embed = embedding.placed()
        ends, start = np.cumsum(sizes), 0
        while start < len(different):
            before = ends[start] - sizes[start]
            stop = max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
            pool = concat(different[start:stop])
            whole = cut(pool, [slice(0, n_samples(pool))])
            parts = [g for _, g in stream(whole, embed, embedding.kernel._on_device)]
            g, norms = array_namespace(*parts).concat(parts), diagonal(embedding.kernel, pool, "output_kernel")
            examples = np.concatenate(members[start:stop])
            examples = examples[np.lexsort((owner[examples], sizes[owner[examples]]))]
            for part in _similar(sizes[owner[examples]], 8 * embedding.n_components):
                chosen = examples[part]
                ends_here = ends[owner[chosen]] - before
                yield (
                    chosen,
                    *_padded(rows_of(Z, chosen), g, norms, sizes[owner[chosen]], ends_here),
                )
            start = stop

    def _different(self) -> tuple[list[Samples], Index]:
        """Return the sets that are different objects, and which of them each example has."""
        seen: dict[int, int] = {}
        owner = np.array([seen.setdefault(id(one), len(seen)) for one in self.sets], dtype=np.intp)
        first = np.unique(owner, return_index=True)[1]
        return [self.sets[i] for i in first], owner

    def _map(self, function: Callable[[int, Samples], Samples]) -> CandidateSets:
        seen: dict[int, Samples] = {}
        for i, one in enumerate(self.sets):
            if id(one) not in seen:
                seen[id(one)] = function(i, one)
        return CandidateSets([seen[id(one)] for one in self.sets])


def _members(owner: Index) -> list[Index]:
    """Return, for each different set, the examples that have it."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)


def _similar(sizes: Index, extra_bytes: int) -> Iterator[slice]:
    """Cut ascending sizes where one is a quarter larger than the first, or the matrix leaves ``working_memory``."""
    start = 0
    while start < len(sizes):
        widest = sizes[start] + sizes[start] // 4 + 4
        rows = block_rows(64 * int(widest) + extra_bytes, len(sizes))
        stop = min(int(np.searchsorted(sizes, widest, side="right")), start + rows)
        yield slice(start, stop)
        start = stop


def _padded(Z: Array, g: Array, norms: Array, sizes: Index, ends: Index) -> tuple[Array, Array]:
    """Return ⟨zᵢ, g⟩ and k(y, y) for the rows ends[i] − sizes[i] … ends[i] of the pool: one GEMM a set."""
    products, squared = zeros((len(Z), sizes.max())), np.full((len(Z), sizes.max()), np.inf)
    xp = array_namespace(Z)
    Z, g = xp.astype(Z, xp.float64, copy=False), xp.astype(g, xp.float64, copy=False)
    runs = np.flatnonzero(np.diff(ends, prepend=-1))
    for first, last in zip(runs, [*runs[1:], len(Z)], strict=True):
        size, end = sizes[first], ends[first]
        products[first:last, :size] = Z[first:last] @ g[end - size : end].T
        squared[first:last, :size] = norms[end - size : end]
    return to_host(products), squared


def as_candidates(candidates: Any, known_outputs: Samples) -> Any:
    """Return :class:`CandidateSets` if a list holds one collection an example, else the shared collection itself.

    Told apart by depth: an item of a shared list is as deep as a known output (a row of numbers: 1, a number or a
    string: 0), an item of a list of sets one deeper. Where known outputs are of several depths a list is one shared
    set, and only :class:`CandidateSets` says otherwise.
    """
    if isinstance(candidates, CandidateSets) or not isinstance(candidates, list | tuple) or not candidates:
        return candidates
    depths = {known_outputs.ndim - 1} if hasattr(known_outputs, "shape") else set(map(_depth, known_outputs))
    one_deeper = max(map(_depth, candidates)) > max(depths)
    return CandidateSets(candidates) if one_deeper and len(depths) == 1 else candidates


def _depth(item: Any) -> int:
    if isinstance(item, np.ndarray) or is_tensor(item) or sparse.issparse(item) or hasattr(item, "iloc"):
        return int(item.ndim)
    if isinstance(item, list | tuple):
        return 1 + max((_depth(part) for part in item), default=0)
    return 0
