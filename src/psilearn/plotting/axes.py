"""Axes and colors that all figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psilearn._linalg import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREEN = "#0b7a75"


def get_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or the axes of a new figure."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib axes or None; got {ax!r:.80}.")
    if ax is not None:
        return ax
    return Figure(figsize=(6, 4), dpi=130, layout="constrained").add_subplot()


def make_colors(n: int) -> Array:
    """Return n colors from dark to light as rows of red, green, blue and opacity."""
    from matplotlib import colormaps

    return np.asarray(colormaps["viridis"](np.linspace(0, 0.9, n)))
