"""The options that the commands for tables share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from psilearn.app.tables.column_choice import ColumnOptions

Number = TypeVar("Number", int, float)

TRAINING, COLUMNS, LEARNING = "Training data", "Columns", "Model"
FORMATS = ".csv, .tsv, .arff, .svm (each also .gz) or .parquet"
TableArgument = Annotated[Path, typer.Argument(help=f"Table of the training rows: {FORMATS}.")]
ModelArgument = Annotated[Path, typer.Argument(help="Folder of the model, from `psilearn fit` or `psilearn search`.")]
NewTableArgument = Annotated[Path, typer.Argument(help=f"Table with the input columns: {FORMATS}.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Folder of the model, to create.")]
OutputsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Output columns: names with commas, a pattern such as 'tag_*', a range such as -14: (the last 14 "
        "columns), or a file with the output columns. Can be repeated.",
        rich_help_panel=COLUMNS,
    ),
]
LabelColumnOption = Annotated[
    str | None, typer.Option(help="Output column of tags in one text, such as red;round.", rich_help_panel=COLUMNS)
]
SeparatorOption = Annotated[
    str | None, typer.Option(help="Separator of tags. By default a semicolon.", rich_help_panel=COLUMNS)
]
KindOption = Annotated[
    str | None,
    typer.Option(
        help="Kind of the outputs: labels (0/1 columns), tags, classes, orders (b>c>a), ranks or numbers. By default "
        "it is found from the cells.",
        rich_help_panel=COLUMNS,
    ),
]
TextOption = Annotated[
    list[str] | None, typer.Option(help="Columns of texts whose words are inputs (TF-IDF).", rich_help_panel=COLUMNS)
]
CategoricalOption = Annotated[
    list[str] | None, typer.Option(help="Columns of categories, also if they are numbers.", rich_help_panel=COLUMNS)
]
DropOption = Annotated[
    list[str] | None, typer.Option(help="Columns to leave out, such as row ids.", rich_help_panel=COLUMNS)
]
ScaleOption = Annotated[
    str,
    typer.Option(
        help="Whether columns of numbers are scaled to mean 0 and deviation 1: auto (unless most entries are 0), "
        "standard or none.",
        rich_help_panel=COLUMNS,
    ),
]
ImputeOption = Annotated[
    bool,
    typer.Option(
        "--impute",
        help="Fill missing numbers with the median of the training rows; a missing category is a category of its own.",
        rich_help_panel=COLUMNS,
    ),
]
UnlabeledOption = Annotated[
    Path | None,
    typer.Option(help="Table of further outputs without inputs, with the output columns.", rich_help_panel=TRAINING),
]
TestSizeOption = Annotated[
    float, typer.Option(help="Share of the rows that is held out to test the model.", rich_help_panel=TRAINING)
]
CalibrationOption = Annotated[
    float,
    typer.Option(
        help="Share of the training rows that is held out to calibrate `psilearn predict --coverage`.",
        rich_help_panel=TRAINING,
    ),
]
SeedOption = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
PageOption = Annotated[Path | None, typer.Option("--html", help="HTML report to write.")]
OverwriteOption = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a model in the folder and the report, once the new ones are complete."),
]
ReplaceOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that exists, once the new one is complete.")
]
MethodOption = Annotated[str, typer.Option(help="oel, kde or iokr.", rich_help_panel=LEARNING)]
LandmarksOption = Annotated[
    int | None,
    typer.Option(
        help="Number of training rows that span the regression, for many rows.", min=1, rich_help_panel=LEARNING
    ),
]
OutputLandmarksOption = Annotated[
    int | None, typer.Option(help="Number of outputs that span the embedding.", min=1, rich_help_panel=LEARNING)
]
DeviceOption = Annotated[
    str | None,
    typer.Option(help="Device of torch, cpu or cuda. By default, NumPy computes on the CPU.", rich_help_panel=LEARNING),
]
CandidatesHelp = "known (outputs of the training rows), near (also label sets that differ by one label) or all"


def column_options(
    outputs: list[str] | None,
    label_column: str | None,
    separator: str | None,
    kind: str | None,
    text: list[str] | None,
    categorical: list[str] | None,
    drop: list[str] | None,
    scale: str,
    impute: bool,
) -> ColumnOptions:
    """Return the options that concern columns."""
    from psilearn.app.tables.column_choice import ColumnOptions

    return ColumnOptions(
        outputs or (), label_column, separator, kind, text or (), categorical or (), drop or (), scale, impute
    )


def split_numbers(text: str | None, convert: Callable[[str], Number], option: str) -> list[Number] | None:
    """Return the numbers of a list with commas."""
    if text is None:
        return None
    try:
        return [convert(word) for word in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{option} must be numbers with commas; got {text!r}.") from error


def check_candidate(text: str | None) -> str | None:
    """Return the only name of candidates."""
    names = split_candidates(text)
    if names is not None and len(names) > 1:
        raise ValueError("--candidates of fit is one name; psilearn search compares several.")
    return names[0] if names else None


def split_candidates(text: str | None) -> list[str] | None:
    """Return the names of candidates in a list with commas."""
    from psilearn.decoding.as_candidates import CANDIDATE_NAMES

    names = None if text is None else [name.strip() for name in text.split(",")]
    unknown = [name for name in names or () if name not in CANDIDATE_NAMES]
    if unknown:
        raise ValueError(f"--candidates must be {', '.join(CANDIDATE_NAMES)}; got {unknown[0]!r}.")
    return names
