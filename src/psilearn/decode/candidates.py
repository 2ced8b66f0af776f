"""What is searched: one candidate set for all examples, or one set an example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.backend import row_blocks
from psilearn.embed import Embedding
from psilearn.linalg import Array
from psilearn.samples import Samples, concat, distinct, n_samples, take

BLOCK_ROWS = 8192  # candidates that are scored together at the most


@dataclass(frozen=True)
class CandidateSet:
    """One set of candidates, shared by all examples, with what decoding needs of each.

    The point of a candidate is [g(y), r(y)] ∈ Rᵖ⁺¹ and the query [z(x), 0]: the nearest point is the nearest ψ(y) in
    the output space, so any Euclidean index serves. Where ``g`` is None the candidates are embedded block by block
    while they are searched, and c·p numbers are never held.
    """

    outputs: Samples  # c candidates
    embedding: Embedding
    squared_norms: Array  # (c,)  k(y, y)
    g: Array | None = None  # (c, p)

    def __len__(self) -> int:
        return len(self.squared_norms)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows and their embeddings g, each block within ``working_memory``."""
        for outer in row_blocks(len(self), 8 * (len(self.embedding.basis) + self.embedding.n_components)):
            for start in range(outer.start, outer.stop, BLOCK_ROWS):
                rows = slice(start, min(start + BLOCK_ROWS, outer.stop))
                yield rows, self.embedding(take(self.outputs, rows)) if self.g is None else self.g[rows]

    def distinct(self) -> CandidateSet:
        """Return the set without repetitions."""
        first = distinct(self.outputs).first
        if len(first) == len(self):
            return self
        g = None if self.g is None else self.g[first]
        return CandidateSet(take(self.outputs, first), self.embedding, self.squared_norms[first], g)

    def points(self) -> Array:
        """Return [g(y), r(y)] for each candidate, shape (c, p+1)."""
        g = np.concatenate([block for _, block in self.blocks()])
        residual = np.sqrt(np.maximum(self.squared_norms - np.einsum("ij,ij->i", g, g), 0))
        return np.column_stack([g, residual])


class CandidateSets:
    """One candidate set an example; sets may have different sizes.

    A plain list of collections says the same wherever it cannot be mistaken for one shared list of objects.

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
        return CandidateSets([check(one, f"candidates[{i}]") for i, one in enumerate(self.sets)])

    def groups(self, embedding: Embedding) -> Iterator[tuple[range, list[Array], list[Array]]]:
        """Yield examples whose candidates fit into ``working_memory`` together, each with g (cᵢ, p) and k(y, y)."""
        sizes = [n_samples(one) for one in self.sets]
        per_candidate = 8 * (len(embedding.basis) + embedding.n_components)
        limit = next(row_blocks(sum(sizes), per_candidate)).stop
        start = 0
        while start < len(sizes):
            stop, total = start + 1, sizes[start]
            while stop < len(sizes) and total + sizes[stop] <= limit:
                total += sizes[stop]
                stop += 1
            pool = concat(self.sets[start:stop])
            cuts = np.cumsum(sizes[start:stop])[:-1]
            yield range(start, stop), np.split(embedding(pool), cuts), np.split(embedding.kernel.diag(pool), cuts)
            start = stop


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
    if isinstance(item, np.ndarray) or sparse.issparse(item) or hasattr(item, "iloc"):
        return int(item.ndim)
    if isinstance(item, list | tuple):
        return 1 + max((_depth(part) for part in item), default=0)
    return 0
