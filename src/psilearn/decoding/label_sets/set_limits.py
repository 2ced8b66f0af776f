"""Which label sets are allowed: their sizes, and groups of labels of which a set contains at most or exactly one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod
from numbers import Integral
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.label_rows import rows_of_labels

GROUP_RULES = ("at_most_one", "exactly_one")
MAX_LISTED_SETS = 2**16  # label sets that are listed if more than the nearest ones are needed
MAX_COUNT = 2**62  # larger numbers of sets are not computed


@dataclass(frozen=True)
class SetLimits:
    """The allowed sets of L labels.

    Every label belongs to one group; a free label is a group of its own. A set contains exactly one label of each
    *required* group and at most one of each *optional* group. Where the weights of labels add up, the best set of a
    given size takes the best label of each required group, and the best labels of the optional groups whose best
    labels weigh most.
    """

    n_labels: int
    min_size: int
    max_size: int
    required: tuple[Index, ...]  # the labels of each group
    optional: tuple[Index, ...] | None  # None: every label is free, and there is no required group

    @classmethod
    def of(cls, n_labels: int, min_size: int, max_size: int | None, groups: Any, group_rule: str) -> SetLimits:
        """Validate the limits for L labels."""
        required, optional = _split_groups(groups, group_rule, n_labels)
        most = n_labels if optional is None else len(required) + len(optional)
        smallest = max(_check_size(min_size, "min_labels"), len(required))
        largest = most if max_size is None else min(_check_size(max_size, "max_labels"), most)
        if smallest > largest:
            raise ValueError(
                f"No label set is allowed: sets have at least {smallest} labels (min_labels={min_size}, "
                f"{len(required)} required groups) and at most {largest} (max_labels={max_size}, {most} groups)."
            )
        return cls(n_labels, smallest, largest, required, optional)

    @property
    def n_required(self) -> int:
        """The number of groups of which every set contains one label."""
        return len(self.required)

    @property
    def n_optional(self) -> int:
        """The number of other groups."""
        return self.n_labels if self.optional is None else len(self.optional)

    @property
    def sizes(self) -> Index:
        """The allowed sizes, ascending."""
        return np.arange(self.min_size, self.max_size + 1)

    def reduce(self, W: Any) -> tuple[Any, Any]:
        """Return the total of the best weights of required groups (…), and the best weight of each optional group.

        ``W`` (…, L) are weights of labels. With groups they are arrays.
        """
        if self.optional is None:
            return 0.0, W
        best = [W[..., labels].max(axis=-1) for labels in self.required]
        total = np.sum(best, axis=0) if best else 0.0
        others = [W[..., labels].max(axis=-1) for labels in self.optional]
        return total, np.stack(others, axis=-1) if others else np.zeros((*W.shape[:-1], 0))

    def best_labels(self, w: Array, n_optional: int, slack: float) -> Index:
        """Return the labels of the best set with labels of n optional groups, ascending, for weights w (L,).

        Weights that differ by at most ``slack`` are tied, and the lowest label is taken.
        """
        best = [_best_of_group(w, labels, slack) for labels in self.required]
        others = np.sort([_best_of_group(w, labels, slack) for labels in self.optional or ()]).astype(np.intp)
        mask = heaviest_columns(w[others][None], np.array([n_optional]), np.array([[slack]]))[0]
        return np.sort(np.concatenate([np.array(best, dtype=np.intp), others[mask]]))

    def count(self) -> int:
        """Return the number of allowed sets, at most 2⁶²."""
        if self.optional is None:
            return self._count_free()
        counts = [0] * self.n_required + [prod(map(len, self.required))]  # of sets by size
        for labels in self.optional:
            larger = [0, *(len(labels) * count for count in counts)]
            counts = [min(a + b, MAX_COUNT) for a, b in zip([*counts, 0], larger, strict=True)][: self.max_size + 1]
        return min(sum(counts[self.min_size : self.max_size + 1]), MAX_COUNT)

    def _count_free(self) -> int:
        """Return the number of sets if there are no groups."""
        total = 0
        for size in range(self.min_size, self.max_size + 1):
            total += comb(self.n_labels, size)
            if total >= MAX_COUNT:
                return MAX_COUNT
        return total

    def iter_sets(self) -> Iterator[tuple[int, ...]]:
        """Yield all allowed sets as ascending labels, by size and then in the order of their labels."""
        optional = [(j,) for j in range(self.n_labels)] if self.optional is None else self.optional
        for size in self.sizes:
            choices = combinations(optional, int(size) - self.n_required)
            found = (tuple(sorted(labels)) for groups in choices for labels in product(*self.required, *groups))
            yield from found if self.optional is None else sorted(found)

    def list_sets(self) -> Any:
        """Return all allowed sets as CSR rows, in the order of :meth:`iter_sets`."""
        sets = list(self.iter_sets())
        labels = np.array([j for labels in sets for j in labels], dtype=np.intp)
        return rows_of_labels(labels, np.array([len(labels) for labels in sets], dtype=np.intp), self.n_labels)


def heaviest_columns(W: Array, n: Index, slack: Array) -> Any:
    """Return the mask of the n_i heaviest columns of each row of W (b, c).

    Columns whose weights differ from the n_i-th largest by at most ``slack`` (b, 1) are tied; the lowest of them are
    taken.
    """
    if not W.shape[1]:
        return np.zeros(W.shape, dtype=bool)
    ordered = np.sort(W, axis=1)
    border = np.take_along_axis(ordered, np.clip(W.shape[1] - n, 0, W.shape[1] - 1)[:, None], axis=1)
    above = (border + slack < W) & (n > 0)[:, None]
    tied = ~above & (border - slack <= W)
    free = (n - above.sum(axis=1))[:, None]
    return above | (tied & (np.cumsum(tied, axis=1) <= free))


def _best_of_group(w: Array, labels: Index, slack: float) -> int:
    """Return the lowest of the labels with the largest weight of a group, up to the slack."""
    return int(labels[np.argmax(w[labels] >= w[labels].max() - slack)])


def _check_size(value: object, name: str) -> int:
    """Return an integer ≥ 0 as an int."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise ValueError(f"{name} must be an integer ≥ 0; got {value!r}.")
    return int(value)


def _split_groups(groups: Any, rule: str, n_labels: int) -> tuple[tuple[Index, ...], tuple[Index, ...] | None]:
    """Return the labels of required and of optional groups."""
    if rule not in GROUP_RULES:
        raise ValueError(f"group_rule must be one of {', '.join(GROUP_RULES)}; got {rule!r}.")
    if groups is None:
        if rule != GROUP_RULES[0]:
            raise ValueError(f"group_rule={rule!r} needs label_groups, the group of each label.")
        return (), None
    numbers = np.asarray(groups)
    are_numbers = numbers.dtype.kind in "iu"
    if numbers.shape != (n_labels,) or not are_numbers or (numbers < -1).any():
        smallest = f", smallest {numbers.min()}" if are_numbers and numbers.size else ""
        raise ValueError(
            f"label_groups must be {n_labels} integers, the group of each label or −1 for a free label; got "
            f"shape {numbers.shape} of {numbers.dtype}{smallest}."
        )
    free = tuple(np.array([j]) for j in np.flatnonzero(numbers < 0))
    named = tuple(np.flatnonzero(numbers == group) for group in np.unique(numbers[numbers >= 0]))
    return (named, free) if rule == "exactly_one" else ((), named + free)
