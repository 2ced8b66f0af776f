"""Cross-validated searches whose grids are extended at each end at which a best setting lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from psilearn import IOKRCV, OELCV
from psilearn.kernels import Gaussian
from psilearn.model_selection.choice import best_row
from psilearn.model_selection.grids import find_edges, is_same_value
from psilearn_lab.experiments.widening import step_factor

Values: TypeAlias = dict[str, list[Any]]  # "gamma" of the input kernel, "alpha" and "n_components" → ascending values
RunSearch: TypeAlias = Callable[[Values], IOKRCV | OELCV]

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
        """Return the parameters of the best setting of a line."""
        rows = np.array([i for i, params in enumerate(self._params) if _matches(params, line.fixed)])
        scores = np.array(self._scores[line.scoring])
        return self._params[best_row({"params": self._params, "mean_test_score": scores}, "score", rows, False)]

    def edges(self, line: Line) -> list[str]:
        """Return a sentence for each number of the best setting of a line that is at an end of its grid."""
        grid: dict[str, list[Any]] = {name: values for name, values in self.values.items() if name != "gamma"}
        grid["input_kernel"] = [Gaussian(gamma) for gamma in self.values["gamma"]]
        return find_edges(grid, self.best(line), self.rank)

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
        if any(is_same_value(value, values[0]) for value in chosen):
            new += _extend(values[0], values[1], name, self.rank)
        if any(is_same_value(value, values[-1]) for value in chosen):
            new += _extend(values[-1], values[-2], name, self.rank)
        return sorted(new)


def _matches(params: Mapping[str, Any], fixed: Mapping[str, Sequence[Any]]) -> bool:
    return all(any(is_same_value(params[name], value) for value in values) for name, values in fixed.items())


def _value_of(params: Mapping[str, Any], name: str) -> Any:
    return params["input_kernel"].gamma if name == "gamma" else params[name]


def _extend(end: float, inner: float, name: str, rank: int) -> list[Any]:
    """Return the next values beyond the end of a grid, spaced like its last two values; p is from 1 to the rank."""
    values = [end * step_factor(end, inner) ** (i + 1) for i in range(N_NEW_VALUES)]
    if name != "n_components":
        return [float(f"{value:.6g}") for value in values]
    sizes = {min(max(round(value), 1), rank) for value in values}
    return sorted(size for size in sizes if (size > end) == (end > inner) and size != end)
