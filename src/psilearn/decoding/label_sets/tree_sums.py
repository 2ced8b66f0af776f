"""The best set of each size among those that contain the parents of their labels, by dynamic programming.

Let the labels of a forest be numbered in preorder, and let n(j) be the first label after the subtree of j. Consider
all sets of k labels out of j, …, L − 1 that contain the parents of their labels, where the ancestors of j are given.
The heaviest one either contains j, and continues with j + 1, or contains no label of the subtree of j, and continues
with n(j):

    D_j(k) = max(w_j + D_{j+1}(k − 1), D_{n(j)}(k)),    D_L(0) = 0.

So all sizes up to K cost O(L K) operations per row of weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from psilearn._backend import iter_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.kernels import Hierarchy


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
