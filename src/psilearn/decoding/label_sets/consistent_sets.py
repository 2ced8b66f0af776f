"""All label sets that contain the parents of their labels as candidates; in a tree the nearest one is found exactly.

For a fixed size the score of a set is linear in it (:mod:`.all_label_sets`), so the nearest consistent set of this size
is the heaviest one, which :class:`Preorder` finds; the nearest of all is found by trying every size that bounds do not
exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Self

import numpy as np

from psilearn._backend import Compute, iter_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples
from psilearn.decoding.distances import first_smallest
from psilearn.decoding.label_sets.label_rows import FoundSets, rows_of_labels
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.decoding.label_sets.set_limits import MAX_COUNT, MAX_LISTED_SETS, SetLimits
from psilearn.decoding.label_sets.size_search import SIZES_AT_ONCE, RangeBounds, visit_ranges
from psilearn.decoding.label_sets.size_weights import SizeForm, SizeQueries, SizeWeights, find_size_form
from psilearn.decoding.label_sets.solver import iter_query_blocks
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, HierarchicalDice, Hierarchy


class ConsistentLabelSets(ListableLabelSets):
    """All label sets that contain the parents of their labels: ``model.predict(X, candidates="all")``.

    If the hierarchy is a tree, or several trees, the nearest set is found exactly with the output kernels
    :class:`~psilearn.kernels.HierarchicalDice` and those of :func:`has_all_label_sets`, in O(L s) operations per query
    and size s. For everything else, such as the k nearest sets, conformal sets, and hierarchies in which a label has
    several parents, the sets are listed, up to 65,536 of them; if there are more, give candidates.

    A tie of sizes goes to the smallest set; among sets of one size any of those that tie may be returned.

    Parameters
    ----------
    embedding : Embedding, default=None
        The embedding of a model. None until the sets are passed to a method of a model.
    known : array or CSR matrix of shape (n, L), default=None
        Some label sets, in the form in which predictions are returned.
    hierarchy : Hierarchy, default=None
        The parents of the labels. None stands for the hierarchy of the output kernel.
    min_labels : int, default=0
        The smallest number of labels of a set, with ancestors. 1 excludes the empty set.
    max_labels : int, default=None
        The largest number of labels of a set, with ancestors. None stands for L.

    See Also
    --------
    AllLabelSets : All label sets, without a hierarchy.
    psilearn.kernels.Hierarchy : Labels in a tree or in an acyclic graph.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import ConsistentLabelSets
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import HierarchicalDice, Hierarchy
    >>> kernel = HierarchicalDice(Hierarchy([-1, 0, 0, 1]))
    >>> known = np.array([[1, 1, 0, 1], [1, 0, 1, 0]])
    >>> sets = ConsistentLabelSets(Embedding(kernel, known, np.eye(2)), known)
    >>> sets.nearest(np.array([[0.5, 0.5]]), k=1).nearest
    array([[1, 1, 1, 1]])
    >>> sets.max_size
    7
    """

    n_labels = None

    def __init__(
        self,
        embedding: Embedding | None = None,
        known: Samples | None = None,
        *,
        hierarchy: Hierarchy | None = None,
        min_labels: int = 0,
        max_labels: int | None = None,
    ) -> None:
        self.embedding = embedding
        self.known = known
        self.hierarchy = hierarchy
        self.min_labels = min_labels
        self.max_labels = max_labels

    def __repr__(self) -> str:
        if self.known is None and self.embedding is None:
            return f"ConsistentLabelSets(min_labels={self.min_labels}, max_labels={self.max_labels})"
        count = self._max_size()
        number = f"{count:,}" if count < MAX_COUNT else f"more than {MAX_LISTED_SETS:,}"
        return f"ConsistentLabelSets({number} sets of {self._n_labels} labels)"

    @cached_property
    def landmark_rows(self) -> Any:
        """The landmarks of the embedding as CSR rows (r, L) of zeros and ones, as the kernel compares them."""
        rows = self._to_rows(self._known_embedding().landmarks)
        return self._hierarchy.close(rows) if self._closes_sets else rows

    @property
    def _closes_sets(self) -> bool:
        """Whether the kernel compares sets with their ancestors."""
        return self.embedding is not None and type(self.embedding.kernel) is HierarchicalDice

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        """The validated hierarchy."""
        kernel = None if self.embedding is None else self.embedding.kernel
        own = getattr(kernel, "hierarchy", None)
        hierarchy = own if self.hierarchy is None else self.hierarchy
        if not isinstance(hierarchy, Hierarchy):
            raise TypeError(
                f"ConsistentLabelSets needs hierarchy, a psilearn.kernels.Hierarchy, or the output kernel "
                f"HierarchicalDice; got hierarchy={hierarchy!r:.80} and the kernel {kernel!r}."
            )
        if own is not None and own != hierarchy:
            raise ValueError("hierarchy of ConsistentLabelSets is not the hierarchy of the output kernel.")
        if hierarchy.n_labels != self._n_labels:
            raise ValueError(
                f"hierarchy has {hierarchy.n_labels} labels, but the outputs of the model have {self._n_labels}."
            )
        return hierarchy

    @cached_property
    def _limits(self) -> SetLimits:
        return SetLimits.of(self._hierarchy.n_labels, self.min_labels, self.max_labels, None, "at_most_one")

    @cached_property
    def _preorder(self) -> Preorder:
        return Preorder.of(self._hierarchy)

    @property
    def _form(self) -> SizeForm | None:
        """The form of the kernel on consistent sets."""
        return find_size_form(Dice() if self._closes_sets else self._known_embedding().kernel)

    def _copy(self, embedding: Embedding | None, known: Samples) -> Self:
        limits = {"min_labels": self.min_labels, "max_labels": self.max_labels}
        return type(self)(embedding, known, hierarchy=self.hierarchy, **limits)  # type: ignore[arg-type]

    def _max_size(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        """The number of sets, exact if they can be listed."""
        if self._hierarchy.is_tree:
            return self._preorder.count_sets(self._limits.min_size, self._limits.max_size, MAX_COUNT)
        count = sum(1 for _ in islice(self._iter_sets(), MAX_LISTED_SETS + 1))
        return count if count <= MAX_LISTED_SETS else MAX_COUNT

    def _max_listed(self) -> int:
        return MAX_LISTED_SETS

    def _advice(self) -> str:
        if not self._hierarchy.is_tree:
            label = next(j for j, parents in enumerate(self._hierarchy.parents) if len(parents) > 1)
            return f"the nearest set is found in a tree only, but label {label} has several parents."
        if not self._has_solver(1):
            return f"the nearest set is found with HierarchicalDice, Dice and Linear, but not with {self._kernel_name}."
        return 'candidates="known" are the known sets, and max_labels of ConsistentLabelSets limits the sizes.'

    @property
    def _kernel_name(self) -> str:
        return repr(None if self.embedding is None else self.embedding.kernel)

    def _iter_sets(self) -> Iterator[tuple[int, ...]]:
        """Yield all consistent sets of allowed sizes; parents come before children.

        ``possible`` are the chosen labels and those that may follow. It never has fewer labels than a set must have, so
        that no branch of the search ends without a set.
        """
        order, subtrees = self._hierarchy._order.tolist(), self._subtrees
        stack = [(0, frozenset[int](), frozenset(order))]
        while stack:
            place, chosen, possible = stack.pop()
            if place == len(order):
                yield tuple(sorted(chosen))
                continue
            label = order[place]
            if len(chosen) < self._limits.max_size and label in possible:
                stack.append((place + 1, chosen | {label}, possible))
            rest = possible - subtrees[label] if label in possible else possible
            if len(rest) >= self._limits.min_size:
                stack.append((place + 1, chosen, rest))

    @cached_property
    def _subtrees(self) -> list[frozenset[int]]:
        """Each label with all its descendants."""
        columns = self._hierarchy.ancestors.tocsc()
        return [frozenset(labels.tolist()) for labels in np.split(columns.indices, columns.indptr[1:-1])]

    def _list_rows(self) -> Any:
        sets = sorted(self._iter_sets(), key=lambda labels: (len(labels), labels))
        labels = np.array([j for labels in sets for j in labels], dtype=np.intp)
        return rows_of_labels(labels, np.array([len(labels) for labels in sets], dtype=np.intp), self._n_labels)

    def _has_solver(self, k: int) -> bool:
        return k == 1 and self.embedding is not None and self._hierarchy.is_tree and self._form is not None

    def _solve(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        form = self._form
        assert form is not None
        weights = SizeWeights(form, self.landmark_rows)
        blocks = iter_query_blocks(weights, self._limits, Z, basis, compute.on_numpy())
        return FoundSets.join([self._select(queries) for queries in blocks], k, self._n_labels)

    def _select(self, queries: SizeQueries) -> FoundSets:
        """Return the nearest consistent set of each query."""
        sizes = self._limits.sizes
        D = self._best_of_sizes(queries)
        columns, least = first_smallest(D, queries.slack(sizes))
        chosen = sizes[columns[:, 0]]
        mask = self._preorder.best_sets(queries.weights.weights_of_each(queries.vectors, chosen), chosen)
        return FoundSets(rows_of_labels(np.nonzero(mask)[1], chosen, self._n_labels), least)

    def _best_of_sizes(self, queries: SizeQueries) -> Array:
        """Return the distance of the nearest consistent set of each size, (b, S); ∞ for sizes that bounds exclude."""
        sizes = self._limits.sizes
        if queries.weights.form.separable:
            sums = self._preorder.best_sums(queries.vectors[0], int(sizes[-1]))
            return queries.distances(sums[:, sizes] * queries.weights.coefficients(sizes)[:, 0], sizes)
        return visit_ranges(queries, 1, self._visit, self._preorder.best_totals)

    def _visit(
        self, bounds: RangeBounds, queries: SizeQueries, rows: Index, sizes: Index, k: int
    ) -> tuple[Array, Array]:
        """Return the distance of the nearest set of each size, (b, S), and the smallest of them, for some queries."""
        queries = queries.take(rows)
        D = np.full((len(queries), len(sizes)), np.inf)
        slack = queries.slack(sizes)
        for first in range(0, len(sizes), SIZES_AT_ONCE):
            part = slice(first, min(first + SIZES_AT_ONCE, len(sizes)))
            W = queries.weights.weights(queries.vectors, sizes[part])
            lowest = queries.distances(self._preorder.best_totals(W).T, sizes[part])  # of sets of any size
            open_rows = np.flatnonzero((lowest - slack[:, part] <= D.min(axis=1, keepdims=True)).any(axis=1))
            if not len(open_rows):
                continue
            sums = self._preorder.best_sums(W[:, open_rows], int(sizes[part][-1]))
            scores = sums[np.arange(len(sizes[part])), :, sizes[part]].T
            D[open_rows, part] = queries.take(open_rows).distances(scores, sizes[part])
        return D, D.min(axis=1)


# The best set of each size among those that contain the parents of their labels, by dynamic programming.
#
# Let the labels of a forest be numbered in preorder, and let n(j) be the first label after the subtree of j. Consider
# all sets of k labels out of j, …, L − 1 that contain the parents of their labels, where the ancestors of j are given.
# The heaviest one either contains j, and continues with j + 1, or contains no label of the subtree of j, and continues
# with n(j):
#
#     D_j(k) = max(w_j + D_{j+1}(k − 1), D_{n(j)}(k)),    D_L(0) = 0.
#
# So all sizes up to K cost O(L K) operations per row of weights.
@dataclass(frozen=True)
class Preorder:
    """The labels of a forest, parents before children and subtrees without gaps."""

    labels: Index  # (L,)
    after: Index  # (L,)  the place after the subtree of the label at each place

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Self:
        """Return the order in which roots and children ascend."""
        children: list[list[int]] = [[] for _ in range(hierarchy.n_labels)]
        for label, parents in enumerate(hierarchy.parents):
            for parent in parents:
                children[parent].append(label)
        stack = [label for label in reversed(range(hierarchy.n_labels)) if not hierarchy.parents[label]]
        labels: list[int] = []
        while stack:
            labels.append(stack.pop())
            stack += reversed(children[labels[-1]])
        sizes = np.ones(hierarchy.n_labels, dtype=np.intp)
        for label in reversed(labels):
            for parent in hierarchy.parents[label]:
                sizes[parent] += sizes[label]
        order = np.array(labels, dtype=np.intp)
        return cls(order, np.arange(len(order)) + sizes[order])

    def best_sums(self, W: Array, largest: int) -> Array:
        """Return the largest total weight of sets of 0, …, ``largest`` labels, (…, largest + 1), for weights (…, L).

        Memory: as many arrays of the size of the result as the forest has levels.
        """
        W = W[..., self.labels]
        return self._sweep(
            _only_empty(W.shape[:-1], largest),
            lambda place, rest, skipped: _with_or_without(W[..., place], rest, skipped),
        )

    def best_totals(self, W: Array) -> Array:
        """Return the largest total weight of a set of any size, (…), for weights (…, L); the empty set has 0."""
        W = np.moveaxis(W[..., self.labels], -1, 0)
        return self._sweep(np.zeros(W.shape[1:]), lambda place, rest, skipped: np.maximum(W[place] + rest, skipped))

    def best_sets(self, W: Array, sizes: Index) -> Any:
        """Return the mask (b, L) of a heaviest set with sizes[i] labels for each row of weights W (b, L)."""
        masks = np.zeros(W.shape, dtype=bool)
        largest = int(sizes.max(initial=0))
        for rows in iter_blocks(len(W), 8 * (len(self.after) + 2) * (largest + 1)):
            masks[rows][:, self.labels] = self._trace(W[rows][:, self.labels], sizes[rows], largest)
        return masks

    def _trace(self, W: Array, sizes: Index, largest: int) -> Any:
        """Return the mask of :meth:`best_sets` with columns in preorder."""
        n_places, rows = len(self.after), np.arange(len(W))
        sums = [_only_empty(W.shape[:-1], largest)] * (n_places + 1)
        for place in reversed(range(n_places)):
            sums[place] = _with_or_without(W[:, place], sums[place + 1], sums[self.after[place]])
        mask = np.zeros(W.shape, dtype=bool)
        at, left = np.zeros(len(W), dtype=np.intp), sizes.copy()
        for place in range(n_places):
            open_rows = rows[(at == place) & (left > 0)]
            taken = W[open_rows, place] + sums[place + 1][open_rows, left[open_rows] - 1]
            takes = taken >= sums[self.after[place]][open_rows, left[open_rows]]
            mask[open_rows, place] = takes
            at[open_rows] = np.where(takes, place + 1, self.after[place])
            left[open_rows] -= takes
        return mask

    def count_sets(self, smallest: int, largest: int, most: int) -> int:
        """Return the number of sets with ``smallest`` to ``largest`` labels, or ``most`` if there are more."""

        def add(place: int, rest: Array, skipped: Array) -> Array:
            counts = skipped.copy()
            counts[1:] += rest[:-1]
            return np.minimum(counts, most)

        counts = self._sweep(np.eye(1, largest + 1)[0], add)  # exact below 2⁵³
        return int(min(counts[smallest:].sum(), most))

    def _sweep(self, start: Array, step: Callable[[int, Array, Array], Array]) -> Array:
        """Return D₀ of D_j = step(j, D_{j+1}, D_{n(j)}) with D_L = start, in the memory of as many arrays as levels."""
        first_use = _first_uses(self.after)
        kept = {len(self.after): start}
        for place in reversed(range(len(self.after))):
            after = int(self.after[place])
            kept[place] = step(place, kept[place + 1], kept[after])
            for used in {place + 1, after}:
                if first_use[used] == place:
                    del kept[used]
        return kept[0]


def _only_empty(shape: tuple[int, ...], largest: int) -> Array:
    """Return the totals if no label is left: 0 for the empty set, and −∞ for all other sizes."""
    sums = np.full((*shape, largest + 1), -np.inf)
    sums[..., 0] = 0
    return sums


def _with_or_without(w: Array, rest: Array, skipped: Array) -> Array:
    """Return max(w + rest(k − 1), skipped(k)) for all k."""
    sums = skipped.copy()
    np.maximum(sums[..., 1:], rest[..., :-1] + w[..., None], out=sums[..., 1:])
    return sums


def _first_uses(after: Index) -> Index:
    """Return the first place whose totals depend on the totals of each place; L + 1 entries."""
    uses = np.arange(-1, len(after))
    np.minimum.at(uses, after, np.arange(len(after)))
    return uses
