"""Decoding of the predictions of many models among label sets that a solver finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psilearn._backend import Compute
from psilearn._utils.samples import Index, Samples
from psilearn.decoding.label_sets.found_sets import FoundSets
from psilearn.decoding.label_sets.label_rows import rows_of_labels
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder

Solve = Callable[[Any, Any, int, Compute], FoundSets]  # of Z (q, p), a basis (r, p), k and the computation


class NumberedSets:
    """The distinct label sets that were found, numbered in the order in which they first appear."""

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels
        self._numbers: dict[bytes, int] = {}
        self._labels: list[Index] = []

    def number(self, rows: Any) -> Index:
        """Return the numbers of CSR rows with ascending labels, (q,)."""
        numbers = np.empty(rows.shape[0], dtype=np.intp)
        for i, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
            labels = rows.indices[start:stop].astype(np.intp)
            numbers[i] = self._numbers.setdefault(labels.tobytes(), len(self._labels))
            if numbers[i] == len(self._labels):
                self._labels.append(labels)
        return numbers

    def take(self, numbers: Index) -> Any:
        """Return the CSR rows of sets by their numbers."""
        sets = [self._labels[number] for number in numbers]
        sizes = np.array([len(labels) for labels in sets], dtype=np.intp)
        return rows_of_labels(np.concatenate([np.zeros(0, dtype=np.intp), *sets]), sizes, self.n_labels)


class LabelSetPathDecoder(PathDecoder):
    """Decodes with a solver; the basis (r, p) of the landmarks is rotated to the directions of each step.

    ``nearest`` has the numbers of the distinct sets that were found; ``to_outputs`` turns CSR rows into outputs.
    """

    def __init__(
        self,
        candidates: PathCandidates,
        solve: Solve,
        basis: Any,
        to_outputs: Callable[[Any], Samples],
        n_labels: int,
        sizes: Sequence[int] | None,
        compute: Compute,
    ) -> None:
        super().__init__(candidates, sizes, compute, None)
        self._solve = solve
        self._basis = compute.asarray(basis)
        self._to_outputs = to_outputs
        self._found = NumberedSets(n_labels)

    def take(self, examples: Index, indices: Index) -> Samples:
        """Return sets that were found, by their numbers."""
        return self._to_outputs(self._found.take(indices))

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        basis = self._basis if V is None else self._basis @ V
        found = [self._solve(Z[:, :p], basis[:, :p], 1, self.compute) for p in sizes]
        self._steps.append(DecodedStep(np.stack([self._found.number(sets.rows) for sets in found])))
