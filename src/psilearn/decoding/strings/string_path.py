"""Decoding of the predictions of many models among strings that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psilearn._backend import Compute, to_numpy
from psilearn._utils.samples import Index, Samples, distinct
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder

Solve = Callable[[Any, Any, int], list[list[tuple[Any, float]]]]  # of Z (q, p), a basis (r, p) and k


class StringPathDecoder(PathDecoder):
    """Decodes with a search; the basis (r, p) of the landmarks is rotated to the directions of each step.

    ``nearest`` has the numbers of the strings that were found.
    """

    def __init__(
        self, candidates: PathCandidates, solve: Solve, basis: Any, sizes: Sequence[int] | None, compute: Compute
    ) -> None:
        super().__init__(candidates, sizes, compute, None)
        self._solve = solve
        self._basis = to_numpy(basis)
        self._found: list[Any] = []

    def take(self, examples: Index, indices: Index) -> Samples:
        """Return strings that were found, by their numbers."""
        return [self._found[i] for i in indices]

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        basis = self._basis if V is None else self._basis @ to_numpy(V)
        rows = []
        for p in sizes:
            found = [row[0][0] for row in self._solve(to_numpy(Z)[:, :p], basis[:, :p], 1)]
            rows.append(self._numbers(found))
        self._steps.append(DecodedStep(np.stack(rows)))

    def _numbers(self, strings: list[Any]) -> Index:
        """Return the numbers of strings, of which new ones are added."""
        both = [*self._found, *strings]
        first, inverse = distinct(both)
        self._found = [both[i] for i in first]
        return inverse[len(inverse) - len(strings) :]
