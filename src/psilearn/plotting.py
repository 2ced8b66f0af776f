"""Pictures. Matplotlib is the extra ``psilearn[plot]``; every function draws on given or new axes and returns them.

Nothing is shown or saved: ``ax.figure.savefig("picture.png")`` does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._linalg import Array
from psilearn.model_selection.choice import rows_where, split_scores
from psilearn.theory import fit_decay

GREEN = "#0b7a75"


def plot_validation(search: Any, iokr: Any = None, ax: Any = None) -> Any:
    """Draw the validation score over λ, one curve a p, at the chosen kernels and c; IOKR as a black line.

    Parameters
    ----------
    search : fitted OELCV or KDECV
    iokr : fitted IOKRCV, optional
        drawn at its own chosen kernels.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    results = search.cv_results_
    here = _matching(search, ("input_kernel", "output_kernel", "supervision"))
    sizes = np.unique(results["param_n_components"][here])
    colors = _colors(len(sizes))
    for p, color in zip(sizes, colors, strict=True):
        rows = here & (results["param_n_components"] == p)
        scores = _sign(search) * results["mean_test_score"][rows]
        _curve(ax, results["param_alpha"][rows], scores, color=color, label=f"p = {p}")
    if iokr is not None:
        rows = _matching(iokr, ("input_kernel", "output_kernel"))
        alphas, scores = iokr.cv_results_["param_alpha"][rows], iokr.cv_results_["mean_test_score"][rows]
        _curve(ax, alphas, _sign(search) * scores, color="black", label="IOKR", linewidth=2)
    ax.set_xscale("log")
    ax.set_xlabel("λ")
    ax.set_ylabel(_score_name(search))
    ax.legend(fontsize=7, ncols=2)
    return ax


def plot_components(search: Any, iokr: Any = None, ax: Any = None) -> Any:
    """Draw the best validation score for each p, over all else, with its standard error; IOKR as a black line."""
    ax = _axes(ax)
    results = search.cv_results_
    splits = split_scores(results)
    sizes = np.unique(results["param_n_components"])
    best = [
        max(np.flatnonzero(results["param_n_components"] == p), key=lambda i: results["mean_test_score"][i])
        for p in sizes
    ]
    error = splits[best].std(axis=1, ddof=1) / np.sqrt(splits.shape[1]) if splits.shape[1] > 1 else None
    ax.errorbar(sizes, _sign(search) * results["mean_test_score"][best], yerr=error, color=GREEN, marker="o", capsize=3)
    ax.axvline(search.best_params_["n_components"], color=GREEN, linestyle=":", label="chosen")
    if iokr is not None:
        ax.axhline(_sign(search) * iokr.best_score_, color="black", label="IOKR")
    ax.set_xscale("log")
    ax.set_xlabel("p")
    ax.set_ylabel(_score_name(search))
    ax.legend()
    return ax


def plot_spectrum(eigenvalues: Array, ax: Any = None) -> Any:
    """Draw a spectrum such as ``model.eigenvalues_`` with the fitted decay ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ as a band."""
    ax = _axes(ax)
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


def plot_completions(inputs: Array, rows: dict[str, Array], width: int) -> Any:
    """Draw images that were completed from their upper half, one column an image, one row a method.

    Parameters
    ----------
    inputs : array (q, d)
        upper halves, row-major.
    rows : dict of name → array (q, d)
        lower halves: the truth and what each method predicted.
    width : int
        pixels a line.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure

    q = len(inputs)
    names = ["given", *rows]
    figure = Figure(figsize=(0.62 * q + 1.1, 0.72 * len(names) + 0.5), dpi=130, facecolor="white")
    axes = figure.subplots(len(names), q, squeeze=False, gridspec_kw={"wspace": 0.08, "hspace": 0.12})
    for name, line in zip(names, axes, strict=True):
        for i, axis in enumerate(line):
            upper = inputs[i].reshape(-1, width)
            lower = np.full_like(upper, np.nan) if name == "given" else rows[name][i].reshape(-1, width)
            axis.imshow(np.vstack([upper, lower]), cmap="gray_r", vmin=0, vmax=inputs.max(), interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
            axis.axhline(len(upper) - 0.5, color=GREEN, linewidth=0.9)
            for spine in axis.spines.values():
                spine.set_color("#c8c8c8")
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10, labelpad=8)
    figure.suptitle("Upper half given, lower half predicted", fontsize=11, color=GREEN, y=0.94)
    return figure


def plot_curves(
    x: Any, curves: Mapping[str, Any], x_label: str, y_label: str, highlight: str | None = None, ax: Any = None
) -> Any:
    """Draw curves over one axis, coloured in their order; the highlighted one thick and black.

    Parameters
    ----------
    x : array (k,)
    curves : dict of name → array (k,), or array (2, k) of values and standard errors
    x_label, y_label : str
    highlight : str, optional
        the name of a curve.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    colors = iter(_colors(sum(name != highlight for name in curves)))
    for name, curve in curves.items():
        values, errors = curve if np.ndim(curve) == 2 else (curve, None)
        style = {"color": "black", "linewidth": 2} if name == highlight else {"color": next(colors), "linewidth": 1.2}
        ax.errorbar(x, values, yerr=errors, marker=".", capsize=3, label=name, **style)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.legend(fontsize=7, ncols=2)
    return ax


