"""Pictures. Matplotlib is the extra ``psilearn[plot]``; every function draws and returns, none shows or saves."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn.linalg import Array

GREEN = "#0b7a75"


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
