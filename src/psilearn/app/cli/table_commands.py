"""The commands ``fit``, ``search``, ``predict`` and ``evaluate``, on the models of :mod:`psilearn.app.tables`."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from psilearn.app.cli import table_reports as reports
from psilearn.app.console import print_status, report_errors

if TYPE_CHECKING:
    from psilearn.app.tables.table_training import Method

Number = TypeVar("Number", int, float)

FORMATS = ".csv, .tsv, .arff, .svm (each also .gz) or .parquet"
CANDIDATES = "known (outputs of the training rows), near (also label sets that differ by one label) or all"


DATA, COLUMNS, MODEL = "Training data", "Columns", "Model"  # headings of the help


def _option(help: str, *names: str, panel: str | None = MODEL, **limits: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **limits)


def _shared(name: str, kind: Any, default: Any, panel: str | None, help: str, *names: str, **limits: Any) -> Parameter:
    annotation = Annotated[kind, _option(help, *names, panel=panel, **limits)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


ModelArgument = Annotated[Path, typer.Argument(help="Model, from `psilearn fit` or `psilearn search`.")]
TableArgument = Annotated[Path, typer.Argument(help=f"Table of the training rows: {FORMATS}.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="File of the model to write.")]
PageOption = Annotated[Path | None, typer.Option("--html", help="HTML report to write.")]
ReplaceOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that exists, once the new one is complete.")
]

NAMES = (
    "Output columns: names with commas, a pattern such as 'tag_*', a range such as -14: (the last 14 columns), or a "
    "file with the output columns. Can be repeated."
)
KIND = (
    "Kind of the outputs: labels (0/1 columns), tags, classes, orders (b>c>a), ranks or numbers. By default it is "
    "found from the cells."
)
SCALE = "Scale columns of numbers to mean 0 and deviation 1: auto (unless most entries are 0), standard or none."
IMPUTE = "Fill missing numbers with the median of the training rows; a missing category is a category of its own."
REPLACE = "Replace the model and the report that exist, once the new ones are complete."
UNLABELED = "Table of further outputs without inputs, with the output columns."
CALIBRATION = "Share of the training rows that is held out to calibrate `psilearn predict --coverage`."
SHARED = (  # the options of fit and search, with the names of the fields of Training
    _shared("outputs", list[str], (), COLUMNS, NAMES),
    _shared("label_column", str | None, None, COLUMNS, "Output column of tags in one text, such as red;round."),
    _shared("separator", str | None, None, COLUMNS, "Separator of tags. By default a semicolon."),
    _shared("kind", str | None, None, COLUMNS, KIND),
    _shared("text", list[str], (), COLUMNS, "Columns of texts whose words are inputs (TF-IDF)."),
    _shared("categorical", list[str], (), COLUMNS, "Columns of categories, also if they are numbers."),
    _shared("drop", list[str], (), COLUMNS, "Columns to leave out, such as row ids."),
    _shared("scale", str, "auto", COLUMNS, SCALE),
    _shared("impute", bool, False, COLUMNS, IMPUTE, "--impute"),
    _shared("unlabeled", Path | None, None, DATA, UNLABELED),
    _shared("test_size", float, 0.0, DATA, "Share of the rows that is held out to test the model."),
    _shared("calibration", float, 0.0, DATA, CALIBRATION),
    _shared("method", str, "oel", MODEL, "oel, kde or iokr."),
    _shared("landmarks", int | None, None, MODEL, "Number of training rows that span the regression.", min=1),
    _shared("output_landmarks", int | None, None, MODEL, "Number of outputs that span the embedding.", min=1),
    _shared("device", str | None, None, MODEL, "Device of torch, cpu or cuda. By default, NumPy computes on the CPU."),
    _shared("seed", int, 0, None, "Random seed.", min=0, max=2**32 - 1),
    _shared("page", Path | None, None, None, "HTML report to write.", "--html"),
    _shared("overwrite", bool, False, None, REPLACE, "--overwrite"),
)


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace ``**shared`` in the signature of a command by the options of ``fit`` and ``search``."""
    own = signature(command, eval_str=True)
    kept = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    command.__signature__ = own.replace(parameters=[*kept, *SHARED])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*kept, *SHARED)}
    return command


def _make_method(options: dict[str, Any]) -> Method:
    from psilearn.app.tables.table_training import Method

    return Method(options["method"], *(options[name] for name in ("landmarks", "output_landmarks", "seed", "device")))


@_with_shared_options
def fit(
    table: TableArgument,
    output: OutputOption,
    input_kernel: Annotated[str | None, _option("Such as gaussian, gaussian:0.5, cosine.")] = None,
    output_kernel: Annotated[str | None, _option("Such as dice, tanimoto, kemeny, gaussian.")] = None,
    alpha: Annotated[float, _option("Ridge parameter λ.")] = 1e-4,
    components: Annotated[int | None, _option("Dimension p of the embedding. By default all.", min=1)] = None,
    supervision: Annotated[float | None, _option("Weight c of the fitted values. By default 0.5.")] = None,
    candidates: Annotated[str | None, _option(f"Candidates of predictions: {CANDIDATES}.")] = None,
    **shared: Any,
) -> None:
    """Train a model on a table and save it.

    Columns that are not outputs are inputs. `psilearn search` chooses the parameters by validation.
    """
    with report_errors(), reports.print_warnings():
        from psilearn.app.tables.table_training import Fit, make_kernel

        names = _split_candidates(candidates) or ()
        if len(names) > 1:
            raise ValueError("--candidates of fit is one name; psilearn search compares several.")
        learner = Fit(
            _make_method(shared),
            None if input_kernel is None else make_kernel(input_kernel, "--input-kernel"),
            None if output_kernel is None else make_kernel(output_kernel, "--output-kernel"),
            alpha,
            components,
            supervision,
            *names,
        )
        reports.train_and_save(table, output, shared, learner)


