"""The known label sets and those that differ from one of them by one label, as candidates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, iter_slices, to_numpy
from psilearn._linalg import row_products
from psilearn._utils.samples import Samples, distinct, n_samples
from psilearn.decoding.distances import tie_tolerance
from psilearn.decoding.label_sets.found_sets import FoundSets
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.decoding.label_sets.near_search import NearSolver, all_near_rows
from psilearn.decoding.label_sets.size_forms import find_size_form
from psilearn.decoding.label_sets.size_weights import SizeWeights
from psilearn.decoding.shared import SharedCandidates
from psilearn.embedding import Embedding

MAX_LISTED_NEAR_SETS = 2**20  # near sets that are listed if more than the nearest one is needed
BLOCK_SETS = 2**16  # near sets that are searched together with kernels that have no solver


class NearLabelSets(ListableLabelSets):
    """The known label sets, and all sets that differ from one of them by one label: ``candidates="near"``.

    The nearest of these n·(L + 1) sets is found without a list: with the kernels of
    :func:`~psilearn.decoding.has_all_label_sets` in O(|y|) per query and known set y, with other kernels block by
    block, at the cost of n·(L + 1) candidates. For everything else, such as k > 1 sets, the position of a true output
    or conformal sets, the distinct sets are listed, if n·(L + 1) is at most 1,048,576.

    A tie goes to a known set, then to the smaller set; with other kernels and in lists to the first one, where the
    known sets come first.

    Parameters
    ----------
    embedding : Embedding, default=None
        The embedding of a model. None until the sets are passed to a method of a model.
    known : array or CSR matrix of shape (n, L), default=None
        The known label sets. None stands for those of the model.
    n_labels : int, default=None
        The number of labels of packed rows, if it is not a multiple of 8.

    See Also
    --------
    AllLabelSets : All label sets.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import NearLabelSets
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> known = np.array([[1, 0, 0, 0], [0, 1, 1, 0]])
    >>> sets = NearLabelSets(Embedding(Linear(), np.eye(4), np.eye(4)), known)
    >>> sets.nearest(np.array([[0.9, 0.0, 0.0, 0.8]]), k=1).nearest
    array([[1, 0, 0, 1]])
    """

    def __init__(
        self, embedding: Embedding | None = None, known: Samples | None = None, *, n_labels: int | None = None
    ) -> None:
        self.embedding = embedding
        self.known = known
        self.n_labels = n_labels

    def __repr__(self) -> str:
        if self.known is None:
            return "NearLabelSets()"
        return f"NearLabelSets({n_samples(self.known):,} known sets of {self._n_labels} labels and their neighbors)"

    @cached_property
    def _known_rows(self) -> Any:
        """The distinct known sets as CSR rows."""
        rows = self._to_rows(self._known_outputs())
        return rows[distinct(rows).first]

    @cached_property
    def _solver(self) -> NearSolver | None:
        form = find_size_form(self._known_embedding().kernel)
        return None if form is None else NearSolver(SizeWeights(form, self.landmark_rows), self._known_rows)

    def _copy(self, embedding: Embedding | None, known: Samples) -> Self:
        return type(self)(embedding, known, n_labels=self.n_labels)

    def _known_outputs(self) -> Samples:
        if self.known is None:
            raise ValueError("NearLabelSets() has no known sets yet: pass it to a method of a model, or give known.")
        return self.known

    def _max_size(self) -> int:
        return self._known_rows.shape[0] * (self._n_labels + 1)

    def _max_listed(self) -> int:
        return MAX_LISTED_NEAR_SETS

    def _advice(self) -> str:
        return 'only the nearest of them can be found; candidates="known" are the known sets.'

    def _list_rows(self) -> Any:
        rows = all_near_rows(self._known_rows)
        return rows[distinct(rows).first]

    def _has_solver(self, k: int) -> bool:
        return k == 1 and self.embedding is not None

    def _solve(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        if self._solver is not None:
            return self._solver.nearest(Z, basis, compute)
        return self._solve_by_blocks(Z, basis, compute)

    def _solve_by_blocks(self, Z: Any, basis: Any, compute: Compute) -> FoundSets:
        """Return the nearest sets with any kernel: the near sets of some known ones at a time are candidates."""
        known = self._known_rows
        embedding = Embedding(self._known_embedding().kernel, self._known_embedding().landmarks, basis)
        lengths, tolerance = to_numpy(row_products(Z, Z))[:, None], tie_tolerance(Z)
        best = FoundSets(known[np.zeros(len(Z), dtype=np.intp)], np.full((len(Z), 1), np.inf))
        for rows in self._iter_near_rows():
            candidates = SharedCandidates(self._to_outputs(rows), embedding)
            top = candidates.nearest(Z, 1, compute)
            indices, distances = to_numpy(top.indices), to_numpy(top.distances)
            closer = distances + tolerance * (lengths + candidates._known_norms()[indices]) < best.distances
            places = np.where(closer, indices + len(Z), np.arange(len(Z))[:, None])[:, 0]
            found = sparse.vstack([best.rows, rows], "csr")[places]
            best = FoundSets(found, np.where(closer, distances, best.distances))
        return best

    def _iter_near_rows(self) -> Iterator[Any]:
        """Yield the known sets, then block by block known sets with those that differ from them by one label."""
        known = self._known_rows
        yield known
        for part in iter_slices(known.shape[0], max(1, BLOCK_SETS // (self._n_labels + 1))):
            yield all_near_rows(known[part])
