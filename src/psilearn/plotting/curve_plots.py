"""Spectra, curves of several methods, and the training of an energy network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psilearn._utils import validation
from psilearn.plotting.axes import GREEN, get_axes, make_colors
from psilearn.theory import fit_decay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psilearn_lab.baselines import SPEN
    from psilearn_lab.neural.epochs import History


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
    ax = get_axes(ax)
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
    ax = get_axes(ax)
    x = validation.check_array_of_numbers(x, "x", ndim=1)
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError(f"curves must be a dict of values by name; got {curves!r:.80}.")
    if highlight is not None and not (isinstance(highlight, str) and highlight in curves):
        raise ValueError(f"highlight must be the name of a curve; got {highlight!r:.80}.")
    colors = iter(make_colors(sum(name != highlight for name in curves)))
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


def plot_convergence(spen: SPEN) -> Figure:
    """Draw the training of a structured prediction energy network in three diagrams.

    The first shows the training loss of the feature network (cross-entropy or squared error) and the error of held-out
    examples (1 − F1 or squared distance) over its epochs, each divided by its first value. The second shows the mean of
    E(x, ŷ) − Δ(ŷ, y) over the steps of loss-augmented inference. The third shows the hinge loss of the energy over its
    epochs, divided by its first value. A dotted line marks the epoch whose weights were kept.

    Parameters
    ----------
    spen : fitted SPEN
        The network whose training is drawn.

    Returns
    -------
    matplotlib.figure.Figure
        The figure with three axes.

    See Also
    --------
    psilearn_lab.baselines.SPEN : The network.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import SPEN
    >>> from psilearn.plotting import plot_convergence
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = SPEN(hidden=(4,), energy_hidden=2, epochs=3, energy_epochs=4, steps=5).fit(X, X**2)
    >>> len(plot_convergence(model).axes)
    3
    """
    from matplotlib.figure import Figure

    if not hasattr(spen, "inference_curve_"):
        raise TypeError(f"plot_convergence draws a fitted SPEN; got spen={spen!r:.80}.")
    figure = Figure(figsize=(11, 3.2), dpi=130, facecolor="white", layout="constrained")
    features, inference, hinge = figure.subplots(1, 3)
    _draw_history(features, spen.pretraining_, spen.pretraining_.validation, "loss and error of the features")
    _draw_history(hinge, spen.history_, spen.validation_hinge_[1:], "hinge loss")  # the first value is before training
    inference.plot(spen.inference_curve_, color=GREEN, marker=".")
    inference.set_xlabel("step of loss-augmented inference")
    inference.set_ylabel("E(x, ŷ) − Δ(ŷ, y), held out")
    return figure


def _draw_history(ax: Axes, history: History, held_out: Sequence[float], label: str) -> None:
    """Draw training and held-out values over epochs, each divided by its first value."""
    from matplotlib.ticker import MaxNLocator

    epochs = np.arange(1, len(history.training) + 1)
    ax.plot(epochs, np.divide(history.training, history.training[0] or 1), color="black", label="training")
    ax.plot(epochs, np.divide(held_out, held_out[0] or 1), color=GREEN, label="held out")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axvline(history.best_epoch, color=GREEN, linestyle=":", label="kept")
    ax.set_xlabel("epoch")
    ax.set_ylabel(f"{label}, ratio to the first")
    ax.legend()
