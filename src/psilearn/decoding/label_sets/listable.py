"""What all label sets and the near ones have in common: a solver for the nearest, and a list for everything else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from psilearn._backend import Compute
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples
from psilearn.decoding.label_sets.label_rows import (
    FoundSets,
    check_label_rows,
    count_labels,
    is_packed,
    rows_of_labels,
    to_form_of,
    to_label_rows,
)
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder
from psilearn.decoding.shared import RuleCandidates, SharedCandidates
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding

Solve = Callable[[Any, Any, int, Compute], FoundSets]  # of Z (q, p), a basis (r, p), k and the computation


class ListableLabelSets(RuleCandidates):
    """Label sets that are given by a rule.

    The nearest sets are found without a list wherever a subclass can; for everything else, such as the position of a
    true output or conformal sets, the sets are listed, up to a limit.

    See Also
    --------
    AllLabelSets : All 2^L label sets.
    NearLabelSets : The known label sets and those that differ in one label.

    Examples
    --------
    >>> from psilearn.decoding.label_sets import AllLabelSets, ListableLabelSets
    >>> issubclass(AllLabelSets, ListableLabelSets)
    True
    """

    embedding: Embedding | None
    known: Samples  # outputs, in the form in which predictions are returned; None before the sets are given to a model
    n_labels: int | None  # of packed rows; None for 8 per byte

    @property
    def packed(self) -> bool:
        """Whether outputs are packed bits."""
        return self.embedding is not None and is_packed(self.embedding.kernel)

    @cached_property
    def listed(self) -> SharedCandidates:
        """The sets as a list; an error if they are too many."""
        self._require_listable("Give candidates")
        return SharedCandidates(self._to_outputs(self._list_rows()), self.embedding)

    def _with_known(self, known: Samples) -> Self:
        """Return the same rule for the known outputs of a model, unless it has known outputs already."""
        return self if self.known is not None else self._copy(self.embedding, known)

    def _check_searchable(self) -> None:
        """Raise if neither the nearest set can be found with the output kernel nor the sets be listed."""
        check_label_rows(self._known_outputs(), self.packed)
        if not self._has_solver(1):
            self._require_listable("Give candidates")

    @property
    def _n_labels(self) -> int:
        """The number L of labels."""
        width = count_labels(self._known_outputs(), self.packed)
        n_labels = width if self.n_labels is None else validation.check_count(self.n_labels, "n_labels")
        if n_labels > width or n_labels <= width - (8 if self.packed else 1):
            packed = f" in {width // 8} bytes" if self.packed else ""
            raise ValueError(f"n_labels={n_labels}, but the outputs of the model have {width} labels{packed}.")
        return n_labels

    @cached_property
    def landmark_rows(self) -> Any:
        """The landmarks of the embedding as CSR rows (r, L) of zeros and ones."""
        return self._to_rows(self._known_embedding().landmarks)

    def _to_rows(self, outputs: Samples) -> Any:
        """Return outputs as CSR rows with L columns; raise if a packed row has a label beyond them."""
        rows, n_labels = to_label_rows(outputs, self.packed), self._n_labels
        if rows[:, n_labels:].nnz:
            label = int(rows.indices.max())
            raise ValueError(f"n_labels={n_labels}, but the outputs contain the label {label}, counted from 0.")
        return rows[:, :n_labels]

    def _known_outputs(self) -> Samples:
        """Return the known outputs, or the landmarks, which have the same form; raise if there are none."""
        return self._known_embedding().landmarks if self.known is None else self.known

    def _require_listable(self, remedy: str) -> None:
        """Raise if there are too many sets to list; the remedy is part of the message."""
        count, limit = self._max_size(), self._max_listed()
        if count > limit:
            raise ValueError(f"{self!r} are too many sets to list (at most {limit:,}). {remedy}; {self._advice()}")

    @abstractmethod
    def _copy(self, embedding: Embedding | None, known: Samples) -> Self:
        """Return the same rule with another embedding and other known outputs."""

    @abstractmethod
    def _max_listed(self) -> int:
        """Return how many sets are listed at most."""

    @abstractmethod
    def _advice(self) -> str:
        """Return what is possible without a list, as the end of an error message."""

    @abstractmethod
    def _list_rows(self) -> Any:
        """Return all sets as CSR rows."""

    @abstractmethod
    def _has_solver(self, k: int) -> bool:
        """Return whether the k nearest sets can be found without a list."""

    @abstractmethod
    def _solve(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        """Return the k nearest sets of predicted embeddings Z (q, p) for a basis (r, p) of the landmarks."""

    def _validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> Self:
        if self.known is None:
            return self
        return self._copy(self.embedding, check(self.known, f"known of {type(self).__name__}"))

    def _for_embedding(self, embedding: Embedding) -> Self:
        return self._copy(embedding, self.known)

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        if not self._has_solver(k):
            self._require_listable("Ask for k=1, or give candidates" if self._has_solver(1) else "Give candidates")
            return self.listed._nearest(Z, k, compute)
        found = self._solve(Z, self._known_embedding().basis, min(k, self._max_size()), compute)
        candidates = SharedCandidates(self._to_outputs(found.rows))
        return TopK(np.arange(found.distances.size).reshape(found.distances.shape), found.distances, candidates, k)

    def _path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> PathDecoder:
        sets = self if embedding is self.embedding else self._copy(embedding, self.known)
        if truth is not None or not sets._has_solver(1):
            return sets.listed._path_decoder(embedding, sizes, compute, truth)
        return LabelSetPathDecoder(sets, sets._solve, embedding.basis, sets._to_outputs, sets._n_labels, sizes, compute)

    def _to_outputs(self, rows: Any) -> Samples:
        """Return CSR rows in the form of the known outputs."""
        return to_form_of(rows, self._known_outputs(), self.packed)

    def __getstate__(self) -> dict[str, Any]:
        """Return the rule alone: what was computed from it may be large, and is computed again."""
        cached = {name for name in dir(type(self)) if isinstance(getattr(type(self), name, None), cached_property)}
        return {name: value for name, value in self.__dict__.items() if name not in cached}


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
