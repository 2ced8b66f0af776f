"""Grids that are widened around their best setting until all its neighbors are known to be worse.

A setting is a tuple of positions, one per parameter; the value of a parameter at a position is scale · base^position.
The same search tunes our methods and their competitors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

Setting: TypeAlias = tuple[int, ...]
Block: TypeAlias = dict[str, list[int]]  # name of a parameter → positions; stands for all combinations
Scores: TypeAlias = dict[Setting, float]  # higher is better
Evaluate: TypeAlias = Callable[[Block], Scores]

BASES = {"gamma": 2.0, "output_gamma": 2.0, "alpha": 10**0.5, "C": 10**0.5, "n_components": 2.0, "n_neighbors": 2.0}
COUNTS = ("n_components", "n_neighbors")


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


def values_of(axes: Sequence[Axis], setting: Setting) -> dict[str, Any]:
    """Return the values of the parameters of a setting."""
    return {axis.name: axis.value(position) for axis, position in zip(axes, setting, strict=True)}


def edge_sentence(axes: Sequence[Axis], best: Best) -> list[str]:
    """Return a sentence if the widening ended before the best setting was in the interior of the searched values."""
    if best.is_interior:
        return []
    values = ", ".join(f"{name} = {value:g}" for name, value in values_of(axes, best.setting).items())
    return [f"the grid was widened as often as allowed, and {values} still has neighbors that were not searched"]


def _missing_neighbors(axes: Sequence[Axis], setting: Setting, scores: Scores) -> Block:
    """Return a block with all neighbors of a setting that have no score; without those that need no further search."""
    neighbors = [axis.neighbors(position) for axis, position in zip(axes, setting, strict=True)]
    missing = [key for key in product(*neighbors) if key not in scores]
    return {axis.name: sorted({key[i] for key in missing}) for i, axis in enumerate(axes)} if missing else {}
