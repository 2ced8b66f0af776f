"""Common parts of the forms of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.app.tables.table import Table, row_error


def to_dense(matrix: Any) -> Any:
    """Return an array."""
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def get_output_numbers(table: Table, names: Sequence[str]) -> Any:
    """Return columns of outputs as a matrix; raise an error for a missing one, which cannot be filled in."""
    matrix = table.get_numbers(names, allow_missing=True)
    if not sparse.issparse(matrix) and np.isnan(matrix).any():
        row, column = (int(i) for i in np.argwhere(np.isnan(matrix))[0])
        raise row_error(table, row, f"the output {names[column]!r} is missing; fill it in or delete the row.")
    return matrix


def check_names(names: Sequence[str]) -> None:
    """Raise a ValueError if names are missing or repeated."""
    if not names or len(set(names)) < len(names):
        raise ValueError("the names of outputs are missing or repeated")


def sort_key(word: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers first, by value."""
    is_whole = word.isascii() and word.isdecimal() and len(word) < 300
    return (False, float(word), word) if is_whole else (True, 0.0, word)
