"""Grids that are widened around their best setting until all its neighbors are known to be worse.

A setting is a tuple of positions, one per parameter; the value of a parameter at a position is scale · base^position,
or the value of a list that continues beyond its ends. The same search tunes our methods and their competitors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias, TypeVar

Setting: TypeAlias = tuple[int, ...]
Block: TypeAlias = dict[str, list[int]]  # name of a parameter → positions; stands for all combinations
Scores: TypeAlias = dict[Setting, float]  # higher is better
Evaluate: TypeAlias = Callable[[Block], Scores]
Variant = TypeVar("Variant")  # options without an order, such as the scaling of the inputs

BASES = {"gamma": 2.0, "output_gamma": 2.0, "alpha": 10**0.5, "C": 10**0.5, "n_components": 2.0, "n_neighbors": 2.0}
COUNTS = ("n_components", "n_neighbors", "energy_hidden")
FRACTIONS = ("missing", "spurious", "dropout")  # below 1
MIN_FACTOR = 2**0.5  # between the end of a list and the next value beyond it


@dataclass(frozen=True)
class Axis:
    """A parameter, the positions that are searched first, and the largest value that exists.

    A parameter with a single first position is not widened.
    """

    name: str
    positions: Sequence[int]
    scale: float = 1.0
    largest: float = float("inf")

    def value(self, position: int) -> Any:
        """Return the value at a position, an integer for numbers of components and neighbors."""
        value = self.scale * BASES[self.name] ** position
        return round(value) if self.name in COUNTS else float(f"{value:.6g}")

    def exists(self, position: int) -> bool:
        """Tell whether there is a value at a position."""
        return self.value(position) <= self.largest and (self.name not in COUNTS or position >= 0)

    def neighbors(self, position: int) -> list[int]:
        """Return the position and those next to it."""
        if len(self.positions) == 1:
            return [position]
        return [p for p in (position - 1, position, position + 1) if self.exists(p)]


@dataclass(frozen=True)
class ListedAxis(Axis):
    """A parameter with a list of first values, which continues beyond both ends, spaced like the two values there.

    Counts end at 1 and at the largest value that exists, other numbers at 0 and at the last value up to the largest.
    """

    values: Sequence[float] = ()  # ascending

    @classmethod
    def from_values(cls, name: str, values: Sequence[float], largest: float = float("inf")) -> ListedAxis:
        """Return the axis of a list of values; those above the largest one are replaced by it."""
        ascending = sorted({min(value, largest) for value in values})
        return cls(name, range(len(ascending)), largest=largest, values=ascending)

    def value(self, position: int) -> Any:
        """Return the value at a position, where 0 is the first value of the list."""
        if 0 <= position < len(self.values):
            return self.values[position]
        end, inner = (self.values[0], self.values[1]) if position < 0 else (self.values[-1], self.values[-2])
        steps = -position if position < 0 else position - len(self.values) + 1
        value = end * step_factor(end, inner) ** steps
        return min(max(round(value), 1), self.largest) if self.name in COUNTS else float(f"{value:.6g}")

    def exists(self, position: int) -> bool:
        """Tell whether there is a value at a position that differs from the one before it."""
        if 0 <= position < len(self.values):
            return True
        previous = position + 1 if position < 0 else position - 1
        return bool(self.value(position) != self.value(previous) and self.value(position) <= self.largest)


@dataclass(frozen=True)
class Best:
    """The best known setting, and whether all its neighbors are known to be no better."""

    setting: Setting
    score: float
    is_interior: bool


def first_block(axes: Sequence[Axis]) -> Block:
    """Return the settings that are searched first."""
    return {axis.name: [p for p in axis.positions if axis.exists(p)] or [0] for axis in axes}


def widen(axes: Sequence[Axis], scores: Scores, evaluate: Evaluate, max_rounds: int) -> Best:
    """Evaluate the missing neighbors of the best setting until there are none, or ``max_rounds`` times.

    ``scores`` are those of the first block; further ones are added to it.
    """
    for round_ in range(max_rounds + 1):
        setting = max(scores, key=lambda key: scores[key])
        block = _missing_neighbors(axes, setting, scores)
        if not block or round_ == max_rounds:
            break
        scores.update(evaluate(block))
    return Best(setting, scores[setting], not block)


def widen_best_variant(
    axes: Sequence[Axis],
    variants: Sequence[Variant],
    evaluate: Callable[[Variant, Block, Scores], Scores],
    max_rounds: int,
) -> tuple[Variant, Best, Scores]:
    """Choose a variant by the first block, and widen the grid of that variant.

    ``evaluate`` takes a variant, a block and the scores that are known. The variant, its best setting and its scores
    are returned.
    """
    tables = [evaluate(variant, first_block(axes), {}) for variant in variants]
    i = max(range(len(variants)), key=lambda i: max(tables[i].values()))
    best = widen(axes, tables[i], lambda block: evaluate(variants[i], block, tables[i]), max_rounds)
    return variants[i], best, tables[i]


def step_factor(end: float, inner: float) -> float:
    """Return the factor by which a list continues beyond its end, whose neighbor in the list is ``inner``."""
    if end < inner:
        return min(end / inner, 1 / MIN_FACTOR)
    return max(end / inner, MIN_FACTOR) if inner > 0 else MIN_FACTOR


def values_of(axes: Sequence[Axis], setting: Setting) -> dict[str, Any]:
    """Return the values of the parameters of a setting."""
    return {axis.name: axis.value(position) for axis, position in zip(axes, setting, strict=True)}


def edge_sentence(axes: Sequence[Axis], best: Best) -> list[str]:
    """Return a sentence if the widening ended before the best setting was in the interior of the searched values."""
    if best.is_interior:
        return []
    values = ", ".join(f"{name} = {value:g}" for name, value in values_of(axes, best.setting).items())
    return [f"the grid was widened as often as allowed, and {values} still has neighbors that were not searched"]


def find_ends(axes: Sequence[Axis], best: Best, scores: Scores) -> list[str]:
    """Return a sentence for each number of the best setting at an end of the searched values, and one if others remain.

    Parameters with a single first value have no ends.
    """
    sentences = []
    for i, axis in enumerate(axes):
        position, searched = best.setting[i], {setting[i] for setting in scores}
        for end, side, beyond in ((min(searched), "smallest", -1), (max(searched), "largest", 1)):
            if len(axis.positions) > 1 and position == end:
                kind = "of its grid" if axis.exists(position + beyond) else "that exists"
                sentences.append(f"{axis.name} = {axis.value(position):g} is the {side} {kind}.")
    return sentences if best.is_interior or sentences else [f"{text}." for text in edge_sentence(axes, best)]


def _missing_neighbors(axes: Sequence[Axis], setting: Setting, scores: Scores) -> Block:
    """Return a block with all neighbors of a setting that have no score; without those that need no further search."""
    neighbors = [axis.neighbors(position) for axis, position in zip(axes, setting, strict=True)]
    missing = [key for key in product(*neighbors) if key not in scores]
    return {axis.name: sorted({key[i] for key in missing}) for i, axis in enumerate(axes)} if missing else {}
