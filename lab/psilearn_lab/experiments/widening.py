"""Grids that are widened around their best setting until all its neighbors are known to be worse.

A setting is a tuple of positions, one per parameter; the value of a parameter at a position is scale · base^position,
or the value of a list that continues beyond its ends. The same search tunes our methods and their competitors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np

from psilearn import IOKRCV, OELCV

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
    values: Sequence[float] = ()  # ascending; beyond both ends the axis continues, spaced like the two values there

    @classmethod
    def from_values(cls, name: str, values: Sequence[float], largest: float = float("inf")) -> Axis:
        """Return the axis of a list of values; those above the largest one are replaced by it."""
        ascending = sorted({min(value, largest) for value in values})
        return cls(name, range(len(ascending)), largest=largest, values=ascending)

    def value(self, position: int) -> Any:
        """Return the value at a position, an integer for numbers of components and neighbors."""
        values, is_count = self.values, self.name in COUNTS
        if not values:
            value = self.scale * BASES[self.name] ** position
            return round(value) if is_count else float(f"{value:.6g}")
        if 0 <= position < len(values):
            return values[position]
        end, inner = (values[0], values[1]) if position < 0 else (values[-1], values[-2])
        steps = -position if position < 0 else position - len(values) + 1
        value = end * step_factor(end, inner) ** steps
        return min(max(round(value), 1), self.largest) if is_count else float(f"{value:.6g}")

    def exists(self, position: int) -> bool:
        """Tell whether there is a value at a position; beyond a list, one that differs from the value before it."""
        if not self.values:
            return self.value(position) <= self.largest and (self.name not in COUNTS or position >= 0)
        if 0 <= position < len(self.values):
            return True
        previous = position + 1 if position < 0 else position - 1
        return bool(self.value(position) != self.value(previous) and self.value(position) <= self.largest)

    def neighbors(self, position: int) -> list[int]:
        """Return the position and those next to it."""
        if len(self.positions) == 1:
            return [position]
        return [p for p in (position - 1, position, position + 1) if self.exists(p)]


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


Values: TypeAlias = dict[str, list[Any]]  # "gamma" of the input kernel, "alpha" and "n_components" → ascending values
RunSearch: TypeAlias = Callable[[Values], IOKRCV | OELCV]

TIE = 1e-12  # relative difference of scores that counts as a tie
N_NEW_VALUES = 2  # by which an end of a grid is extended at a time


@dataclass(frozen=True)
class Line:
    """A line of a table: the score that chooses, and the values that a parameter may have."""

    scoring: str
    fixed: Mapping[str, Sequence[Any]]


@dataclass
class WidenedSearch:
    """The mean scores of all settings that were searched, and the best of them for each line of a table.

    ``run`` fits a search of all combinations of the given values; ``values`` are those that are searched first.
    Parameters with a single value are not extended.
    """

    run: RunSearch
    values: Values
    lines: Sequence[Line]
    max_rounds: int
    rank: int = 0  # the largest of the output kernels
    ranks: dict[str, int] = field(default_factory=dict)  # of each output kernel, by its repr
    _params: list[dict[str, Any]] = field(default_factory=list)
    _scores: dict[str, list[float]] = field(default_factory=dict)

    def fit(self) -> WidenedSearch:
        """Search the first values, then extend the grid until no best setting is at an end, or ``max_rounds`` times."""
        self._search(self.values)
        extendable = [name for name, values in self.values.items() if len(values) > 1]
        for _ in range(self.max_rounds):
            new = {name: self._new_values(name) for name in extendable}
            if not any(new.values()):
                break
            for name, values in new.items():
                if values:
                    self._search({**self.values, name: values})
                    self.values = {**self.values, name: sorted([*self.values[name], *values])}
        return self

    def best(self, line: Line) -> dict[str, Any]:
        """Return the parameters of the best setting of a line; of settings that tie, the simplest model."""
        scores = self._scores[line.scoring]
        rows = [i for i, params in enumerate(self._params) if _matches(params, line.fixed)]
        best = max(scores[i] for i in rows)
        good = [i for i in rows if scores[i] >= best - TIE * abs(best)]

        def complexity(i: int) -> tuple[float, float, float]:  # fewer components, then more ridge
            return self._params[i].get("n_components", 0), -self._params[i]["alpha"], -scores[i]

        return self._params[min(good, key=complexity)]

    def edges(self, line: Line) -> list[str]:
        """Return a sentence for each number of the best setting of a line that is at an end of its grid."""
        best, sentences = self.best(line), []
        for name in sorted(self.values, key=lambda name: name == "gamma"):
            values, value = self.values[name], _value_of(best, name)
            cannot_extend = name == "n_components" and not 1 < value < self.rank
            for end, word in ((values[0], "smallest"), (values[-1], "largest")):
                if len(values) > 1 and _is_same(value, end) and not cannot_extend:
                    label = "input_kernel__gamma" if name == "gamma" else name
                    sentences.append(f"{label} = {value:g} is the {word} of its grid")
        return sentences

    def _search(self, values: Values) -> None:
        search = self.run(values)
        kernels = search.grid_["output_kernel"]
        self.ranks = {repr(kernel): rank for kernel, rank in zip(kernels, search.ranks_, strict=True)}
        self.rank = max(search.ranks_)
        self._params += search.cv_results_["params"]
        for scoring in {line.scoring for line in self.lines}:
            self._scores.setdefault(scoring, []).extend(search.cv_results_[f"mean_test_{scoring}"])

    def _new_values(self, name: str) -> list[Any]:
        """Return values beyond the ends of a grid at which a best setting lies."""
        values = self.values[name]
        chosen = [_value_of(self.best(line), name) for line in self.lines]
        new = []
        if any(_is_same(value, values[0]) for value in chosen):
            new += _extend(values[0], values[1], name, self.rank)
        if any(_is_same(value, values[-1]) for value in chosen):
            new += _extend(values[-1], values[-2], name, self.rank)
        return sorted(new)


def _matches(params: Mapping[str, Any], fixed: Mapping[str, Sequence[Any]]) -> bool:
    return all(any(_is_same(params[name], value) for value in values) for name, values in fixed.items())


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two values of a grid are equal: numbers up to rounding, kernels by class and parameters."""
    return bool(np.isclose(a, b, rtol=1e-9, atol=0)) if isinstance(a, int | float) else repr(a) == repr(b)


def _value_of(params: Mapping[str, Any], name: str) -> Any:
    return params["input_kernel"].gamma if name == "gamma" else params[name]


def _extend(end: float, inner: float, name: str, rank: int) -> list[Any]:
    """Return the next values beyond the end of a grid, spaced like its last two values; p is from 1 to the rank."""
    values = [end * step_factor(end, inner) ** (i + 1) for i in range(N_NEW_VALUES)]
    if name != "n_components":
        return [float(f"{value:.6g}") for value in values]
    sizes = {min(max(round(value), 1), rank) for value in values}
    return sorted(size for size in sizes if (size > end) == (end > inner) and size != end)
