"""The known label sets and those that differ from one of them by one label, as candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, iter_slices, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils.samples import Index, Samples, distinct, n_samples
from psilearn.decoding.distances import first_smallest, tie_tolerance
from psilearn.decoding.label_sets.label_rows import FoundSets
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.decoding.label_sets.set_limits import SetLimits
from psilearn.decoding.label_sets.size_weights import SizeQueries, SizeWeights, find_size_form, largest_columns
from psilearn.decoding.label_sets.solver import iter_query_blocks
from psilearn.decoding.shared import SharedCandidates
from psilearn.embedding import Embedding

MAX_LISTED_NEAR_SETS = 2**20  # near sets that are listed if more than the nearest one is needed
BLOCK_SETS = 2**16  # near sets that are searched together with kernels that have no solver
MAX_PAIRS = 2**21  # of queries and known sets that are compared together
NO_LABEL = -1


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


class Changes(NamedTuple):
    """For each query the nearest of some sets: a known set, and the label that is added to it or removed."""

    distances: Array  # (b, 1)
    known: Index  # (b, 1)
    labels: Index  # (b, 1); NO_LABEL for none


# The nearest of the known label sets and of those that differ from one of them by one label.
#
# With the weights w_s of size_weights.py, a known set y of size s has the total Σ_{j∈y} w_s,j. With one more label its
# best total is Σ_{j∈y} w_{s+1,j} + max_{j∉y} w_{s+1,j}, and the maximum is found among the s + 1 heaviest labels, at
# least one of which is not in y. With one label less its best total is Σ_{j∈y} w_{s−1,j} − min_{j∈y} w_{s−1,j}. So the
# n·(L + 1) sets are searched without making one of them: O(s) per query and known set, besides O(T·L) per query and
# size.
@dataclass(frozen=True)
class NearSolver:
    """Finds the nearest set; a tie goes to a known set, then to the smaller set, then to the lowest known set."""

    weights: SizeWeights
    known: Any  # CSR (n, L), zeros and ones, ascending labels

    @cached_property
    def _groups(self) -> list[tuple[int, Index]]:
        """The sizes of known sets, ascending, with the sets of each size."""
        sizes = np.diff(self.known.indptr)
        return [(int(size), np.flatnonzero(sizes == size)) for size in np.unique(sizes)]

    def nearest(self, Z: Any, basis: Any, compute: Compute) -> FoundSets:
        """Return the nearest set of predicted embeddings Z (q, p), for the basis (r, p) of the landmarks."""
        limits = SetLimits.of(self.known.shape[1], 0, None, None, "at_most_one")
        parts = []
        for queries in iter_query_blocks(self.weights, limits, Z, basis, compute):
            best = self._best(queries)
            parts.append(FoundSets(self._changed_rows(best), best.distances))
        return FoundSets.join(parts, 1, self.known.shape[1])

    def _best(self, queries: SizeQueries) -> Changes:
        """Return the nearest set of each query."""

        @lru_cache(maxsize=3)  # sizes ascend, and each is needed for known sets of three sizes
        def weights_of(size: int) -> Array:
            return to_numpy(queries.weights.weights(queries.vectors, np.array([size]))[0])

        found: list[Changes] = []
        sizes: list[int] = []
        for size, members in self._groups:
            for part in iter_slices(len(members), max(1, MAX_PAIRS // (len(queries) * (size + 1)))):
                for changed_size, changes in self._changes(queries, weights_of, size, members[part]):
                    found.append(changes)
                    sizes.append(changed_size)
        is_new = [changes.labels[0, 0] != NO_LABEL for changes in found]
        order = np.lexsort((sizes, is_new))  # the order of ties
        D, known, labels = (np.concatenate([found[i][part] for i in order], axis=1) for part in range(3))
        columns, least = first_smallest(D, queries.slack(np.array(sizes)[order]))
        return Changes(least, np.take_along_axis(known, columns, 1), np.take_along_axis(labels, columns, 1))

    def _changes(
        self, queries: SizeQueries, weights_of: Callable[[int], Array], size: int, members: Index
    ) -> Iterator[tuple[int, Changes]]:
        """Yield the nearest of some known sets of one size, of those with one more label and with one label less."""
        n_labels = self.known.shape[1]
        Y = self.known[members]
        labels = Y.indices.reshape(len(members), size)  # (m, size)
        for changed in (size, size + 1, size - 1):
            if not 0 <= changed <= n_labels:
                continue
            W = weights_of(changed)  # (b, L)
            totals = np.asarray(Y @ W.T).T  # (b, m)
            change = np.full(totals.shape, NO_LABEL, dtype=np.intp)
            if changed > size:
                change = self._best_additions(Y, W, size)
                totals = totals + np.take_along_axis(W, change, axis=1)
            elif changed < size:
                inside = W[:, labels]  # (b, m, size)
                place = inside.argmin(axis=2)
                change = labels[np.arange(len(members)), place]
                totals = totals - np.take_along_axis(inside, place[:, :, None], axis=2)[:, :, 0]
            which = np.array([changed])
            D = queries.distances(totals, which)  # (b, m)
            columns, least = first_smallest(D, np.broadcast_to(queries.slack(which), D.shape))
            yield changed, Changes(least, members[columns], np.take_along_axis(change, columns, 1))

    def _best_additions(self, Y: Any, W: Array, size: int) -> Index:
        """Return the heaviest label outside of each set, (b, m), for sets Y (m, L) of one size and weights W (b, L)."""
        heaviest = largest_columns(W, size + 1)
        order = np.take_along_axis(heaviest, np.argsort(-np.take_along_axis(W, heaviest, 1), axis=1, kind="stable"), 1)
        has_label = sparse.csr_matrix(Y.T)  # (L, m)
        best = np.full((len(W), Y.shape[0]), NO_LABEL, dtype=np.intp)
        for place in range(size + 1):
            contained = has_label[order[:, place]].toarray() > 0  # (b, m)
            best = np.where((best == NO_LABEL) & ~contained, order[:, place, None], best)
        return best

    def _changed_rows(self, best: Changes) -> Any:
        """Return the found sets as CSR rows."""
        return flip_labels(self.known[best.known[:, 0]], best.labels[:, 0])


def flip_labels(rows: Any, labels: Index) -> Any:
    """Return CSR rows (n, L) of sets with one label (n,) added if it is missing, and removed if not; −1 for none."""
    changed = np.flatnonzero(labels >= 0)
    flips = sparse.csr_matrix((np.ones(len(changed)), (changed, labels[changed])), shape=rows.shape)
    result = sparse.csr_matrix(rows + flips)
    result.data[result.data == 2] = 0
    result.eliminate_zeros()
    result.sort_indices()
    return result


def all_near_rows(rows: Any) -> Any:
    """Return known sets (n, L) and after them, set by set, those that differ by one label: CSR (n·(L + 1), L)."""
    n, L = rows.shape
    labels = np.tile(np.arange(L), n)
    return sparse.vstack([rows, flip_labels(rows[np.repeat(np.arange(n), L)], labels)], "csr")
