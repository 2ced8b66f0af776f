"""The nearest of the known label sets and of those that differ from one of them by one label.

With the weights w_s of :mod:`.size_weights`, a known set y of size s has the total Σ_{j∈y} w_s,j. With one more label
its best total is Σ_{j∈y} w_{s+1,j} + max_{j∉y} w_{s+1,j}, and the maximum is found among the s + 1 heaviest labels, at
least one of which is not in y. With one label less its best total is Σ_{j∈y} w_{s−1,j} − min_{j∈y} w_{s−1,j}. So the
n·(L + 1) sets are searched without making one of them: O(s) per query and known set, besides O(T·L) per query and size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, iter_slices, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.distances import first_smallest
from psilearn.decoding.label_sets.found_sets import FoundSets
from psilearn.decoding.label_sets.set_limits import SetLimits
from psilearn.decoding.label_sets.size_queries import SizeQueries
from psilearn.decoding.label_sets.size_weights import SizeWeights
from psilearn.decoding.label_sets.solver import iter_query_blocks
from psilearn.decoding.label_sets.top_sums import largest_columns

MAX_PAIRS = 2**21  # of queries and known sets that are compared together
NO_LABEL = -1


class Changes(NamedTuple):
    """For each query the nearest of some sets: a known set, and the label that is added to it or removed."""

    distances: Array  # (b, 1)
    known: Index  # (b, 1)
    labels: Index  # (b, 1); NO_LABEL for none


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
