"""The columns that a user names: outputs, texts, categories, columns to leave out; everything else is an input."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from xml.parsers import expat

import numpy as np

from psilearn.app.tables import input_columns
from psilearn.app.tables import output_forms as forms
from psilearn.app.tables.table import (
    DECIMAL_COMMA,
    MISSING,
    Table,
    find_non_number,
    is_number,
    join_columns,
    list_names,
    non_number_error,
    require_columns,
    row_error,
)
from psilearn.app.tables.table_formats import is_table_file, read_table, table_format
from psilearn.utils import convert_read_errors, raise_for_document_type, require_regular_file

SLICE = re.compile(r"(-?[0-9]{1,9})?:(-?[0-9]{1,9})?")
DEFAULT_SEPARATOR = ";"
MAX_CLASSES = 50  # different whole numbers of an output that may be codes of classes
LABEL_SHARE = 0.95  # columns with at least this share of 0 and 1 are probably labels
MAX_CONSTANT = 5  # names of constant columns in a note


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
        if self.kind is not None and self.kind not in forms.KINDS:
            raise ValueError(f"--kind must be one of {', '.join(forms.KINDS)}; got {self.kind!r}.")
        if self.scale not in input_columns.SCALES:
            raise ValueError(f"--scale must be one of {', '.join(input_columns.SCALES)}; got {self.scale!r}.")
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


def fit_inputs(table: Table, columns: Columns, options: ColumnOptions) -> input_columns.InputColumns:
    """Learn from training rows how columns become inputs."""
    others = [name for name in columns.inputs if name in table.texts and name not in columns.text]
    unnamed = [name for name in others if name not in columns.categorical]
    _check_almost_numbers(table, unnamed, "correct it, or use --categorical {name} or --drop {name}")
    for name in unnamed:
        _check_few_categories(table, name)
    _warn_about_constants(table, columns.inputs)
    numbers = [name for name in columns.inputs if name not in table.texts]
    return input_columns.InputColumns(
        numbers=input_columns.NumberColumns.fit(table, numbers, options.scale, options.impute),
        categories=tuple(input_columns.CategoryColumn.fit(table, name, options.impute) for name in others),
        texts=tuple(input_columns.TextColumn.fit(table, name) for name in columns.text),
    )


def fit_outputs(table: Table, columns: Columns, options: ColumnOptions) -> forms.OutputForm:
    """Learn the form of the outputs from training rows; without ``--kind`` it depends on their cells."""
    names = columns.outputs
    kind = options.kind or _find_kind(table, names, options)
    if kind in ("tags", "orders") and len(names) > 1:
        raise ValueError(f"{table.path}: {kind} are one column; --outputs names {len(names)}.")
    if kind == "tags":
        return forms.TagColumn.fit(table, names[0], options.separator or table.separator or DEFAULT_SEPARATOR)
    if kind == "orders":
        return forms.OrderColumn.fit(table, names[0])
    if kind == "ranks":
        return forms.RankColumns(names=names)
    if kind == "classes":
        return forms.ClassColumns.fit(table, names)
    if kind == "labels":
        return forms.LabelColumns.fit(table, names)
    if options.kind is None:
        _warn_about_classes(table, names)
    return forms.NumberOutputs.fit(table, names, options.scale)


def _find_kind(table: Table, names: Sequence[str], options: ColumnOptions) -> str:
    """Return the kind of outputs that the options or the cells show."""
    is_text = [name in table.texts for name in names]
    if options.label_column or options.separator or (table.separator and tuple(names) == table.outputs):
        return "tags"
    if all(forms.is_truth_column(table, name) for name in names):
        return "labels"
    if len(names) == 1 and is_text[0] and all(">" in cell for cell in table.texts[names[0]]):
        return "orders"
    _check_almost_numbers(table, names, "correct it, or use --kind classes")
    if all(is_text):
        return "classes"
    if any(is_text):
        listed = ", ".join(repr(name) for name, text in zip(names, is_text, strict=True) if text)
        raise ValueError(
            f"{table.path}: some outputs are numbers, but not {listed[:300]}; --kind classes reads all as words."
        )
    if len(names) > 1 and _are_permutations(table, names):
        return "ranks"
    _check_almost_labels(table, names)
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
    dense = input_columns.to_dense(table.get_numbers(names, allow_missing=True))
    return bool((np.sort(dense, axis=1) == np.arange(1, dense.shape[1] + 1)).all())


def _find_outputs(table: Table, options: ColumnOptions) -> tuple[Table, list[str]]:
    """Return the output columns; if ``--outputs`` is a file, the table with its columns."""
    if options.label_column:
        require_columns(table, [options.label_column], "--label-column")
        return table, [options.label_column]
    if len(options.outputs) == 1 and options.outputs[0] not in table.names:
        file = Path(options.outputs[0])
        if file.suffix.lower() == ".xml" and file.exists():
            return table, _select(table, _read_label_names(file), f"--outputs {file}")
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
    if n_different > min(input_columns.MAX_CATEGORIES, max(2, len(table) // 2)):
        raise ValueError(
            f"{table.path}: the column {name!r} has {n_different} different texts, such as "
            f"{table.texts[name][0][:40]!r}. Say what it is: --text {name} for words, --categorical {name} for "
            f"categories, or --drop {name} to leave it out."
        )


def _read_label_names(xml: Path) -> list[str]:
    """Return the names of the elements ``label`` of a file of Mulan; a document type could expand, and is rejected."""
    names: list[str] = []

    def add_element(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition("}")[2] == "label":
            names.append(attributes.get("name", "").strip("'\""))

    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = add_element
    parser.StartDoctypeDeclHandler = raise_for_document_type
    require_regular_file(xml, "an XML file of labels")
    with convert_read_errors(xml, "an XML file of labels"), xml.open("rb") as file:
        parser.ParseFile(file)
    if not names:
        raise ValueError(f"{xml} names no labels.")
    return names


def _check_almost_labels(table: Table, names: Sequence[str]) -> None:
    """Raise an error if nearly all cells of each output column are 0 or 1, but some are not."""
    matrix = input_columns.to_dense(forms.get_output_numbers(table, names))
    is_label = (matrix == 0) | (matrix == 1)
    if is_label.all() or not (is_label.mean(axis=0) >= LABEL_SHARE).all():
        return
    row, column = (int(i) for i in np.argwhere(~is_label)[0])
    message = (
        f"the output {names[column]!r} is {matrix[row, column]:.12g}, but {is_label.mean():.1%} of the outputs are "
        f"0 or 1. Correct it and use --kind labels, or use --kind numbers."
    )
    raise row_error(table, row, message)


def _check_almost_numbers(table: Table, names: Sequence[str], advice: str) -> None:
    """Raise an error if most cells of a column of a CSV or TSV file are numbers, but not all.

    Formats with types say themselves that a column consists of texts. ``advice`` may contain ``{name}``.
    """
    if table_format(table.path) not in ("csv", "tsv"):
        return
    for name in names:
        cells = [cell for cell in table.texts.get(name, ()) if cell.lower() not in MISSING]
        n_numbers = sum(is_number(cell) or DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells)
        row = find_non_number(table.texts[name]) if 2 * n_numbers > len(cells) else None
        if row is not None:
            raise non_number_error(table, row, name, advice.format(name=name))


def _warn_about_constants(table: Table, names: Sequence[str]) -> None:
    """Warn about input columns that have the same value in all training rows."""
    if table.is_sparse_format:  # features of other rows are zero
        return
    constant = [name for name in names if _is_constant(table, name)]
    if constant:
        listed = ", ".join(map(repr, constant[:MAX_CONSTANT])) + (" …" if len(constant) > MAX_CONSTANT else "")
        subject = "the input column {} has" if len(constant) == 1 else f"{len(constant):,} input columns ({{}}) have"
        message = f"{subject.format(listed)} the same value in all training rows and no effect; leave out with --drop."
        warnings.warn(message, UserWarning, stacklevel=2)


def _is_constant(table: Table, name: str) -> bool:
    if name in table.texts:
        return len(set(table.texts[name])) == 1
    values = input_columns.to_dense(table.numbers[:, [table.number_names.index(name)]])
    return bool((values == values[0]).all())
