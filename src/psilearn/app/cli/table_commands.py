"""The commands ``psilearn fit``, ``search``, ``predict`` and ``evaluate``, on the models of :mod:`psilearn.app.tables`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from psilearn.app.cli.table_options import (
    FORMATS,
    LEARNING,
    CalibrationOption,
    CandidatesHelp,
    CategoricalOption,
    DeviceOption,
    DropOption,
    ImputeOption,
    KindOption,
    LabelColumnOption,
    LandmarksOption,
    MethodOption,
    ModelArgument,
    NewTableArgument,
    OutputLandmarksOption,
    OutputOption,
    OutputsOption,
    OverwriteOption,
    PageOption,
    ReplaceOption,
    ScaleOption,
    SeedOption,
    SeparatorOption,
    TableArgument,
    TestSizeOption,
    TextOption,
    UnlabeledOption,
    check_candidate,
    column_options,
    split_candidates,
    split_numbers,
)
from psilearn.app.cli.table_outputs import check_result_file
from psilearn.app.cli.table_reports import count_rows, load_model, print_status, print_warnings, report, train_and_save
from psilearn.app.console import report_errors


def fit(
    table: TableArgument,
    output: OutputOption,
    outputs: OutputsOption = None,
    label_column: LabelColumnOption = None,
    separator: SeparatorOption = None,
    kind: KindOption = None,
    text: TextOption = None,
    categorical: CategoricalOption = None,
    drop: DropOption = None,
    scale: ScaleOption = "auto",
    impute: ImputeOption = False,
    unlabeled: UnlabeledOption = None,
    test_size: TestSizeOption = 0.0,
    calibration: CalibrationOption = 0.0,
    method: MethodOption = "oel",
    input_kernel: Annotated[
        str | None, typer.Option(help="Such as gaussian, gaussian:0.5, cosine.", rich_help_panel=LEARNING)
    ] = None,
    output_kernel: Annotated[
        str | None, typer.Option(help="Such as dice, tanimoto, kemeny, gaussian.", rich_help_panel=LEARNING)
    ] = None,
    alpha: Annotated[float, typer.Option(help="Ridge parameter λ.", rich_help_panel=LEARNING)] = 1e-4,
    components: Annotated[
        int | None, typer.Option(help="Dimension p of the embedding. By default all.", min=1, rich_help_panel=LEARNING)
    ] = None,
    supervision: Annotated[
        float | None, typer.Option(help="Weight c of the fitted values. By default 0.5.", rich_help_panel=LEARNING)
    ] = None,
    landmarks: LandmarksOption = None,
    output_landmarks: OutputLandmarksOption = None,
    candidates: Annotated[
        str | None, typer.Option(help=f"Candidates of predictions: {CandidatesHelp}.", rich_help_panel=LEARNING)
    ] = None,
    seed: SeedOption = 0,
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    device: DeviceOption = None,
) -> None:
    """Train a model on a table and save it.

    Columns that are not outputs are inputs. `psilearn search` chooses the parameters by validation.
    """
    with report_errors(), print_warnings():
        from psilearn.app.tables.kernel_names import make_kernel
        from psilearn.app.tables.table_training import Method, SplitOptions, make_fit

        columns = column_options(outputs, label_column, separator, kind, text, categorical, drop, scale, impute)
        learner = make_fit(
            Method(method, landmarks, output_landmarks, seed, device),
            None if input_kernel is None else make_kernel(input_kernel, "--input-kernel"),
            None if output_kernel is None else make_kernel(output_kernel, "--output-kernel"),
            alpha=alpha,
            components=components,
            supervision=supervision,
            candidates=check_candidate(candidates),
        )
        splits = SplitOptions(test_size, calibration, seed)
        train_and_save(table, output, columns, splits, learner, unlabeled, page, overwrite)


def search(
    table: TableArgument,
    output: OutputOption,
    outputs: OutputsOption = None,
    label_column: LabelColumnOption = None,
    separator: SeparatorOption = None,
    kind: KindOption = None,
    text: TextOption = None,
    categorical: CategoricalOption = None,
    drop: DropOption = None,
    scale: ScaleOption = "auto",
    impute: ImputeOption = False,
    unlabeled: UnlabeledOption = None,
    test_size: TestSizeOption = 0.0,
    calibration: CalibrationOption = 0.0,
    method: MethodOption = "oel",
    scoring: Annotated[
        str | None,
        typer.Option(
            help="Score that chooses: f1, jaccard, subset_accuracy, hamming, kendall_tau, loss, mse, … By default that "
            "of the kind of outputs.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            help="Number of folds. By default five random splits of 80 % and 20 %.", min=2, rich_help_panel=LEARNING
        ),
    ] = None,
    input_kernel: Annotated[
        list[str] | None, typer.Option(help="Input kernels to compare. Can be repeated.", rich_help_panel=LEARNING)
    ] = None,
    output_kernel: Annotated[
        list[str] | None, typer.Option(help="Output kernels to compare. Can be repeated.", rich_help_panel=LEARNING)
    ] = None,
    alpha: Annotated[str | None, typer.Option(help="Values of λ, with commas.", rich_help_panel=LEARNING)] = None,
    components: Annotated[str | None, typer.Option(help="Values of p, with commas.", rich_help_panel=LEARNING)] = None,
    supervision: Annotated[str | None, typer.Option(help="Values of c, with commas.", rich_help_panel=LEARNING)] = None,
    candidates: Annotated[
        str | None,
        typer.Option(help=f"Candidates to compare, with commas: {CandidatesHelp}.", rich_help_panel=LEARNING),
    ] = None,
    landmarks: LandmarksOption = None,
    output_landmarks: OutputLandmarksOption = None,
    jobs: Annotated[int | None, typer.Option(help="Number of processes; -1 for one per core.")] = None,
    seed: SeedOption = 0,
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    device: DeviceOption = None,
) -> None:
    """Choose the parameters of a model by validation on a table, and save the best model."""
    with report_errors(), print_warnings():
        from psilearn.app.tables.kernel_names import make_kernels
        from psilearn.app.tables.table_training import Method, SplitOptions, make_search

        columns = column_options(outputs, label_column, separator, kind, text, categorical, drop, scale, impute)
        learner = make_search(
            Method(method, landmarks, output_landmarks, seed, device),
            make_kernels(input_kernel, "--input-kernel"),
            make_kernels(output_kernel, "--output-kernel"),
            alphas=split_numbers(alpha, float, "--alpha"),
            components=split_numbers(components, int, "--components"),
            supervisions=split_numbers(supervision, float, "--supervision"),
            candidates=split_candidates(candidates),
            scoring=scoring,
            folds=folds,
            n_jobs=jobs,
        )
        splits = SplitOptions(test_size, calibration, seed)
        train_and_save(table, output, columns, splits, learner, unlabeled, page, overwrite)


def predict(
    model: ModelArgument,
    table: NewTableArgument,
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
    with report_errors(), print_warnings():
        from psilearn.app.tables.prediction_files import PredictionOptions, predict_file

        if output is not None:
            check_result_file(output, "--output", [table], model, overwrite)
        kept = [name for entry in keep or () for name in entry.split(",")]
        options = PredictionOptions(top, coverage, kept, distances)
        start = perf_counter()
        n_rows, n_unknown = predict_file(load_model(model), table, output, options)
        if n_unknown:
            cells = "1 cell has" if n_unknown == 1 else f"{n_unknown:,} cells have"
            print_status(f"Note: {cells} a category that the training rows did not have.")
        if output is not None:
            print_status(f"{output}: {count_rows(n_rows)} predicted in {perf_counter() - start:.1f} s.")


def evaluate(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help=f"Table with the input and output columns: {FORMATS}.")],
    page: PageOption = None,
    overwrite: ReplaceOption = False,
) -> None:
    """Compare the predictions of a model with the outputs of a table that it was not trained on."""
    with report_errors(), print_warnings():
        from psilearn.app.tables.table_evaluation import evaluate as evaluate_model
        from psilearn.app.tables.table_formats import read_table

        if page is not None:
            check_result_file(page, "--html", [table], model, overwrite)
        loaded = load_model(model)
        if loaded.was_trained_on(table):
            print_status(
                f"Note: {table} is the training file: these rows were used for training, so that the metrics are too "
                f"optimistic. Evaluate on rows that were held out."
            )
        result = evaluate_model(loaded, read_table(table, loaded.text_columns))
        report(loaded, result, table.name, page)


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    for command in (fit, search, predict, evaluate):
        app.command()(command)
