"""Images of which one half is predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn.plotting.axes import GREEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