def plot_convergence(spen: Any) -> Any:
    """Draw how a fitted :class:`~psilearn.baselines.SPEN` came about, in three pictures.

    Over the epochs of its feature network the training loss (cross-entropy or squared error) and the error of held-out
    examples (1 − F1 or squared distance), each divided by its first value; the mean of E(x, ŷ) − Δ(ŷ, y) over the steps
    of loss-augmented inference; the hinge loss over epochs, divided likewise. A dotted line marks the epoch kept.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    if not hasattr(spen, "inference_curve_"):
        raise TypeError(f"plot_convergence draws a fitted SPEN; got {spen!r}.")
    figure = Figure(figsize=(11, 3.2), dpi=130, facecolor="white", layout="constrained")
    features, inference, hinge = figure.subplots(1, 3)
    for axis, history, held_out, ylabel in (
        (features, spen.pretraining_, spen.pretraining_.validation, "loss and error of the features"),
        (hinge, spen.history_, spen.validation_hinge_[1:], "hinge loss"),  # the first is that of the start
    ):
        epochs = np.arange(1, len(history.training) + 1)
        axis.plot(epochs, np.divide(history.training, history.training[0] or 1), color="black", label="training")
        axis.plot(epochs, np.divide(held_out, held_out[0] or 1), color=GREEN, label="held out")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.axvline(history.best_epoch, color=GREEN, linestyle=":", label="kept")
        axis.set_xlabel("epoch")
        axis.set_ylabel(f"{ylabel}, ratio to the first")
        axis.legend()
    inference.plot(spen.inference_curve_, color=GREEN, marker=".")
    inference.set_xlabel("step of loss-augmented inference")
    inference.set_ylabel("E(x, ŷ) − Δ(ŷ, y), held out")
    return figure


def one_a_class(labels: Any, predictions: Sequence[Any]) -> list[int]:
    """Return one example a class, to be shown: the first on which not all predictions agree, else the first.

    Examples
    --------
    >>> one_a_class(np.array([0, 1, 1]), [np.array([[1], [2], [3]]), np.array([[1], [2], [4]])])
    [0, 2]
    """
    disagree = np.any([np.any(other != predictions[0], axis=1) for other in predictions], axis=0)
    chosen = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen.append(int(next(iter(members[disagree[members]]), members[0])))
    return chosen


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4), dpi=130, layout="constrained").subplots()


def _colors(n: int) -> Any:
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.9, n))


def _curve(ax: Any, alphas: Array, scores: Array, **style: Any) -> None:
    order = np.argsort(alphas)
    ax.plot(alphas[order], scores[order], marker=".", **{"linewidth": 1} | style)


def _sign(search: Any) -> int:
    """Losses are drawn as losses: these scores are minus one."""
    return -1 if _first_scoring(search) in ("mse", "loss", "hamming") else 1


def _score_name(search: Any) -> str:
    scoring = _first_scoring(search)
    return f"validation {scoring if isinstance(scoring, str) else getattr(scoring, '__name__', 'score')}"


def _first_scoring(search: Any) -> Any:
    """Return the scoring that chooses."""
    return search.scoring[0] if isinstance(search.scoring, list | tuple) else search.scoring


def _matching(search: Any, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return the rows of ``cv_results_`` that share these parameters with the best one."""
    same = np.zeros(len(search.cv_results_["params"]), dtype=bool)
    same[rows_where(search.grid_, {name: [search.best_params_[name]] for name in names if name in search.grid_})] = True
    return same
