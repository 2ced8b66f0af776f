"""One set of candidates per example, of any sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from psilearn._backend import Compute, take_rows
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, check_not_empty, concat, take
from psilearn.decoding.bounded_search import Blocks, search_nearest, search_positions
from psilearn.decoding.candidates import Candidates
from psilearn.decoding.distances import count_nearer, k_smallest
from psilearn.decoding.expansions import ExpansionPathDecoder, SetPools, members_of, pool_norms
from psilearn.decoding.output_set import OutputSet
from psilearn.decoding.path_decoder import PathDecoder
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding


class PerExampleCandidates(Candidates):
    """One set of candidates per example; sets may have different sizes.

    Sets that are the same object are validated, embedded and scored once. A plain list of collections has the same
    meaning wherever it cannot be mistaken for one shared list of outputs.

    Parameters
    ----------
    sets : iterable of q collections
        The candidates of each example: arrays, CSR matrices or sequences of outputs.

    See Also
    --------
    SharedCandidates : One set for all examples.
    SharedCandidates.per_example : Sets that are parts of one embedded set.

    Examples
    --------
    >>> from psilearn.decoding import PerExampleCandidates
    >>> candidates = PerExampleCandidates([["a", "b"], ["c"]])
    >>> len(candidates), candidates.max_size
    (2, 2)
    >>> candidates.match(["b", "b"])
    array([ 1, -1])
    """

    def __init__(self, sets: Iterable[Samples]) -> None:
        if isinstance(sets, str) or not hasattr(sets, "__iter__") or getattr(sets, "ndim", 1) == 0:
            raise TypeError(f"sets must be a sequence of collections, one per example; got {type(sets).__name__}.")
        sets = list(sets)  # all alive at once, so that no two share an id
        wrapped: dict[int, OutputSet] = {}
        for i, part in enumerate(sets):
            if id(part) not in wrapped:
                outputs = part.outputs if isinstance(part, OutputSet) else part
                check_not_empty(outputs, f"candidates[{i}]")
                wrapped[id(part)] = OutputSet(outputs)
        self._sets = [wrapped[id(part)] for part in sets]
        self.embedding: Embedding | None = None

    @classmethod
    def _of_sets(cls, sets: Sequence[OutputSet], embedding: Embedding | None) -> Self:
        """Return candidates from sets that may be embedded already; equal sets should be the same object."""
        candidates = cls([])
        candidates._sets, candidates.embedding = list(sets), embedding
        return candidates

    def __len__(self) -> int:
        return len(self._sets)

    def __repr__(self) -> str:
        return f"PerExampleCandidates({len(self)} sets)"

    @property
    def sets(self) -> list[Samples]:
        """The candidates of each example, in the form in which they were given."""
        return [part.outputs for part in self._sets]

    @cached_property
    def _different(self) -> tuple[list[OutputSet], Index]:
        """The sets that are different objects, and which of them each example has, (q,)."""
        numbers: dict[int, int] = {}
        owner = np.array([numbers.setdefault(id(part), len(numbers)) for part in self._sets], dtype=np.intp)
        first = np.unique(owner, return_index=True)[1]
        return [self._sets[i] for i in first], owner

    def _map(self, function: Callable[[int, OutputSet], OutputSet], embedding: Embedding | None) -> Self:
        """Return the sets that a function of the example and its set returns, called once per different set."""
        results: dict[int, OutputSet] = {}
        for i, part in enumerate(self._sets):
            if id(part) not in results:
                results[id(part)] = function(i, part)
        return self._of_sets([results[id(part)] for part in self._sets], embedding)

    def _check_queries(self, Z: Any, name: str = "Z") -> None:
        super()._check_queries(Z, name)
        if len(Z) != len(self):
            raise ValueError(
                f"Z has {len(Z)} rows, but there are {len(self)} sets of candidates: one per row is needed."
            )

    def _max_size(self) -> int:
        return max(map(len, self._sets))

    def _sizes(self) -> Any:
        return np.array([len(part) for part in self._sets])

    def _outputs_of(self, example: int) -> Samples:
        return self._sets[example].outputs

    def _take(self, indices: Index) -> Samples:
        return concat([take(part.outputs, slice(j, j + 1)) for part, j in zip(self._sets, indices, strict=True)])

    def _restrict(self, examples: slice | Index) -> Self:
        chosen = self._sets[examples] if isinstance(examples, slice) else [self._sets[i] for i in examples]
        return self._of_sets(chosen, self.embedding)

    def _groups(self, n_examples: int) -> Iterator[tuple[OutputSet, Index]]:
        sets, owner = self._different
        yield from zip(sets, members_of(owner), strict=True)

    def _distinct(self) -> Self:
        return self._map(lambda _, part: part._unique, self.embedding)

    def _validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> Self:
        if len(self) != n_examples:
            raise ValueError(
                f"candidates holds {len(self)} sets for {n_examples} examples: give one set per example, or one array "
                f"of candidates for all."
            )
        for i, part in enumerate(self._sets):
            if len(part) == 0:
                raise ValueError(f"candidates[{i}] is empty: every example needs at least one candidate.")
        if self.embedding is not None:
            return self
        return self._map(lambda i, part: OutputSet(check(part.outputs, f"candidates[{i}]")), None)

    def _for_embedding(self, embedding: Embedding) -> Self:
        return self._of_sets(self._sets, embedding)

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        n_requested, k = k, min(k, self.max_size)
        indices, distances = np.full((len(Z), k), -1, dtype=np.intp), np.full((len(Z), k), np.inf)
        pools = SetPools(*self._different, self._known_embedding(), compute)
        for examples, D, slack in pools.iter_distances(Z):
            columns, values = k_smallest(D, slack, min(k, D.shape[1]))
            indices[examples, : columns.shape[1]] = np.where(np.isfinite(values), columns, -1)
            distances[examples, : columns.shape[1]] = values
        for examples, blocks, norms in self._large_sets(pools):
            top = search_nearest(take_rows(Z, examples), blocks, norms, min(k, len(norms)), compute)
            indices[examples, : top[0].shape[1]], distances[examples, : top[0].shape[1]] = top
        return TopK(indices, distances, self, n_requested)

    def _positions(self, Z: Any, truth: Index, compute: Compute) -> tuple[Array, Array]:
        nearer, tied = np.where(truth >= 0, 0.0, np.inf), np.zeros(len(Z))
        pools = SetPools(*self._different, self._known_embedding(), compute)
        for examples, D, slack in pools.iter_distances(Z):
            column = truth[examples, None]
            truth_D, truth_slack = (np.take_along_axis(part, np.maximum(column, 0), axis=1) for part in (D, slack))
            counts = count_nearer(D, slack, np.where(column >= 0, truth_D, np.nan), truth_slack)
            nearer[examples] += counts[0]
            tied[examples] += counts[1]
        for examples, blocks, norms in self._large_sets(pools):
            counts = search_positions(take_rows(Z, examples), blocks, norms, truth[examples], compute)
            nearer[examples], tied[examples] = counts
        return nearer, tied

    def _large_sets(self, pools: SetPools) -> Iterator[tuple[Index, Blocks, Array]]:
        """Yield the examples, embedded blocks and k(y, y) of the sets that do not fit into a pool."""
        embedding = self._known_embedding()
        for number in pools.large.tolist():
            part = pools.sets[number]
            norms = pool_norms([part], embedding.kernel)
            yield pools.members[number], partial(part._embedded_blocks, embedding), norms

    def _path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> PathDecoder:
        known = self if embedding is self.embedding else self._map(lambda _, part: part._without_embedding(), None)
        return ExpansionPathDecoder(self, *known._different, embedding, sizes, compute, truth)
