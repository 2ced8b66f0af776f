"""Find cells that are probably mistakes: they would change the kind of a column without a word."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.app.tables.output_cells import get_output_numbers, to_dense
from psilearn.app.tables.table import (
    DECIMAL_COMMA,
    MISSING,
    Table,
    find_non_number,
    is_number,
    non_number_error,
    row_error,
)
from psilearn.app.tables.table_formats import table_format

LABEL_SHARE = 0.95  # columns with at least this share of 0 and 1 are probably labels
MAX_CONSTANT = 5  # names of constant columns in a note


def check_almost_labels(table: Table, names: Sequence[str]) -> None:
    """Raise an error if nearly all cells of each output column are 0 or 1, but some are not."""
    matrix = to_dense(get_output_numbers(table, names))
    is_label = (matrix == 0) | (matrix == 1)
    if is_label.all() or not (is_label.mean(axis=0) >= LABEL_SHARE).all():
        return
    row, column = (int(i) for i in np.argwhere(~is_label)[0])
    message = (
        f"the output {names[column]!r} is {matrix[row, column]:.12g}, but {is_label.mean():.1%} of the outputs are "
        f"0 or 1. Correct it and use --kind labels, or use --kind numbers."
    )
    raise row_error(table, row, message)


def check_almost_numbers(table: Table, names: Sequence[str], advice: str) -> None:
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


def warn_about_constants(table: Table, names: Sequence[str]) -> None:
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
    column: Any = table.numbers[:, [table.number_names.index(name)]]
    values = column.toarray() if sparse.issparse(column) else column
    return bool((values == values[0]).all())
