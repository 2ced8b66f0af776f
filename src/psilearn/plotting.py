"""Figures of searches, spectra, learning curves and completed images.

Matplotlib is the extra ``psilearn[plot]``. Each function draws on given or new axes and returns the axes or the figure.
Nothing is shown or saved: ``ax.figure.savefig("picture.png")`` saves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn.model_selection.choice import rows_where, split_scores
from psilearn.theory import fit_decay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "plot_completions",
    "plot_components",
    "plot_curves",
    "plot_spectrum",
    "plot_validation",
    "select_example_per_class",
]

GREEN = "#0b7a75"
Scoring: TypeAlias = str | Callable[[Any, Any], float]
LOSSES = ("mse", "loss", "hamming")  # scores that are minus a loss


def plot_spectrum(eigenvalues: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw eigenvalues with their fitted decay ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ as a band.

    Parameters
    ----------
    eigenvalues : array-like of shape (p,)
        The eigenvalues in descending order, such as ``model.eigenvalues_``.
    ax : matplotlib.axes.Axes, default=None
        The axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the spectrum.

    See Also
    --------
    psilearn.theory.fit_decay : Fit the decay.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.plotting import plot_spectrum
    >>> ax = plot_spectrum(2.0 / np.arange(1, 30) ** 1.5)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['r = 1.50', 'eigenvalues']
    """
    ax = _get_axes(ax)
    eigenvalues = validation.check_array_of_numbers(eigenvalues, "eigenvalues", ndim=1)
    decay = fit_decay(eigenvalues)
    j = np.arange(1, len(eigenvalues) + 1)
    power = j**-decay.rate
    ax.fill_between(j, decay.lower * power, decay.upper * power, color=GREEN, alpha=0.15, linewidth=0)
    ax.plot(j, decay(j), color=GREEN, linestyle="--", label=f"r = {decay.rate:.2f}")
    ax.plot(j, eigenvalues, color="black", marker=".", linewidth=1, label="eigenvalues")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("j")
    ax.set_ylabel("σⱼ")
    ax.legend()
    return ax


