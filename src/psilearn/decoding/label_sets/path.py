"""Decoding of the predictions of many models among label sets that a solver finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from psilearn._backend import Compute
from psilearn._utils.samples import Index, distinct
from psilearn.decoding.label_sets.found_sets import FoundSets
from psilearn.decoding.path_decoder import PathDecoder
from psilearn.decoding.shared import SharedCandidates
from psilearn.embedding import Embedding


class SolvableSets(Protocol):
    """Label sets among which a solver finds the nearest."""

    embedding: Embedding | None

    def _solve(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        """Return the nearest sets of Z (q, p) for a basis (r, p)."""


class LabelSetPathDecoder(PathDecoder):
    """Decodes with a solver; the basis is rotated to the directions of each step.

    The candidates are the distinct sets that were found, after the last step.
    """

    def __init__(
        self,
        sets: Any,
        to_candidates: Callable[[Any], SharedCandidates],
        sizes: Sequence[int] | None,
        compute: Compute,
    ) -> None:
        super().__init__(sets, sizes, compute, None)
        self.sets: SolvableSets = sets
        self._to_candidates = to_candidates
        self._rows: list[Any] = []  # CSR (q, L) for each step and size
        self._shape: list[tuple[int, int]] = []  # sizes and queries of each step

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        assert self.sets.embedding is not None
        basis = self.compute.asarray(self.sets.embedding.basis)
        basis = basis if V is None else basis @ V
        for p in sizes:
            self._rows.append(self.sets._solve(Z[:, :p], basis[:, :p], 1, self.compute).rows)
        self._shape.append((len(sizes), len(Z)))

    def _finish(self) -> None:
        if len(self._nearest) == len(self._shape):
            return
        rows = sparse.vstack(self._rows, "csr")
        first, inverse = distinct(rows)
        self.candidates = self._to_candidates(rows[first])
        stops = np.cumsum([n_sizes * q for n_sizes, q in self._shape])
        parts: list[Index] = np.split(inverse, stops[:-1])
        self._nearest = [part.reshape(shape) for part, shape in zip(parts, self._shape, strict=True)]
