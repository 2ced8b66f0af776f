"""The table of results of a search, and the best of all settings or of some of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.model_selection.grids import as_list, is_same_value

TIE = 1e-12  # relative difference of mean scores that counts as a tie


@dataclass(frozen=True)
class Choice:
    """The best setting among all or some of the settings of a search.

    Parameters
    ----------
    params : dict
        The parameters of the setting, as in ``best_params_``.
    score : float
        The mean score of the setting.
    index : int
        The row of the setting in ``cv_results_``.
    edges : list of str
        Descriptions of the parameters whose best value is the first or the last of its grid, as in ``edges_``.

    See Also
    --------
    psilearn.OELCV.best_where : Returns a choice.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import IOKRCV
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> search = IOKRCV(Gaussian(5.0), Gaussian(1.0), alphas=[1e-6, 1e-4, 1e-2], cv=3).fit(X, np.hstack([X, X**2]))
    >>> search.best_where(alpha=[1e-4, 1e-2]).params["alpha"]
    0.0001
    """

    params: dict[str, Any]
    score: float
    index: int
    edges: list[str]


def results_table(grid: dict[str, list[Any]], scores: dict[str, Array]) -> dict[str, Any]:
    """Return ``cv_results_`` of named scores (settings, splits), settings in the order of ``itertools.product``."""
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    results: dict[str, Any] = {"params": settings}
    results |= {f"param_{name}": _as_column([setting[name] for setting in settings]) for name in grid}
    for name, table in scores.items():
        mean = table.mean(axis=1)
        if not np.isfinite(mean).all():
            setting = settings[int(np.argmin(np.isfinite(mean)))]
            raise ValueError(f"The {name} is not finite for the setting {setting}.")
        results |= {f"split{j}_test_{name}": table[:, j] for j in range(table.shape[1])}
        results |= {
            f"mean_test_{name}": mean,
            f"std_test_{name}": table.std(axis=1),
            f"rank_test_{name}": np.unique(-mean, return_inverse=True)[1].ravel() + 1,
        }
    return results


def _as_column(values: list[Any]) -> Array:
    """Return an array of numbers, or of objects."""
    if isinstance(values[0], int | float):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def best_row(results: dict[str, Any], score: str, rows: Index, one_standard_error: bool) -> int:
    """Return the best of these rows; of rows that tie, or are within one standard error, the simplest model."""
    params, mean = results["params"], results[f"mean_test_{score}"]
    best = rows[np.argmax(mean[rows])]
    slack = TIE * abs(mean[best])
    if one_standard_error:
        splits = split_scores(results, score)[best]
        slack = np.std(splits, ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else 0.0
    good = rows[mean[rows] >= mean[best] - slack]
    # simpler: fewer components, then more ridge, then the better score
    return int(min(good, key=lambda i: (params[i].get("n_components", 0), -params[i]["alpha"], -mean[i])))


def split_scores(results: dict[str, Any], score: str = "score") -> Array:
    """Return the scores of every setting on every split, of shape (settings, splits)."""
    pattern = re.compile(rf"split\d+_test_{re.escape(score)}")
    return np.column_stack([values for name, values in results.items() if pattern.fullmatch(name)])


def rows_where(grid: dict[str, list[Any]], fixed: dict[str, Any]) -> Index:
    """Return the rows of ``cv_results_`` that have the given values; a list stands for any of its values."""
    for name in fixed:
        if name not in grid:
            raise ValueError(f"{name} is not a parameter of this search; its parameters are {', '.join(grid)}.")
    allowed = []  # for each axis of the grid, the allowed positions along it
    for name, values in grid.items():
        wanted = as_list(fixed[name], name) if name in fixed else values
        for value in wanted:
            if not any(is_same_value(value, other) for other in values):
                raise ValueError(f"{name} = {value!r} was not searched; its grid is {values!r}.")
        allowed.append([i for i, value in enumerate(values) if any(is_same_value(value, other) for other in wanted)])
    shape = tuple(len(values) for values in grid.values())
    return np.ravel_multi_index(np.ix_(*allowed), shape).ravel()
