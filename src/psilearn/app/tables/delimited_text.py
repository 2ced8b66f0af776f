"""CSV and TSV texts, read in chunks of rows; every error names the line."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psilearn.app.tables.table import MISSING, Table, is_number
from psilearn_lab.datasets.sparse_rows import line_error, read_lines

CHUNK_CELLS = 200_000  # cells that are in memory as texts at once: about 25 MB
SHARED_LENGTH = 40  # equal texts up to this length are kept once
MAX_SHARED = 100_000  # texts per column


class Record(NamedTuple):
    """A row: the line in which it begins, and its cells."""

    line: int
    cells: list[str]


def iter_delimited(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    """Yield the rows in chunks.

    In each chunk, a column of ``text_columns`` consists of texts; another one of numbers, or of texts if a cell of the
    chunk is neither a number nor missing. A quoted cell may contain line ends.
    """
    records = _iter_records(path)
    header = next(records, None)
    if header is None:
        raise line_error(path, 1, "no header: the first line must name the columns.")
    names = header.cells
    _check_header(path, header)
    shared: dict[str, dict[str, str]] = {name: {} for name in names}
    n_rows = max(1, CHUNK_CELLS // len(names))
    is_empty = True
    while chunk := list(islice(records, n_rows)):
        is_empty = False
        _check_widths(path, chunk, len(names))
        yield _make_table(path, names, chunk, text_columns, shared)
    if is_empty:
        message = f"no rows after the header of {len(names)} columns; the file may be truncated."
        raise line_error(path, header.line, message)


def _iter_records(path: Path) -> Iterator[Record]:
    """Yield the rows, the header first; empty lines are skipped."""
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"{path}: the file is empty.")
    lines = read_lines(path)
    _number, first = next(lines)
    if "\r" in first:
        raise line_error(path, 1, "the lines end with CR, as on old Macs: save it with LF or CRLF line ends.")
    delimiter = _find_delimiter(path, first)

    def texts() -> Iterator[str]:
        yield first + "\n"
        for _, line in lines:
            yield line + "\n"

    reader = csv.reader(texts(), delimiter=delimiter, skipinitialspace=True, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_open = "unexpected end of data" in str(error)
            reason = 'a cell begins with " but has no closing "' if is_open else str(error)
            raise line_error(path, line, f"the row that begins here cannot be read: {reason}.") from error
        if cells:
            yield Record(line, [cell.strip() for cell in cells])


def _find_delimiter(path: Path, header: str) -> str:
    """Return the tab for a .tsv file; otherwise the comma, or what else separates the names in the header."""
    if ".tsv" in path.suffixes[-2:]:
        return "\t"
    return next((delimiter for delimiter in ",;\t" if delimiter in header), ",")


def _check_header(path: Path, header: Record) -> None:
    """Raise an error for a repeated or missing name; the first column may have none, as row numbers of pandas."""
    if "" in header.cells[1:]:
        message = f"column {header.cells.index('', 1) + 1} has no name: the first line must name all columns."
        raise line_error(path, header.line, message)
    repeated = [name for name, count in Counter(header.cells).items() if count > 1]
    if all(map(is_number, header.cells)) and (repeated or not all(name.isdecimal() for name in header.cells)):
        message = "the header is missing: the first line must name the columns, but it consists of numbers."
        raise line_error(path, header.line, message)
    if repeated:
        message = f"several columns are named {', '.join(map(repr, repeated[:5]))}: rename or remove all but one."
        raise line_error(path, header.line, message)
    if header.cells == [""]:
        raise line_error(path, header.line, "the only column has no name.")


def _check_widths(path: Path, chunk: Sequence[Record], width: int) -> None:
    for record in chunk:
        if len(record.cells) != width:
            n_cells = len(record.cells)
            advice = (
                "add the missing cells, which may be empty"
                if n_cells < width
                else "a cell that contains the separator must be quoted"
            )
            count = "1 cell" if n_cells == 1 else f"{n_cells} cells"
            raise line_error(path, record.line, f"{count} for {width} columns; {advice}.")


def _make_table(
    path: Path,
    names: Sequence[str],
    chunk: Sequence[Record],
    text_columns: Collection[str],
    shared: dict[str, dict[str, str]],
) -> Table:
    """Return the rows of a chunk; a first column without a name is left out."""
    numbers: dict[str, NDArray[np.float64]] = {}
    texts: dict[str, list[str]] = {}
    for name, cells in zip(names, zip(*(record.cells for record in chunk), strict=True), strict=True):
        if not name:
            continue
        values = None if name in text_columns else _to_numbers(cells)
        if values is None:
            texts[name] = _share(cells, shared[name])
        else:
            numbers[name] = values
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((len(chunk), 0))
    places = np.array([record.line for record in chunk], dtype=np.int64)
    return Table(path, tuple(name for name in names if name), tuple(numbers), matrix, texts, places)


def _to_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return cells as numbers, NaN where they are missing; None if another cell is not a number."""
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():
        return None
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        if not all(is_number(cell) or cell.lower() in MISSING for cell in cells):
            return None
        return np.array([np.nan if cell.lower() in MISSING else float(cell) for cell in cells])


def _share(cells: Sequence[str], known: dict[str, str]) -> list[str]:
    """Return the cells as a list in which short equal texts are one object."""
    if len(known) > MAX_SHARED:
        return list(cells)
    return [known.setdefault(cell, cell) if len(cell) <= SHARED_LENGTH else cell for cell in cells]
