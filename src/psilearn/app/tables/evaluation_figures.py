"""Figures of an evaluation as inline SVG; without matplotlib there are none."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psilearn.app.tables.table_evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREEN, GRAY = "#0b7a75", "#b9c2c0"
MAX_BARS = 30
LOG_SCALED = ("λ", "p")


def has_matplotlib() -> bool:
    """Return whether figures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw_outputs(evaluation: Evaluation) -> str:
    """Return bars of the quality of the most frequent outputs."""
    rows = evaluation.outputs[:MAX_BARS]

    def draw(ax: Axes) -> None:
        ax.barh(range(len(rows)), [row.value for row in rows], color=GREEN)
        names = [_shorten(f"{row.name} ({row.count})") for row in rows]
        ax.set_yticks(range(len(rows)), names, fontsize=7, parse_math=False)
        ax.invert_yaxis()
        ax.set_xlim(min(0.0, *(row.value for row in rows)), 1)
        ax.set_xlabel(evaluation.output_metric)

    return _to_svg(draw, height=1 + 0.18 * len(rows))


def draw_distances(evaluation: Evaluation, *, by_correctness: bool) -> str:
    """Return the histogram of the distances of predictions, where correct and wrong ones may have different colors."""
    from matplotlib.ticker import MaxNLocator

    edges = np.histogram_bin_edges(evaluation.distances, bins=30).tolist()
    correct = evaluation.is_correct
    parts = [evaluation.distances[correct], evaluation.distances[~correct]] if by_correctness else evaluation.distances

    def draw(ax: Axes) -> None:
        if by_correctness:
            ax.hist(parts, bins=edges, stacked=True, color=[GREEN, GRAY], label=["exactly correct", "other"])
            ax.legend()
        else:
            ax.hist(parts, bins=edges, color=GREEN)
        ax.set_xlabel("squared distance of the prediction")
        ax.set_ylabel("rows")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))

    return _to_svg(draw)


def draw_curve(search: Mapping[str, Any], symbol: str) -> str:
    """Return the best validation score for each value of a parameter."""
    points: Sequence[Sequence[Any]] = search["curves"][symbol]
    values, scores = [float(point[0]) for point in points], [float(point[1]) for point in points]
    errors = [float(point[2]) for point in points]

    def draw(ax: Axes) -> None:
        ax.errorbar(values, scores, yerr=np.nan_to_num(errors), color=GREEN, marker="o", capsize=3)
        if symbol in LOG_SCALED:
            ax.set_xscale("log")
        ax.set_xlabel(symbol)
        ax.set_ylabel(str(search["scoring"]))

    return _to_svg(draw)


def _to_svg(draw: Callable[[Axes], None], height: float = 3.2) -> str:
    """Return a figure as an SVG element."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "psilearn"}):
        figure = Figure(figsize=(6, height), layout="constrained")
        draw(figure.add_subplot())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _shorten(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:30]}…{name[-8:]}"
