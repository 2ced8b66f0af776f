"""The evaluation of a model as one self-contained HTML file, without scripts and network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from psilearn import __version__
from psilearn.app.tables.evaluation_figures import draw_curve, draw_distances, draw_outputs, has_matplotlib
from psilearn.app.tables.table_evaluation import Evaluation
from psilearn.app.tables.table_model import TableModel
from psilearn.utils import write_atomically

MAX_ROWS = 200  # of the table of outputs
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
    write_atomically(path, render_page(model, evaluation, test_name).encode())


def render_page(model: TableModel, evaluation: Evaluation, test_name: str) -> str:
    """Return the page as HTML."""
    style = Path(__file__).with_name("evaluation_page.css").read_text(encoding="utf-8")
    body = "\n".join(_sections(model, evaluation))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Evaluation on {escape(test_name)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="eyebrow">psilearn {escape(__version__)}</p>
<h1>Evaluation on {escape(test_name)}</h1>
<p>{"1 row" if evaluation.n_rows == 1 else f"{evaluation.n_rows:,} rows"}. Outputs: {escape(model.outputs.describe())}.
Inputs: {escape(model.inputs.describe())}.</p>
</header>
<main>
{body}
</main>
<footer><p>The number after ± is the standard error of the mean over the rows.</p></footer>
</body>
</html>
"""


def _sections(model: TableModel, evaluation: Evaluation) -> Iterator[str]:
    yield "<h2>Metrics</h2>"
    metrics = [
        (m.name, f"{float(m.value):.4f} ± {m.value.standard_error:.4f}", m.direction) for m in evaluation.metrics
    ]
    yield _table(("metric", "value", ""), metrics)
    is_numbers = model.outputs.kind == "numbers"  # which are hardly ever equal, and which every row has
    if not is_numbers:
        yield _describe_correct(evaluation)
    is_drawn = has_matplotlib()
    if is_drawn:
        meaning = "" if is_numbers else ": a measure of confidence if small distances are correct more often"
        figure = draw_distances(evaluation, by_correctness=not is_numbers)
        yield _figure(figure, f"Distances of predictions{meaning}.")
    if evaluation.outputs:
        caption = "" if is_numbers else "The most frequent outputs, with the number of rows that have them."
        yield from _outputs(evaluation, is_drawn, caption)
    yield from _training(model.training, is_drawn)
    if not is_drawn:
        yield '<p class="note">For figures, install matplotlib: <code>pip install "psilearn[plot]"</code>.</p>'


def _describe_correct(evaluation: Evaluation) -> str:
    """Return the shares of known outputs and of exactly correct predictions."""
    return (
        f'<p class="note">The true output of {evaluation.known_share:.1%} of the rows is a known output of the model; '
        f"{evaluation.is_correct.mean():.1%} of the predictions are exactly correct.</p>"
    )


def _outputs(evaluation: Evaluation, is_drawn: bool, caption: str) -> Iterator[str]:
    yield f"<h2>{escape(evaluation.output_metric)} of each output</h2>"
    if is_drawn:
        yield _figure(draw_outputs(evaluation), caption)
    rows = [(row.name, f"{row.count:,}", f"{row.value:.4f}") for row in evaluation.outputs[:MAX_ROWS]]
    yield _table(("output", "rows", evaluation.output_metric), rows)
    if len(evaluation.outputs) > MAX_ROWS:
        yield f'<p class="note">The first {MAX_ROWS} of {len(evaluation.outputs):,} outputs.</p>'


def _training(training: Mapping[str, Any], is_drawn: bool) -> Iterator[str]:
    """Yield the parameters of the training and the curves of its search; other contents are left out."""
    parameters = training.get("parameters")
    values = {**training, **(parameters if isinstance(parameters, dict) else {})}
    yield "<h2>Training</h2>"
    rows = [(label, _format(values[name])) for name, label in NAMES.items() if name in values]
    yield _table(("", ""), rows, kind="text")
    search = training.get("search")
    if not isinstance(search, dict):
        return
    direction = "lower" if search.get("is_loss") else "higher"
    yield (
        f"<h2>Validation</h2>\n<p>{escape(_format(search.get('settings')))} settings were compared by "
        f"{escape(_format(search.get('scoring')))} ({direction} is better); the best has "
        f"{escape(_format(search.get('score')))} ± {escape(_format(search.get('standard_error')))} (standard error "
        f"over the splits). The score of a chosen setting is optimistic: compare it with the metrics above.</p>"
    )
    curves = search.get("curves")
    curves = curves if is_drawn and isinstance(curves, dict) else {}
    for symbol in curves:
        with suppress(TypeError, ValueError, LookupError):  # a record that was changed by hand
            if len(curves[symbol]) > 1:
                yield _figure(draw_curve(search, symbol), f"The best validation score for each {symbol}.")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "number") -> str:
    """Return a table whose first column names the rows."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    lines = "".join(f"<tr><th>{escape(row[0])}</th>{_cells(row[1:], kind)}</tr>\n" for row in rows)
    thead = f"<thead><tr>{head}</tr></thead>\n" if any(headings) else ""
    return f'<div class="scroll"><table>\n{thead}<tbody>\n{lines}</tbody>\n</table></div>'


def _cells(cells: Sequence[str], kind: str) -> str:
    return "".join(f'<td class="{kind}">{escape(cell)}</td>' for cell in cells)


def _figure(svg: str, caption: str) -> str:
    text = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>\n{svg}{text}\n</figure>"


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
