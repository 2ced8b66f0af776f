"""The evaluation of a model as one self-contained HTML file, without scripts and network; figures are inline SVG."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from psilearn import __version__
from psilearn.app.tables.table_evaluation import Evaluation
from psilearn.app.tables.table_model import TableModel
from psilearn.utils import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 200  # of the table of outputs
MAX_BARS = 30
GREEN, GRAY = "#0b7a75", "#b9c2c0"
LOG_SCALED = ("λ", "p")
NAMES = {
    "file": "training file",
    "rows": "training rows",
    "calibration_rows": "calibration rows",
    "unlabeled_rows": "further outputs without inputs",
    "method": "method",
    "seed": "random seed",
    "input_kernel": "input kernel",
    "output_kernel": "output kernel",
    "alpha": "λ",
    "n_components": "p",
    "supervision": "c",
}


def write_page(model: TableModel, evaluation: Evaluation, test_name: str, path: Path) -> None:
    """Write the page; an interrupted write leaves a previous file unchanged."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _format
    training = model.training
    parameters = training.get("parameters")
    values = {**training, **(parameters if isinstance(parameters, dict) else {})}
    search = training.get("search")
    page = environment.get_template(
        "evaluation_page.html"
    ).render(
        version=__version__,
        name=test_name,
        model=model,
        evaluation=evaluation,
        is_numbers=model.outputs.kind == "numbers",  # which are hardly ever equal, and which every row has
        max_rows=MAX_ROWS,
        metrics=[(metric.name, str(metric.value), metric.direction) for metric in evaluation.metrics],
        outputs=[(row.name, f"{row.count:,}", f"{row.value:.4f}") for row in evaluation.outputs[:MAX_ROWS]],
        parameters=[(label, _format(values[name])) for name, label in NAMES.items() if name in values],
        search=search if isinstance(search, dict) else None,
        figures=_draw_figures(evaluation, search, model.outputs.kind),
    )
    write_atomically(path, page.encode())


def _draw_figures(evaluation: Evaluation, search: Any, kind: str) -> dict[str, Any]:
    """Return the figures by their name; "curves" are those of a search by parameter."""
    figures: dict[str, Any] = {"distances": _to_svg(_draw_distances, evaluation, kind != "numbers"), "curves": {}}
    if evaluation.outputs:
        height = 1 + 0.18 * len(evaluation.outputs[:MAX_BARS])
        figures["outputs"] = _to_svg(_draw_outputs, evaluation, height=height)
    curves = search.get("curves") if isinstance(search, dict) else None
    for symbol in curves if isinstance(curves, dict) else ():
        with suppress(TypeError, ValueError, LookupError):  # a record that was changed by hand
            if len(search["curves"][symbol]) > 1:
                figures["curves"][symbol] = _to_svg(_draw_curve, search, symbol)
    return figures


def _draw_outputs(ax: Axes, evaluation: Evaluation) -> None:
    """Draw bars of the quality of the most frequent outputs."""
    rows = evaluation.outputs[:MAX_BARS]
    ax.barh(range(len(rows)), [row.value for row in rows], color=GREEN)
    names = [f"{row.name} ({row.count})" for row in rows]
    short = [name if len(name) <= 40 else f"{name[:30]}…{name[-8:]}" for name in names]
    ax.set_yticks(range(len(rows)), short, fontsize=7, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(min(0.0, *(row.value for row in rows)), 1)
    ax.set_xlabel(evaluation.output_metric)


def _draw_distances(ax: Axes, evaluation: Evaluation, by_correctness: bool) -> None:
    """Draw the histogram of the distances of predictions, where correct and wrong ones may have different colors."""
    from matplotlib.ticker import MaxNLocator

    edges, correct = np.histogram_bin_edges(evaluation.distances, bins=30).tolist(), evaluation.is_correct
    if by_correctness:
        parts = [evaluation.distances[correct], evaluation.distances[~correct]]
        ax.hist(parts, bins=edges, stacked=True, color=[GREEN, GRAY], label=["exactly correct", "other"])
        ax.legend()
    else:
        ax.hist(evaluation.distances, bins=edges, color=GREEN)
    ax.set_xlabel("squared distance of the prediction")
    ax.set_ylabel("rows")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_curve(ax: Axes, search: Mapping[str, Any], symbol: str) -> None:
    """Draw the best validation score for each value of a parameter."""
    values, scores, errors = (list(map(float, part)) for part in zip(*search["curves"][symbol], strict=True))
    ax.errorbar(values, scores, yerr=np.nan_to_num(errors), color=GREEN, marker="o", capsize=3)
    if symbol in LOG_SCALED:
        ax.set_xscale("log")
    ax.set_xlabel(symbol)
    ax.set_ylabel(str(search["scoring"]))


def _to_svg(draw: Callable[..., None], *parts: Any, height: float = 3.2) -> Markup:
    """Return a figure as an SVG element."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "psilearn"}):
        figure = Figure(figsize=(6, height), layout="constrained")
        draw(figure.add_subplot(), *parts)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return Markup(text[text.index("<svg") :])


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
