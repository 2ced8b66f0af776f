"""What the commands for tables have in common: training and saving, output files, and what they print."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from psilearn.app.console import check_output_file, print_status

if TYPE_CHECKING:
    from psilearn.app.tables.table import Table
    from psilearn.app.tables.table_model import TableModel
    from psilearn.app.tables.table_training import Learner

OPTIONS = {
    "alpha": "--alpha",
    "alphas": "--alpha",
    "n_components": "--components",
    "supervision": "--supervision",
    "supervisions": "--supervision",
    "device": "--device",
    "n_jobs": "--jobs",
    "scoring": "--scoring",
}
_NAMES = "|".join(OPTIONS)
_EDGE = re.compile(r"The best (\w+) = (\S+) is the (\w+) of its grid\. Extend the grid to values beyond it\.")
_PHRASES = (  # patterns of messages, and how the command line words them
    (re.compile(rf"^(each value of )?({_NAMES}) must be (None, |None or )?"), r"\1<\2> must be "),
    (re.compile(rf"^({_NAMES})=['\"]?([^'\" ]+)['\"]? "), r"<\1> \2 "),
    (re.compile(r": leave (device) out\."), r": leave <\1> out."),
    (re.compile(r", a function \(y_true, .* such as \"f1_samples\" or make_scorer\(\.\.\.\)"), r', "f1_samples", …'),
    (re.compile(r"([Ss]et |lower )input_landmarks(?:=| (?=to))"), r"\1--landmarks "),
    (re.compile(r"([Ss]et |lower )output_landmarks(?:=| (?=to))"), r"\1--output-landmarks "),
    (re.compile(r"pass overwrite=True"), "use --overwrite"),
    (re.compile(r'set dtype="float32"'), 'in Python, set dtype="float32"'),
)


def train_and_save(path: Path, output: Path, options: Mapping[str, Any], learner: Learner) -> None:
    """Check the outputs first, train, save, and report on the rows that were held out."""
    from psilearn.app.tables.column_choice import ColumnOptions
    from psilearn.app.tables.table_training import SplitOptions, train
    from psilearn.io import check_model_path

    columns = ColumnOptions(**{field.name: options[field.name] for field in fields(ColumnOptions)})
    splits = SplitOptions(options["test_size"], options["calibration"], options["seed"])
    unlabeled, page = options["unlabeled"], options["page"]
    if page is not None:
        tables = [path, *map(Path, columns.outputs or ()), *([unlabeled] if unlabeled else [])]
        check_result_file(page, "--html", tables, output, options["overwrite"])
        if not splits.test_size:
            raise ValueError("--html reports on rows that are held out: give --test-size 0.2, for example.")
    with options_in_errors():
        check_model_path(output, overwrite=options["overwrite"])
        start = perf_counter()
        model, test = train(path, columns, splits, learner, unlabeled)
    model.save(output, overwrite=options["overwrite"])
    _describe_training(model, output, perf_counter() - start)
    if len(test):
        report(model, test, f"held-out rows of {path.name}", page)


def check_result_file(path: Path, option: str, tables: Iterable[Path], model: Path, overwrite: bool) -> None:
    """Raise an error if a result would replace a table, the model or, without ``overwrite``, another file."""
    if any(_is_same_file(path, table) for table in tables):
        raise ValueError(f"{option} is the table that is read; name another file.")
    if _is_same_file(path, model):
        raise ValueError(f"{option} {path} is the model; name another file.")
    check_output_file(path, option)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{option}: {path} already exists: use --overwrite to replace it, or name another file.")


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two names, links included, lead to the same file."""
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return path.resolve() == other.resolve()


def load_model(path: Path) -> TableModel:
    """Load a model of tables."""
    from psilearn.app.tables.table_model import TableModel

    if not path.exists():
        raise FileNotFoundError(f"The model {path} does not exist; check the path.")
    return TableModel.load(path)


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


def report(model: TableModel, table: Table, name: str, page: Path | None) -> None:
    """Evaluate a model on a table, print the metrics, and write the page."""
    from psilearn.app.tables.table_evaluation import evaluate

    evaluation = evaluate(model, table)
    typer.echo(f"{name}: {count_rows(evaluation.n_rows)}")
    width = max(len(metric.name) for metric in evaluation.metrics)
    for metric in evaluation.metrics:
        typer.echo(f"  {metric.name:{width}}  {metric.value}  ({metric.direction})")
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


def name_options(message: str) -> str:
    """Return a message of the library with the options of ``psilearn fit`` and ``psilearn search``."""
    for pattern, replacement in _PHRASES:
        message = pattern.sub(replacement, message)
    return re.sub(rf"<({_NAMES})>", lambda match: OPTIONS[match[1]], message)


def word_note(text: str) -> str | None:
    """Return a warning of the library for the command line; None if it suggests a grid that no option sets."""
    edge = _EDGE.fullmatch(text)
    if edge is None:
        return name_options(text)
    name, value, end = edge.groups()
    if name not in OPTIONS:
        return None
    return f"The best value of {OPTIONS[name]}, {value}, is the {end} of its grid. Add values beyond it."


@contextmanager
def options_in_errors() -> Iterator[None]:
    """Name options instead of parameters in the errors of a training."""
    try:
        yield
    except (ValueError, MemoryError, FileExistsError) as error:
        message = name_options(str(error))
        if message == str(error):
            raise
        raise type(error)(message) from error
