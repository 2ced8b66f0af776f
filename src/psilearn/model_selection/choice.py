"""Which setting is the best, of all or of some, and at which edges of the grid it lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import isclose
from numbers import Real
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils.hashing import content_hash
from psilearn._utils.samples import Index
from psilearn.kernels import Kernel
from psilearn.model_selection import grids


@dataclass(frozen=True)
class Choice:
    """The best of some settings of a search.

    Attributes
    ----------
    params : dict
        the parameters, as in ``best_params_``.
    score : float
        their mean score.
    index : int
        their row of ``cv_results_``.
    edges : list of str
        where the best may lie beyond the grid, in words, as in ``edges_``.
    """

    params: dict[str, Any]
    score: float
    index: int
    edges: list[str]


def results_table(grid: dict[str, list[Any]], scores: dict[str, Array]) -> dict[str, Any]:
    """Return ``cv_results_`` of named scores (settings, splits), settings in the order of ``itertools.product``."""
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    results: dict[str, Any] = {"params": settings}
    results |= {f"param_{name}": _column([setting[name] for setting in settings]) for name in grid}
    for name, table in scores.items():
        mean = table.mean(axis=1)
        if not np.isfinite(mean).all():
            at = settings[int(np.argmin(np.isfinite(mean)))]
            raise ValueError(f"The {name} is not finite for the setting {at}.")
        results |= {f"split{j}_test_{name}": table[:, j] for j in range(table.shape[1])}
        results |= {
            f"mean_test_{name}": mean,
            f"std_test_{name}": table.std(axis=1),
            f"rank_test_{name}": np.unique(-mean, return_inverse=True)[1].ravel() + 1,
        }
    return results


def _column(values: list[Any]) -> Any:
    """Return an array of numbers, or of objects where they are none."""
    if isinstance(values[0], int | float):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def best_row(results: dict[str, Any], score: str, rows: Index, one_standard_error: bool) -> int:
    """Return the best of these rows; a tie, or what is within one standard error, goes to the simplest model."""
    params, mean = results["params"], results[f"mean_test_{score}"]
    best = rows[np.argmax(mean[rows])]
    slack = 1e-12 * abs(mean[best])
    if one_standard_error:
        splits = split_scores(results, score)[best]
        slack = np.std(splits, ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else 0.0
    good = rows[mean[rows] >= mean[best] - slack]
    # simpler: fewer components, then more ridge, then the better score
    return int(min(good, key=lambda i: (params[i].get("n_components", 0), -params[i]["alpha"], -mean[i])))


def split_scores(results: dict[str, Any], score: str = "score") -> Array:
    """Return the scores of every setting on every split, shape (settings, splits)."""
    wanted = re.compile(rf"split\d+_test_{re.escape(score)}")
    return np.column_stack([values for name, values in results.items() if wanted.fullmatch(name)])


def rows_where(grid: dict[str, list[Any]], fixed: dict[str, Any]) -> Index:
    """Return the rows of ``cv_results_`` that have these values; a list means any of them."""
    for name in fixed:
        if name not in grid:
            raise ValueError(f"{name} is no parameter of this search; it has {', '.join(grid)}.")
    places = []  # for each axis of the grid, the allowed positions along it
    for name, values in grid.items():
        wanted = grids.as_list(fixed[name], name) if name in fixed else values
        for value in wanted:
            if not any(same_value(value, other) for other in values):
                raise ValueError(f"{name} = {value!r} was not searched; its grid is {values!r}.")
        places.append([i for i, value in enumerate(values) if any(same_value(value, other) for other in wanted)])
    shape = tuple(len(values) for values in grid.values())
    return np.ravel_multi_index(np.ix_(*places), shape).ravel()


def same_value(a: Any, b: Any) -> bool:
    """Return whether two values of a grid are the same: numbers but for rounding, kernels by kind and parameters."""
    if a is b:
        return True
    if isinstance(a, Real) and isinstance(b, Real):
        return isclose(a, b, rel_tol=1e-9)
    if type(a) is not type(b):
        return False
    if isinstance(a, Kernel):
        ours, theirs = a.get_params(deep=False), b.get_params(deep=False)
        return all(same_value(value, theirs[name]) for name, value in ours.items())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    if hasattr(a, "shape"):  # a matrix that a kernel holds
        return content_hash(a) == content_hash(b)
    return bool(a == b)