def plot_curves(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    x_label: str,
    y_label: str,
    highlight: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw several curves over one axis, colored in their order, with optional standard errors.

    Parameters
    ----------
    x : array-like of shape (k,)
        The positions on the horizontal axis.
    curves : dict of str to array-like of shape (k,) or (2, k)
        The values of each curve by its name; an array of two rows holds values and standard errors.
    x_label : str
        The label of the horizontal axis.
    y_label : str
        The label of the vertical axis.
    highlight : str, default=None
        The name of a curve that is drawn thick and black.
    ax : matplotlib.axes.Axes, default=None
        The axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the curves.

    See Also
    --------
    plot_validation : The curves of a search.

    Examples
    --------
    >>> from psilearn.plotting import plot_curves
    >>> ax = plot_curves([1, 2, 3], {"IOKR": [0.5, 0.6, 0.7], "OEL": [0.6, 0.7, 0.8]}, "k", "top-k accuracy")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['IOKR', 'OEL']
    """
    ax = _get_axes(ax)
    x = validation.check_array_of_numbers(x, "x", ndim=1)
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError(f"curves must be a dict of values by name; got {curves!r:.80}.")
    if highlight is not None and not (isinstance(highlight, str) and highlight in curves):
        raise ValueError(f"highlight must be the name of a curve; got {highlight!r:.80}.")
    colors = iter(_make_colors(sum(name != highlight for name in curves)))
    for name, curve in curves.items():
        numbers = validation.check_array_of_numbers(curve, f"curves[{name!r}]", allow_nan=True)
        if numbers.shape not in ((len(x),), (2, len(x))):
            raise ValueError(f"curves[{name!r}] must have one value per x, {len(x)}; got shape {numbers.shape}.")
        values, errors = numbers if numbers.ndim == 2 else (numbers, None)
        color, linewidth = ("black", 2.0) if name == highlight else (next(colors), 1.2)
        ax.errorbar(x, values, yerr=errors, marker=".", capsize=3, label=name, color=color, linewidth=linewidth)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.legend(fontsize=7, ncols=2)
    return ax


def plot_completions(inputs: Array, rows: Mapping[str, Array], width: int) -> Figure:
    """Draw images that were completed from their upper half, one column per image and one row per method.

    Parameters
    ----------
    inputs : ndarray of shape (q, d)
        The upper halves, line by line.
    rows : dict of str to ndarray of shape (q, d)
        The lower halves by the name of their row: the truth, and the prediction of each method.
    width : int
        The number of pixels per line.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    select_example_per_class : Choose the images to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.plotting import plot_completions
    >>> upper = np.random.default_rng(0).random((3, 32))
    >>> figure = plot_completions(upper, {"truth": upper, "predicted": upper}, width=8)
    >>> len(figure.axes)  # 3 images: the given half and two rows
    9
    """
    from matplotlib.figure import Figure

    inputs = validation.check_array_of_numbers(inputs, "inputs", ndim=2)
    if not isinstance(rows, Mapping):
        raise TypeError(f"rows must be a dict of arrays by name; got {rows!r:.80}.")
    rows = {name: validation.check_array_of_numbers(row, f"rows[{name!r}]", ndim=2) for name, row in rows.items()}
    if any(len(row) < len(inputs) for row in rows.values()):
        raise ValueError(f"rows must have one image per row of inputs, {len(inputs)}.")
    if any(part.shape[1] % validation.check_count(width, "width") for part in (inputs, *rows.values())):
        raise ValueError(f"width={width} must divide the number of pixels of each half image.")
    names = ["given", *rows]
    figure = Figure(figsize=(0.62 * len(inputs) + 1.1, 0.72 * len(names) + 0.5), dpi=130, facecolor="white")
    axes = figure.subplots(len(names), len(inputs), squeeze=False, gridspec_kw={"wspace": 0.08, "hspace": 0.12})
    for name, line in zip(names, axes, strict=True):
        for i, ax in enumerate(line):
            upper = inputs[i].reshape(-1, width)
            lower = np.full_like(upper, np.nan) if name == "given" else rows[name][i].reshape(-1, width)
            _draw_image(ax, upper, lower, inputs.max())
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10, labelpad=8)
    figure.suptitle("Upper half given, lower half predicted", fontsize=11, color=GREEN, y=0.94)
    return figure


def _draw_image(ax: Axes, upper: Array, lower: Array, largest: float) -> None:
    """Draw two halves of an image with a line between them."""
    ax.imshow(np.vstack([upper, lower]), cmap="gray_r", vmin=0, vmax=largest, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.axhline(len(upper) - 0.5, color=GREEN, linewidth=0.9)
    for spine in ax.spines.values():
        spine.set_color("#c8c8c8")


def select_example_per_class(labels: ArrayLike, predictions: Sequence[NDArray[Any]]) -> list[int]:
    """Return one example per class to show: the first one on which the predictions disagree, else the first one.

    Parameters
    ----------
    labels : array-like of shape (n,)
        The class of each example.
    predictions : sequence of ndarray of shape (n, d)
        The predictions of each method.

    Returns
    -------
    list of int
        The index of an example for each class, in the order of the sorted classes.

    See Also
    --------
    plot_completions : Draw the selected examples.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.plotting import select_example_per_class
    >>> select_example_per_class([0, 1, 1], [np.array([[1], [2], [3]]), np.array([[1], [2], [4]])])
    [0, 2]
    """
    try:
        labels = np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"labels must have one class per example: {error}") from error
    if labels.ndim != 1 or not labels.size or labels.dtype == object or (labels != labels).any():
        raise ValueError(f"labels must have one class per example; got shape {labels.shape}, {labels.dtype}.")
    if not isinstance(predictions, list | tuple) or not predictions:
        raise TypeError(f"predictions must be a list of arrays, one per method; got {type(predictions).__name__}.")
    predictions = [validation.check_array_of_numbers(rows, "predictions", ndim=2) for rows in predictions]
    if any(rows.shape != (len(labels), predictions[0].shape[1]) for rows in predictions):
        raise ValueError(f"predictions must have one row per entry of labels, {len(labels)}, and the same widths.")
    disagree = np.any([np.any(other != predictions[0], axis=1) for other in predictions], axis=0)
    selected = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        selected.append(int(next(iter(members[disagree[members]]), members[0])))
    return selected


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
    ax = _get_axes(ax)
    _check_searches(search, iokr)
    results = search.cv_results_
    chosen = _rows_like_best(search, ("input_kernel", "output_kernel", "supervision"))
    sizes = np.unique(results["param_n_components"][chosen])
    for p, color in zip(sizes, _make_colors(len(sizes)), strict=True):
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
    ax = _get_axes(ax)
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


def _get_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or the axes of a new figure."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib axes or None; got {ax!r:.80}.")
    if ax is not None:
        return ax
    return Figure(figsize=(6, 4), dpi=130, layout="constrained").add_subplot()


def _make_colors(n: int) -> Array:
    """Return n colors from dark to light as rows of red, green, blue and opacity."""
    from matplotlib import colormaps

    return np.asarray(colormaps["viridis"](np.linspace(0, 0.9, n)))
