"""Candidates that are given by a rule, the same for all examples, and listed only where a list is needed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

from psilearn._backend import Compute
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples
from psilearn.decoding.candidates import Candidates, RankedRow
from psilearn.decoding.output_set import OutputSet
from psilearn.decoding.shared import SharedCandidates


class RuleCandidates(Candidates):
    """All outputs that satisfy a rule; a subclass finds the nearest, and everything else uses ``listed``."""

    @property
    @abstractmethod
    def listed(self) -> SharedCandidates:
        """The outputs as a list; an error if they are too many."""

    def _outputs_of(self, example: int) -> Samples:
        return self.listed.outputs

    def _take(self, indices: Index) -> Samples:
        return self.listed._take(indices)

    def _restrict(self, examples: slice | Index) -> Self:
        return self

    def _groups(self, n_examples: int) -> Iterator[tuple[OutputSet, Index]]:
        return self.listed._groups(n_examples)

    def _distinct(self) -> Self:
        return self

    def _validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> Self:
        return self

    def _match(self, truth: Samples) -> Index:
        return self.listed._match(truth)

    def _ranked(self, Z: Any, compute: Compute) -> Iterator[RankedRow]:
        return self.listed._ranked(Z, compute)

    def _positions(self, Z: Any, truth: Index, compute: Compute) -> tuple[Array, Array]:
        return self.listed._positions(Z, truth, compute)
