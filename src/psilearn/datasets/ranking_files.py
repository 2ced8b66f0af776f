"""Label-ranking data as CSV text: numeric features, and a ranking as columns of ranks or as one column of orders."""

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
from sklearn.utils import Bunch

from psilearn.datasets.sparse_rows import fault, read_lines
from psilearn._utils.rank_checks import check_ranks
from psilearn.rankings import from_orders

_UNKNOWN = ("", "?", "na", "nan")  # a rank that is not known, in any case of letters


def read_ranks_csv(path: str | Path, ranks: str | Sequence[str] = "L", partial: bool = False) -> Bunch:
    r"""Read a CSV text in which each item has a column of ranks, 1 = preferred.

    The first line names the columns; those that hold no ranks are numeric features. Empty lines are skipped.

    Parameters
    ----------
    path : path
        the text, packed with gzip or not.
    ranks : str or list of str
        the columns of ranks: a prefix, which digits follow (``L1``, ``L2``, …), or their names.
    partial : bool
        whether ranks may be tied or unknown: an empty cell, ``?``, ``NA`` or ``nan``.

    Returns
    -------
    Bunch with ``X`` (n, d) of float64, the ranks ``Y`` (n, K) of int64 (with ``partial`` of float64, NaN where
    unknown), ``feature_names`` and ``item_names``, the names of the columns of ranks.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.csv"
    ...     _ = path.write_text("size,L1,L2,L3\n0.5,3,1,2\n1.5,1,2,3\n")
    ...     toy = read_ranks_csv(path)
    >>> toy.X.tolist(), toy.Y.tolist(), toy.item_names
    ([[0.5], [1.5]], [[3, 1, 2], [1, 2, 3]], ['L1', 'L2', 'L3'])
    """
    table = _read_table(Path(path))
    items = _rank_columns(table, ranks)
    Y = table.numbers(items)  # (n, K)
    wrong = ~np.isfinite(Y)
    hint = "."
    if partial:
        wrong &= [[cell.lower() not in _UNKNOWN for cell in row] for row in table.columns(items)]
    else:
        hint = "; unknown ranks are allowed with partial=True."
    table.refuse(items, wrong, f"the rank in column {{name}} is {{cell!r}}; ranks are numbers from 1 on{hint}")
    try:
        check_ranks(Y, "the row", partial)
    except ValueError as error:
        raise table.at_line(error, "the row") from error
    return _bunch(table, Y if partial else Y.astype(np.int64), items, items)


def read_orders_csv(
    path: str | Path, order: str = "ranking", items: Sequence[str] | None = None, partial: bool = False
) -> Bunch:
    r"""Read a CSV text in which one column holds orders such as ``f>a>d``, the preferred item first.

    The first line names the columns; all others are numeric features. Empty lines are skipped.

    Parameters
    ----------
    path : path
        the text, packed with gzip or not.
    order : str
        the column of orders.
    items : K names, optional
        which items there are, in the order of the columns of ``Y``; by default those that the orders name, sorted
        (numbers by value).
    partial : bool
        whether orders may tie items, as in ``a>b=c``, and leave some out.

    Returns
    -------
    Bunch with ``X`` (n, d) of float64, ``Y`` (n, K) of int64 (with ``partial`` of float64, NaN where left out),
    ``feature_names`` and ``item_names``. ``Y`` holds ranks, 1 = preferred, not the order itself.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.csv"
    ...     _ = path.write_text("size,ranking\n0.5,b>c>a\n1.5,a>b>c\n")
    ...     toy = read_orders_csv(path)
    >>> toy.X.tolist(), toy.Y.tolist(), toy.item_names
    ([[0.5], [1.5]], [[3, 1, 2], [1, 2, 3]], ['a', 'b', 'c'])
    """
    table = _read_table(Path(path))
    table.require([order], "orders")
    try:
        Y, names = from_orders([cell for (cell,) in table.columns([order])], items, partial, "the order")
    except ValueError as error:
        raise table.at_line(error, "the order") from error
    return _bunch(table, Y, [order], names)


