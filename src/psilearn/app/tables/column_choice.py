"""The columns that a user names: outputs, texts, categories, columns to leave out; everything else is an input."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from psilearn.app.tables.cell_checks import check_almost_labels, check_almost_numbers, warn_about_constants
from psilearn.app.tables.class_form import ClassColumns
from psilearn.app.tables.input_columns import (
    MAX_CATEGORIES,
    SCALES,
    CategoryColumn,
    InputColumns,
    NumberColumns,
    TextColumn,
)
from psilearn.app.tables.label_forms import LabelColumns, TagColumn, is_truth_column
from psilearn.app.tables.number_form import NumberOutputs
from psilearn.app.tables.output_forms import KINDS, OutputForm
from psilearn.app.tables.ranking_forms import OrderColumn, RankColumns
from psilearn.app.tables.table import Table, join_columns, list_names, require_columns
from psilearn.app.tables.table_formats import is_table_file, read_table
from psilearn_lab.datasets import read_mulan

SLICE = re.compile(r"(-?[0-9]{1,9})?:(-?[0-9]{1,9})?")
DEFAULT_SEPARATOR = ";"
MAX_CLASSES = 50  # different whole numbers of an output that may be codes of classes


@dataclass(frozen=True)
class ColumnOptions:
    """The options of a command that concern columns; each entry of a list is a name, a pattern or names with commas."""

    outputs: Sequence[str] = ()
    label_column: str | None = None
    separator: str | None = None
    kind: str | None = None
    text: Sequence[str] = ()
    categorical: Sequence[str] = ()
    drop: Sequence[str] = ()
    scale: str = "auto"
    impute: bool = False

    def check(self) -> None:
        """Raise a ValueError for options that exclude each other."""
        if self.outputs and self.label_column:
            raise ValueError("--outputs and --label-column both name outputs: use one of them.")
        if self.kind is not None and self.kind not in KINDS:
            raise ValueError(f"--kind must be one of {', '.join(KINDS)}; got {self.kind!r}.")
        if self.scale not in SCALES:
            raise ValueError(f"--scale must be one of {', '.join(SCALES)}; got {self.scale!r}.")
        if self.separator == "":
            raise ValueError("--separator must not be empty.")


@dataclass(frozen=True)
class Columns:
    """The names of the columns by their role."""

    outputs: tuple[str, ...]
    text: tuple[str, ...]
    categorical: tuple[str, ...]
    inputs: tuple[str, ...]  # all of them, in the order of the table


def read_training_table(path: Path, options: ColumnOptions) -> tuple[Table, Columns]:
    """Read a table, and a file of outputs if ``--outputs`` names one; find the role of each column."""
    options.check()
    named = [*options.text, *options.categorical, *([options.label_column] if options.label_column else [])]
    forced = {name for entry in named for name in (entry, *entry.split(","))}
    table = read_table(path, forced)
    table, outputs = _find_outputs(table, options)
    dropped = _select(table, options.drop, "--drop")
    text, categorical = _select(table, options.text, "--text"), _select(table, options.categorical, "--categorical")
    _check_disjoint({"--outputs": outputs, "--drop": dropped, "--text": text, "--categorical": categorical})
    left_out = {*outputs, *dropped}
    inputs = tuple(name for name in table.names if name not in left_out)
    if not inputs:
        raise ValueError(f"{path}: all columns are outputs or left out; there is no input.")
    return table, Columns(tuple(outputs), tuple(text), tuple(categorical), inputs)


def fit_inputs(table: Table, columns: Columns, options: ColumnOptions) -> InputColumns:
    """Learn from training rows how columns become inputs."""
    others = [name for name in columns.inputs if name in table.texts and name not in columns.text]
    unnamed = [name for name in others if name not in columns.categorical]
    check_almost_numbers(table, unnamed, "correct it, or use --categorical {name} or --drop {name}")
    for name in unnamed:
        _check_few_categories(table, name)
    warn_about_constants(table, columns.inputs)
    numbers = [name for name in columns.inputs if name not in table.texts]
    return InputColumns(
        NumberColumns.fit(table, numbers, options.scale, options.impute),
        tuple(CategoryColumn.fit(table, name, options.impute) for name in others),
        tuple(TextColumn.fit(table, name) for name in columns.text),
    )


def fit_outputs(table: Table, columns: Columns, options: ColumnOptions) -> OutputForm:
    """Learn the form of the outputs from training rows; without ``--kind`` it depends on their cells."""
    names = columns.outputs
    kind = options.kind or _find_kind(table, names, options)
    if kind in ("tags", "orders") and len(names) > 1:
        raise ValueError(f"{table.path}: {kind} are one column; --outputs names {len(names)}.")
    if kind == "tags":
        return TagColumn.fit(table, names[0], options.separator or table.separator or DEFAULT_SEPARATOR)
    if kind == "orders":
        return OrderColumn.fit(table, names[0])
    if kind == "ranks":
        return RankColumns(names)
    if kind == "classes":
        return ClassColumns.fit(table, names)
    if kind == "labels":
        return LabelColumns.fit(table, names)
    if options.kind is None:
        _warn_about_classes(table, names)
    return NumberOutputs.fit(table, names, options.scale)


def _find_kind(table: Table, names: Sequence[str], options: ColumnOptions) -> str:
    """Return the kind of outputs that the options or the cells show."""
    is_text = [name in table.texts for name in names]
    if options.label_column or options.separator or (table.separator and tuple(names) == table.outputs):
        return "tags"
    if all(is_truth_column(table, name) for name in names):
        return "labels"
    if len(names) == 1 and is_text[0] and all(">" in cell for cell in table.texts[names[0]]):
        return "orders"
    check_almost_numbers(table, names, "correct it, or use --kind classes")
    if all(is_text):
        return "classes"
    if any(is_text):
        listed = ", ".join(repr(name) for name, text in zip(names, is_text, strict=True) if text)
        raise ValueError(
            f"{table.path}: some outputs are numbers, but not {listed[:300]}; --kind classes reads all as words."
        )
    if len(names) > 1 and _are_permutations(table, names):
        return "ranks"
    check_almost_labels(table, names)
    return "numbers"


def _warn_about_classes(table: Table, names: Sequence[str]) -> None:
    """Warn about a single output that consists of few different whole numbers, which may be codes of classes."""
    values = set(table.get_texts(names[0])) if len(names) == 1 else set()
    if 0 < len(values) <= min(MAX_CLASSES, len(table) // 5) and all(value.isdecimal() for value in values):
        warnings.warn(
            f"{names[0]!r} has {len(values)} different whole numbers, which are predicted as numbers; if they are "
            f"classes, use --kind classes.",
            UserWarning,
            stacklevel=2,
        )


def _are_permutations(table: Table, names: Sequence[str]) -> bool:
    matrix = table.get_numbers(names, allow_missing=True)
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return bool((np.sort(dense, axis=1) == np.arange(1, dense.shape[1] + 1)).all())


def _find_outputs(table: Table, options: ColumnOptions) -> tuple[Table, list[str]]:
    """Return the output columns; if ``--outputs`` is a file, the table with its columns."""
    if options.label_column:
        require_columns(table, [options.label_column], "--label-column")
        return table, [options.label_column]
    if len(options.outputs) == 1 and options.outputs[0] not in table.names:
        file = Path(options.outputs[0])
        if file.suffix.lower() == ".xml" and file.exists():
            return table, list(read_mulan(table.path, file).label_names)
        if is_table_file(file):
            joined = join_columns(table, read_table(file))
            return joined, list(joined.outputs)
    if options.outputs:
        return table, _select(table, options.outputs, "--outputs")
    if not table.outputs:
        raise ValueError(
            f"{table.path}: name the outputs with --outputs or --label-column; the columns are {list_names(table)}."
        )
    return table, list(table.outputs)


def _select(table: Table, entries: Sequence[str], option: str) -> list[str]:
    """Return the columns that entries name, in the order of the table: names, patterns such as tag_*, or slices."""
    known = set(table.names)
    parts = [part for entry in entries for part in ([entry] if entry in known else entry.split(","))]
    chosen: set[str] = set()
    for part in (part.strip() for part in parts):
        found = _match(table, part)
        if not found:
            require_columns(table, [part], option)
        chosen.update(found)
    return [name for name in table.names if name in chosen]


def _match(table: Table, part: str) -> Sequence[str]:
    if part in table.names:
        return [part]
    if limits := SLICE.fullmatch(part):
        first, last = (int(limit) if limit else None for limit in limits.groups())
        return table.names[first:last]
    return [name for name in table.names if fnmatchcase(name, part)]


def _check_disjoint(roles: dict[str, list[str]]) -> None:
    seen: dict[str, str] = {}
    for option, names in roles.items():
        for name in names:
            if name in seen:
                raise ValueError(f"The column {name!r} is named by {seen[name]} and by {option}.")
            seen[name] = option


def _check_few_categories(table: Table, name: str) -> None:
    """Raise an error for a column of texts that are too many to be categories."""
    n_different = len(set(table.texts[name]))
    if n_different > min(MAX_CATEGORIES, max(2, len(table) // 2)):
        raise ValueError(
            f"{table.path}: the column {name!r} has {n_different} different texts, such as "
            f"{table.texts[name][0][:40]!r}. Say what it is: --text {name} for words, --categorical {name} for "
            f"categories, or --drop {name} to leave it out."
        )
