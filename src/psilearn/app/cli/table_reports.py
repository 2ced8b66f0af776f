"""What the commands for tables have in common: training and saving, and what they print."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import typer

from psilearn.app.cli.option_names import options_in_errors, word_note
from psilearn.app.cli.table_outputs import check_result_file

if TYPE_CHECKING:
    from psilearn.app.tables.column_choice import ColumnOptions
    from psilearn.app.tables.table import Table
    from psilearn.app.tables.table_evaluation import Evaluation
    from psilearn.app.tables.table_model import TableModel
    from psilearn.app.tables.table_training import Learner, SplitOptions


def train_and_save(
    path: Path,
    output: Path,
    columns: ColumnOptions,
    splits: SplitOptions,
    learner: Learner,
    unlabeled: Path | None,
    page: Path | None,
    overwrite: bool,
) -> None:
    """Check the outputs first, train, save, and report on the rows that were held out."""
    from psilearn.app.tables.table_training import train

    if page is not None:
        tables = [path, *(Path(entry) for entry in columns.outputs), *([unlabeled] if unlabeled else [])]
        check_result_file(page, "--html", tables, output, overwrite)
        if not splits.test_size:
            raise ValueError("--html reports on rows that are held out: give --test-size 0.2, for example.")
    _check_model_path(output, overwrite)
    start = perf_counter()
    with options_in_errors():
        model, test = train(path, columns, splits, learner, unlabeled)
    model.save(output, overwrite=overwrite)
    _describe_training(model, output, perf_counter() - start)
    if len(test):
        report(model, _evaluate(model, test), f"held-out rows of {path.name}", page)


def _evaluate(model: TableModel, table: Table) -> Evaluation:
    from psilearn.app.tables.table_evaluation import evaluate as evaluate_model

    return evaluate_model(model, table)


def load_model(path: Path) -> TableModel:
    """Load a model of tables."""
    from psilearn.app.tables.table_model import TableModel

    if not path.exists():
        raise FileNotFoundError(f"The model {path} does not exist; check the path.")
    return TableModel.load(path)


def _check_model_path(path: Path, overwrite: bool) -> None:
    """Check that a model can be saved, before the training starts."""
    from psilearn.io import check_model_path

    try:
        check_model_path(path, overwrite=overwrite)
    except FileExistsError as error:
        raise FileExistsError(str(error).replace("pass overwrite=True", "use --overwrite")) from error


def _describe_training(model: TableModel, output: Path, seconds: float) -> None:
    training = model.training
    print_status(f"inputs: {model.inputs.describe()}")
    print_status(f"outputs: {model.outputs.describe()}")
    if "search" in training:
        found = training["search"]
        print_status(
            f"search: {found['settings']:,} settings, {found['scoring']} {_format(found['score'])} ± "
            f"{_format(found['standard_error'])} (standard error over the splits)"
        )
    chosen = ", ".join(f"{name} = {_format(value)}" for name, value in training["parameters"].items())
    candidates = f", candidates = {model.candidates}" if model.candidates else ""
    print_status(f"{training['method']}: {chosen}{candidates}")
    print_status(f"{output}: model of {count_rows(training['rows'])}, {seconds:.1f} s.")


def report(model: TableModel, evaluation: Evaluation, name: str, page: Path | None) -> None:
    """Print the metrics, and write the page."""
    typer.echo(f"{name}: {count_rows(evaluation.n_rows)}")
    width = max(len(metric.name) for metric in evaluation.metrics)
    for metric in evaluation.metrics:
        value = f"{float(metric.value):.4f} ± {metric.value.standard_error:.4f}"
        typer.echo(f"  {metric.name:{width}}  {value}  ({metric.direction})")
    if page is not None:
        from psilearn.app.tables.evaluation_page import write_page

        write_page(model, evaluation, name, page)
        print_status(f"report: {page}")


def count_rows(n: int) -> str:
    """Return a number of rows in words."""
    return "1 row" if n == 1 else f"{n:,} rows"


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print each different warning in one line, without the place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        seen: set[str] = set()

        def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
            text = word_note(" ".join(str(message).split()))
            if issubclass(category, UserWarning) and text is not None and text not in seen:
                seen.add(text)
                print_status(f"Note: {text}")

        warnings.showwarning = show
        yield


def print_status(text: str) -> None:
    """Print to the standard error, so that it does not mix with results."""
    typer.echo(text, err=True)