@dataclass(frozen=True)
class _Table:
    """The cells of a CSV text, and where they stand in it."""

    path: Path
    names: list[str]
    header: int  # its line
    cells: list[list[str]]
    lines: list[int]  # (n,)

    def columns(self, names: Sequence[str]) -> list[list[str]]:
        """Return the cells of some columns, row by row."""
        places = [self.names.index(name) for name in names]
        return [[row[place] for place in places] for row in self.cells]

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Return some columns as numbers (n, number of names); NaN for what is none."""
        rows = [[_number(cell) for cell in row] for row in self.columns(names)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))

    def refuse(self, names: Sequence[str], wrong: np.ndarray, message: str) -> None:
        """Raise an error for the first cell marked in ``wrong`` (n, number of names), with its column and content."""
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            name = names[column]
            cell = self.cells[row][self.names.index(name)][:60]
            raise fault(self.path, self.lines[row], message.format(name=name, cell=cell))

    def require(self, names: Sequence[str], what: str) -> None:
        """Refuse a table that lacks one of the columns that hold ``what``."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise self.lacks(f"no column {', '.join(map(repr, missing))} of {what}")

    def lacks(self, what: str) -> ValueError:
        """Return the error that says what the header lacks and what it has."""
        there = shorten(", ".join(self.names), 300, placeholder=" …")
        return fault(self.path, self.header, f"{what}; the columns are {there}.")

    def at_line(self, error: ValueError, name: str) -> ValueError:
        """Return an error that begins with ``name in row 3`` as one that gives the line of that row."""
        found = re.match(rf"{name} in row (\d+)", str(error))
        if found is None:  # it concerns all rows
            return fault(self.path, self.lines[0], str(error))
        return fault(self.path, self.lines[int(found[1])], name + str(error)[found.end() :])


def _read_table(path: Path) -> _Table:
    parsed = [(number, _split(path, number, line)) for number, line in read_lines(path) if line.strip()]
    if not parsed:
        raise fault(path, 1, "no header: the first line must name the columns.")
    header, names = parsed.pop(0)
    _check_header(path, header, names)
    if not parsed:
        raise fault(path, header, f"no rows after the header of {len(names)} columns; the file may be cut off.")
    for number, cells in parsed:
        if len(cells) != len(names):
            raise fault(path, number, f"{len(cells)} cells for {len(names)} columns.")
    return _Table(path, names, header, [cells for _, cells in parsed], [number for number, _ in parsed])


def _split(path: Path, number: int, line: str) -> list[str]:
    # line by line: a quote that does not close then spoils its own line and not the rest of the file
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True, strict=True))]
    except csv.Error as error:
        raise fault(path, number, f"no cells separated by commas ({error}): {line[:60]!r}.") from error


def _check_header(path: Path, number: int, names: list[str]) -> None:
    if "" in names:
        place = names.index("") + 1
        raise fault(path, number, f"column {place} has no name; numbers of rows are no feature and must be left out.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise fault(path, number, f"several columns are named {', '.join(map(repr, twice))}.")


def _rank_columns(table: _Table, ranks: str | Sequence[str]) -> list[str]:
    """Return the names of the columns of ranks, all of them in the table, each once."""
    if isinstance(ranks, str):
        items = [name for name in table.names if re.fullmatch(re.escape(ranks) + "[0-9]+", name)]
        what = f"{len(items)} columns are named {ranks!r} and a number"
    else:
        items = list(ranks)
        what = f"ranks names {len(items)} columns"
        table.require(items, "ranks")
        if len(set(items)) < len(items):
            raise ValueError(f"ranks names a column more than once: {items!r}.")
    if len(items) < 2:
        raise table.lacks(f"{what}, but a ranking needs at least 2 columns of ranks")
    return items


def _number(cell: str) -> float:
    """Return a cell as a number, or NaN."""
    if "_" in cell or not cell.isascii():  # Python would take 1_000 and digits of other scripts for numbers
        return nan
    try:
        return float(cell)
    except ValueError:
        return nan


def _bunch(table: _Table, Y: np.ndarray, taken: list[str], items: list[str]) -> Bunch:
    """Return rankings with all columns but the ``taken`` ones as features."""
    names = [name for name in table.names if name not in taken]
    X = table.numbers(names)
    table.refuse(
        names,
        ~np.isfinite(X),
        "the feature {name} is {cell!r}, but features must be finite numbers: fill in what is missing, and make "
        "categories numeric, for example one-hot.",
    )
    return Bunch(X=X, Y=Y, feature_names=names, item_names=items)  # "items" is a method of every Bunch
