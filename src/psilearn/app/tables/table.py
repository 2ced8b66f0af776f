"""A table in memory: columns of numbers and columns of texts, and where each row is in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MAX_LISTED = 300  # characters of a list of columns in messages
MISSING = frozenset(("", "?", "na", "n/a", "nan", "null"))  # of a column of numbers, in lower case
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")


@dataclass(frozen=True)
class Table:
    r"""The rows of a table file: each column consists of numbers or of texts.

    Parameters
    ----------
    path : Path
        The file, for messages.
    names : tuple of str
        The names of all columns, in the order of the file.
    number_names : tuple of d str
        The names of the columns of numbers.
    numbers : ndarray or CSR matrix of shape (n, d)
        The numbers; NaN for a missing value.
    texts : mapping of str to list of n str
        The columns of texts; the empty text for a missing value.
    places : ndarray of int of shape (n,)
        The line of each row in a text file, or its number in another file, for messages.
    unit : {"line", "row"}, default="line"
        What ``places`` counts.
    outputs : tuple of str, default=()
        The columns that the file itself marks as outputs, as MEKA and svmlight files do.
    separator : str, default=""
        The separator of tags in the output column that the file marks.
    is_sparse_format : bool, default=False
        Whether a column that is missing consists of zeros, as in svmlight files.

    See Also
    --------
    read_table : Read a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn.app.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("size,color,tag\n1.5,red,0\n2,blue,1\n")
    ...     table = read_table(path)
    >>> len(table), table.number_names, table.texts
    (2, ('size', 'tag'), {'color': ['red', 'blue']})
    """

    path: Path
    names: tuple[str, ...]
    number_names: tuple[str, ...]
    numbers: Any
    texts: Mapping[str, list[str]]
    places: NDArray[np.int64]
    unit: str = "line"
    outputs: tuple[str, ...] = ()
    separator: str = ""
    is_sparse_format: bool = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.places)

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Table:
        r"""Return some rows as a table.

        Parameters
        ----------
        rows : sequence of int
            The rows, counted from 0.

        Returns
        -------
        Table
            The rows in this order.

        See Also
        --------
        read_table : Read a file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from psilearn.app.tables import read_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "toy.csv")
        ...     _ = path.write_text("a,b\n1,2\n3,4\n")
        ...     read_table(path).take([1]).numbers
        array([[3., 4.]])
        """
        index = np.asarray(rows, dtype=np.intp)
        texts = {name: [cells[row] for row in index] for name, cells in self.texts.items()}
        return replace(self, numbers=self.numbers[index], texts=texts, places=self.places[index])

    def get_numbers(self, names: Sequence[str], *, allow_missing: bool = False) -> Any:
        r"""Return columns of numbers as a matrix; raise an error for a text, a missing or an infinite number.

        Parameters
        ----------
        names : sequence of d str
            The columns.
        allow_missing : bool, default=False
            Whether values may be missing.

        Returns
        -------
        ndarray or CSR matrix of shape (n, d)
            The numbers.

        See Also
        --------
        get_texts : The cells of a column as texts.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from psilearn.app.tables import read_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "toy.csv")
        ...     _ = path.write_text("a,b\n1,2\n3,4\n")
        ...     read_table(path).get_numbers(["b"])
        array([[2.],
               [4.]])
        """
        if not self.is_sparse_format:
            require_columns(self, names)
        for name in names:
            if name in self.texts:
                raise non_number_error(self, find_non_number(self.texts[name]) or 0, name)
        numbers, places = self.numbers, {name: column for column, name in enumerate(self.number_names)}
        if not places.keys() >= set(names):  # of a file in a sparse format
            numbers = sparse.hstack([numbers, sparse.csr_matrix((len(self), 1))], "csr")
        matrix = numbers[:, [places.get(name, -1) for name in names]]
        self._check_values(matrix, names, allow_missing)
        return matrix

    def get_texts(self, name: str) -> list[str]:
        r"""Return the cells of a column as texts.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        list of n str
            The cells; numbers are written without unnecessary digits, and a missing value is the empty text.

        See Also
        --------
        get_numbers : Columns of numbers.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from psilearn.app.tables import read_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "toy.csv")
        ...     _ = path.write_text("a,b\n1,2.50\n3,4\n")
        ...     read_table(path).get_texts("b")
        ['2.5', '4']
        """
        require_columns(self, [name])
        if name in self.texts:
            return self.texts[name]
        column = self.numbers[:, [self.number_names.index(name)]]
        values = (column.toarray() if sparse.issparse(column) else column).ravel()
        return ["" if value != value else format_number(value) for value in values.tolist()]

    def _check_values(self, matrix: Any, names: Sequence[str], allow_missing: bool) -> None:
        if sparse.issparse(matrix):  # its reader rejects missing and infinite values
            return
        wrong = np.isinf(matrix) if allow_missing else ~np.isfinite(matrix)
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            if np.isnan(matrix[row, column]):
                raise row_error(
                    self, row, f"the value of {names[column]!r} is missing; fill it in, or train with --impute."
                )
            raise row_error(self, row, f"the value of {names[column]!r} is infinite; numbers must be finite.")


def require_columns(table: Table, names: Sequence[str], option: str = "") -> None:
    """Raise an error if a column is missing; the message lists the columns and names the option that asked for it."""
    known = set(table.names)
    missing = [name for name in names if name not in known]
    if missing:
        where = f" ({option})" if option else ""
        listed = shorten(", ".join(map(repr, missing)), MAX_LISTED, placeholder=" …")
        raise ValueError(f"{table.path}: there is no column {listed}{where}; the columns are {list_names(table)}.")


def list_names(table: Table) -> str:
    """Return the names of the columns for a message, shortened if they are many."""
    return shorten(", ".join(table.names), MAX_LISTED, placeholder=" …")


def row_error(table: Table, row: int, message: str) -> ValueError:
    """Return an error that names the file and the place of a row."""
    return ValueError(f"{table.path}, {table.unit} {table.places[row]}: {message}")


def find_non_number(cells: Sequence[str]) -> int | None:
    """Return the first row whose cell is neither a number nor missing."""
    return next((i for i, cell in enumerate(cells) if not is_number(cell) and cell.lower() not in MISSING), None)


def non_number_error(table: Table, row: int, name: str, advice: str = "") -> ValueError:
    """Return an error about a cell that is not a number, with a hint for decimal commas."""
    cell = table.texts[name][row]
    if DECIMAL_COMMA.fullmatch(cell):
        advice = f"write decimals with a point: {cell[:60].replace(',', '.')}"
    message = f"{cell[:60]!r} in column {name!r} is not a number{f'; {advice}' if advice else ''}."
    return row_error(table, row, message)


def format_number(value: float) -> str:
    """Return a number with at most 12 significant digits, which removes the noise of rounding errors."""
    return f"{value:.12g}"


def is_number(cell: str) -> bool:
    """Return whether a cell is a number; Python would also read 1_000 and digits of other scripts."""
    if "_" in cell or not cell.isascii():
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def join_rows(tables: Sequence[Table]) -> Table:
    """Return the rows of tables with the same columns, one below the other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    texts = {name: [cell for table in tables for cell in table.texts[name]] for name in first.texts}
    numbers = np.concatenate([table.numbers for table in tables])
    return replace(first, numbers=numbers, texts=texts, places=np.concatenate([table.places for table in tables]))


def join_columns(table: Table, other: Table) -> Table:
    """Return the columns of two files with the same rows next to each other; those of ``other`` are the outputs."""
    if len(table) != len(other):
        raise ValueError(
            f"{table.path} has {len(table)} rows, but {other.path} has {len(other)}: they must correspond."
        )
    both = sorted(set(table.names) & set(other.names))
    if both:
        raise ValueError(f"{table.path} and {other.path} both have the column {both[0]!r}: rename or remove it.")
    blocks = [table.numbers, other.numbers]
    is_sparse = any(sparse.issparse(block) for block in blocks)
    return replace(
        table,
        names=table.names + other.names,
        number_names=table.number_names + other.number_names,
        numbers=sparse.hstack(blocks, "csr") if is_sparse else np.hstack(blocks),
        texts={**table.texts, **other.texts},
        outputs=other.names,
        separator="",
    )