@_with_shared_options
def search(
    table: TableArgument,
    output: OutputOption,
    scoring: Annotated[
        str | None,
        _option(
            "Score that chooses: f1, jaccard, subset_accuracy, hamming, kendall_tau, loss, mse, … By default that of "
            "the kind of outputs."
        ),
    ] = None,
    folds: Annotated[
        int | None, _option("Number of folds. By default five random splits of 80 % and 20 %.", min=2)
    ] = None,
    input_kernel: Annotated[list[str] | None, _option("Input kernels to compare. Can be repeated.")] = None,
    output_kernel: Annotated[list[str] | None, _option("Output kernels to compare. Can be repeated.")] = None,
    alpha: Annotated[str | None, _option("Values of λ, with commas.")] = None,
    components: Annotated[str | None, _option("Values of p, with commas.")] = None,
    supervision: Annotated[str | None, _option("Values of c, with commas.")] = None,
    candidates: Annotated[str | None, _option(f"Candidates to compare, with commas: {CANDIDATES}.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of processes; -1 for one per core.")] = None,
    **shared: Any,
) -> None:
    """Choose the parameters of a model by validation on a table, and save the best model."""
    with report_errors(), reports.print_warnings():
        from psilearn.app.tables.table_training import Search, make_kernels

        learner = Search(
            _make_method(shared),
            make_kernels(input_kernel, "--input-kernel"),
            make_kernels(output_kernel, "--output-kernel"),
            alphas=_split_numbers(alpha, float, "--alpha"),
            components=_split_numbers(components, int, "--components"),
            supervisions=_split_numbers(supervision, float, "--supervision"),
            candidates=_split_candidates(candidates),
            scoring=scoring,
            folds=folds,
            n_jobs=jobs,
        )
        reports.train_and_save(table, output, shared, learner)


def predict(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help=f"Table with the input columns: {FORMATS}.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or TSV file to write. By default the standard output.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="List the nearest outputs of each row instead, with distances.", min=1)
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(help="List outputs that contain the true one with this probability; train with --calibration."),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Columns of the table to copy, such as row ids.")] = None,
    distances: Annotated[
        bool, typer.Option("--distances", help="Add the squared distance of each prediction.")
    ] = False,
    overwrite: ReplaceOption = False,
) -> None:
    """Predict the outputs of the rows of a table, in the form of the training table."""
    with report_errors(), reports.print_warnings():
        from psilearn.app.tables.prediction_files import PredictionOptions, predict_file

        if output is not None:
            reports.check_result_file(output, "--output", [table], model, overwrite)
        kept = [name for entry in keep or () for name in entry.split(",")]
        options = PredictionOptions(top, coverage, kept, distances)
        start = perf_counter()
        n_rows, n_unknown = predict_file(reports.load_model(model), table, output, options)
        if n_unknown:
            cells = "1 cell has" if n_unknown == 1 else f"{n_unknown:,} cells have"
            print_status(f"Note: {cells} a category that the training rows did not have.")
        if output is not None:
            print_status(f"{output}: {reports.count_rows(n_rows)} predicted in {perf_counter() - start:.1f} s.")


def evaluate(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help=f"Table with the input and output columns: {FORMATS}.")],
    page: PageOption = None,
    overwrite: ReplaceOption = False,
) -> None:
    """Compare the predictions of a model with the outputs of a table that it was not trained on."""
    with report_errors(), reports.print_warnings():
        from psilearn.app.tables.table_formats import read_table

        if page is not None:
            reports.check_result_file(page, "--html", [table], model, overwrite)
        loaded = reports.load_model(model)
        if loaded.was_trained_on(table):
            print_status(
                f"Note: {table} is the training file: these rows were used for training, so that the metrics are too "
                f"optimistic. Evaluate on rows that were held out."
            )
        reports.report(loaded, read_table(table, loaded.text_columns), table.name, page)


def _split_numbers(text: str | None, convert: Callable[[str], Number], option: str) -> list[Number] | None:
    """Return the numbers of a list with commas."""
    if text is None:
        return None
    try:
        return [convert(word) for word in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{option} must be numbers with commas; got {text!r}.") from error


def _split_candidates(text: str | None) -> list[str] | None:
    """Return the names of candidates in a list with commas."""
    from psilearn.decoding import CANDIDATE_NAMES

    names = None if text is None else [name.strip() for name in text.split(",")]
    unknown = [name for name in names or () if name not in CANDIDATE_NAMES]
    if unknown:
        raise ValueError(f"--candidates must be {', '.join(CANDIDATE_NAMES)}; got {unknown[0]!r}.")
    return names
