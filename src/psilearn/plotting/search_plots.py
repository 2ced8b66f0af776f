"""Validation scores of a search over its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psilearn._linalg import Array
from psilearn.model_selection.choice import rows_where, split_scores
from psilearn.plotting.axes import GREEN, get_axes, make_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scoring: TypeAlias = str | Callable[[Any, Any], float]
LOSSES = ("mse", "loss", "hamming")  # scores that are minus a loss


class FittedSearch(Protocol):
    """What the plots read from a fitted search such as OELCV."""

    scoring: Scoring | Sequence[Scoring]
    grid_: dict[str, list[Any]]
    cv_results_: dict[str, Any]
    best_params_: dict[str, Any]
    best_score_: float


def plot_validation(search: FittedSearch, iokr: FittedSearch | None = None, ax: Axes | None = None) -> Axes:
    """Draw the validation score over λ, one curve per p, at the chosen kernels and c.

    Parameters
    ----------
    search : fitted OELCV or KDECV
        The search whose scores are drawn.
    iokr : fitted IOKRCV, default=None
        A search over λ alone, drawn as a black line at its own chosen kernels.
    ax : matplotlib.axes.Axes, default=None
        The axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the curves.

    See Also
    --------
    plot_components : The best score for each p.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OELCV
    >>> from psilearn.kernels import Gaussian
    >>> from psilearn.plotting import plot_validation
    >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
    >>> search = OELCV(Gaussian(10.0), Gaussian(1.0), alphas=[1e-4, 1e-3], n_components=[1, 3], supervisions=[0.5])
    >>> ax = plot_validation(search.fit(X, np.hstack([np.sin(6 * X), np.cos(6 * X)])))
    >>> [line.get_label() for line in ax.get_lines()]
    ['p = 1', 'p = 3']
    """
    ax = get_axes(ax)
    _check_searches(search, iokr)
    results = search.cv_results_
    chosen = _rows_like_best(search, ("input_kernel", "output_kernel", "supervision"))
    sizes = np.unique(results["param_n_components"][chosen])
    for p, color in zip(sizes, make_colors(len(sizes)), strict=True):
        rows = chosen & (results["param_n_components"] == p)
        _draw_curve(ax, search, search, rows, color=color, label=f"p = {p}", linewidth=1)
    if iokr is not None:
        rows = _rows_like_best(iokr, ("input_kernel", "output_kernel"))
        _draw_curve(ax, search, iokr, rows, color="black", label="IOKR", linewidth=2)
    ax.set_xscale("log")
    ax.set_xlabel("λ")
    ax.set_ylabel(_score_label(search))
    ax.legend(fontsize=7, ncols=2)
    return ax


def plot_components(search: FittedSearch, iokr: FittedSearch | None = None, ax: Axes | None = None) -> Axes:
    """Draw the best validation score for each p, over all other parameters, with its standard error.

    Parameters
    ----------
    search : fitted OELCV or KDECV
        The search whose scores are drawn. A dotted line marks the chosen p.
    iokr : fitted IOKRCV, default=None
        A search without p, whose best score is drawn as a black line.
    ax : matplotlib.axes.Axes, default=None
        The axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the curve.

    See Also
    --------
    plot_validation : The scores over λ, one curve per p.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OELCV
    >>> from psilearn.kernels import Gaussian
    >>> from psilearn.plotting import plot_components
    >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
    >>> search = OELCV(Gaussian(10.0), Gaussian(1.0), alphas=[1e-4, 1e-3], n_components=[1, 3], supervisions=[0.5])
    >>> ax = plot_components(search.fit(X, np.hstack([np.sin(6 * X), np.cos(6 * X)])))
    >>> ax.get_xlabel()
    'p'
    """
    ax = get_axes(ax)
    _check_searches(search, iokr)
    results = search.cv_results_
    splits = split_scores(results)
    sizes = np.unique(results["param_n_components"])
    best = [
        max(np.flatnonzero(results["param_n_components"] == p), key=lambda row: results["mean_test_score"][row])
        for p in sizes
    ]
    errors = splits[best].std(axis=1, ddof=1) / np.sqrt(splits.shape[1]) if splits.shape[1] > 1 else None
    scores = _sign(search) * results["mean_test_score"][best]
    ax.errorbar(sizes, scores, yerr=errors, color=GREEN, marker="o", capsize=3)
    ax.axvline(search.best_params_["n_components"], color=GREEN, linestyle=":", label="chosen")
    if iokr is not None:
        ax.axhline(_sign(search) * iokr.best_score_, color="black", label="IOKR")
    ax.set_xscale("log")
    ax.set_xlabel("p")
    ax.set_ylabel(_score_label(search))
    ax.legend()
    return ax


def _draw_curve(
    ax: Axes,
    search: FittedSearch,
    drawn: FittedSearch,
    rows: NDArray[np.bool_],
    color: str | Array,
    label: str,
    linewidth: int,
) -> None:
    """Draw mean scores of one search over λ, with the sign of the scores of another."""
    alphas: Array = drawn.cv_results_["param_alpha"][rows]
    scores: Array = _sign(search) * drawn.cv_results_["mean_test_score"][rows]
    order = np.argsort(alphas)
    ax.plot(alphas[order], scores[order], marker=".", color=color, label=label, linewidth=linewidth)


def _check_searches(search: FittedSearch, iokr: FittedSearch | None) -> None:
    """Raise an error unless both are fitted searches, the first one over p."""
    if "n_components" not in getattr(search, "grid_", ()):
        raise TypeError(f"search must be a fitted OELCV or KDECV; got {search!r:.80}.")
    if iokr is not None and not hasattr(iokr, "grid_"):
        raise TypeError(f"iokr must be a fitted IOKRCV or None; got {iokr!r:.80}.")


def _sign(search: FittedSearch) -> int:
    """Return −1 for scores that are minus a loss, which are drawn as losses, and 1 for others."""
    return -1 if _first_scoring(search) in LOSSES else 1


def _score_label(search: FittedSearch) -> str:
    """Return the label of the axis of scores."""
    scoring = _first_scoring(search)
    return f"validation {scoring if isinstance(scoring, str) else getattr(scoring, '__name__', 'score')}"


def _first_scoring(search: FittedSearch) -> Scoring:
    """Return the scoring by which the search chooses."""
    scoring = search.scoring
    return scoring if isinstance(scoring, str) or callable(scoring) else scoring[0]


def _rows_like_best(search: FittedSearch, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return a mask of the rows of ``cv_results_`` that have these parameters in common with the best one."""
    mask = np.zeros(len(search.cv_results_["params"]), dtype=bool)
    mask[rows_where(search.grid_, {name: [search.best_params_[name]] for name in names if name in search.grid_})] = True
    return mask
