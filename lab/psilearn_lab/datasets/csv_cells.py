"""The cells of a CSV text with the lines that contain them, for errors that name the line."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray

from psilearn_lab.datasets.sparse_rows import line_error, read_lines


@dataclass(frozen=True)
class CellTable:
    """The cells of a CSV text, and their lines."""

    path: Path
    names: list[str]
    header_line: int
    cells: list[list[str]]
    lines: list[int]  # (n,)

    def columns(self, names: Sequence[str]) -> list[list[str]]:
        """Return the cells of some columns, row by row."""
        places = [self.names.index(name) for name in names]
        return [[row[place] for place in places] for row in self.cells]

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return some columns as numbers (n, number of names); NaN for a cell that is not a number."""
        rows = [[_to_number(cell) for cell in row] for row in self.columns(names)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))

    def raise_for_cell(self, names: Sequence[str], wrong: NDArray[np.bool_], message: str) -> None:
        """Raise an error for the first cell marked in ``wrong`` (n, number of names), with its column and content."""
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            name = names[column]
            cell = self.cells[row][self.names.index(name)][:60]
            raise line_error(self.path, self.lines[row], message.format(name=name, cell=cell))

    def require(self, names: Sequence[str], what: str) -> None:
        """Raise an error if one of the columns of ``what`` is missing."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise self.header_error(f"no column {', '.join(map(repr, missing))} of {what}")

    def header_error(self, fault: str) -> ValueError:
        """Return an error that states a fault of the header and lists its columns."""
        columns = shorten(", ".join(self.names), 300, placeholder=" …")
        return line_error(self.path, self.header_line, f"{fault}; the columns are {columns}.")

    def with_line(self, error: ValueError, name: str) -> ValueError:
        """Return an error whose message begins with ``name in row 3`` as one that names the line of that row."""
        match = re.match(rf"{name} in row (\d+)", str(error))
        if match is None:  # it concerns all rows
            return line_error(self.path, self.lines[0], str(error))
        return line_error(self.path, self.lines[int(match[1])], name + str(error)[match.end() :])


def read_cells(path: Path) -> CellTable:
    """Read a CSV text whose first line names the columns; empty lines are skipped."""
    rows = [(number, _split(path, number, line)) for number, line in read_lines(path) if line.strip()]
    if not rows:
        raise line_error(path, 1, "no header: the first line must name the columns.")
    header_line, names = rows.pop(0)
    _check_header(path, header_line, names)
    if not rows:
        message = f"no rows after the header of {len(names)} columns; the file may be truncated."
        raise line_error(path, header_line, message)
    for number, cells in rows:
        if len(cells) != len(names):
            raise line_error(path, number, f"{len(cells)} cells for {len(names)} columns.")
    return CellTable(path, names, header_line, [cells for _, cells in rows], [number for number, _ in rows])


def _split(path: Path, number: int, line: str) -> list[str]:
    """Return the cells of a line; each line is parsed alone, so that an open quote does not affect later lines."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True, strict=True))]
    except csv.Error as error:
        raise line_error(path, number, f"no cells separated by commas ({error}): {line[:60]!r}.") from error


def _check_header(path: Path, number: int, names: list[str]) -> None:
    """Raise an error for a column without a name and for a repeated name."""
    if "" in names:
        column = names.index("") + 1
        raise line_error(path, number, f"column {column} has no name; a column of row numbers must be removed.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise line_error(path, number, f"several columns are named {', '.join(map(repr, repeated))}.")


def _to_number(cell: str) -> float:
    """Return a cell as a number; NaN if it is not a number."""
    if "_" in cell or not cell.isascii():  # Python would read 1_000 and digits of other scripts as numbers
        return nan
    try:
        return float(cell)
    except ValueError:
        return nan
