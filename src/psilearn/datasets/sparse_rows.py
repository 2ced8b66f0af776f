"""What every reader of a text format shares: checked lines in, a checked CSR matrix out, errors with file and line."""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_ARCHIVES = {b"PK\x03\x04": "zip", b"Rar!": "rar", b"7z\xbc\xaf": "7z", b"BZh": "bzip2", b"\xfd7zX": "xz"}


def fault(path: Path, line: int, message: str) -> ValueError:
    """Return the error that names a file, a line and what is wrong there."""
    return ValueError(f"{path}, line {line}: {message}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of a UTF-8 text, packed with gzip or not, without line ends.

    What is no text at all (a folder, an archive, a web page, binary content) is refused by name.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; a text file is expected here.")
    try:
        with path.open("rb") as file:
            start = file.read(512)
        for magic, kind in _ARCHIVES.items():
            if start.startswith(magic):
                raise ValueError(f"{path} is a {kind} archive: unpack it and give the text file inside.")
        if not start:
            raise ValueError(f"{path} is empty: get the file again.")
        opener: Any = gzip.open if start.startswith(b"\x1f\x8b") else open
        number = 0
        with opener(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                yield number, _decode(path, number, raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise fault(path, number + 1, f"the packed file is cut off or damaged ({error}): get it again.") from error
    except OSError as error:
        raise type(error)(f"{path} cannot be read ({error.strerror or error}).") from error


def _decode(path: Path, number: int, raw: bytes) -> str:
    try:
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise fault(
            path, number, f"not UTF-8 text ({error.reason}): save the file as UTF-8, or get it again."
        ) from error
    if "\0" in line:
        raise fault(path, number, "binary content instead of text: get the file again.")
    if number == 1 and line.lstrip()[:5].lower() in ("<html", "<!doc", "<?xml"):
        raise fault(path, number, f"a web page or XML instead of data, {line[:40]!r}: get the file again.")
    return line


class Rows:
    """Sparse rows in the order in which they are read.

    Entries are kept as plain numbers (16 bytes each); whole-file checks run once, vectorised, in `matrix`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = array("q")
        self.values = array("d")
        self.ends = array("q", [0])
        self.lines = array("q")  # where each row stands in the file

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: int, columns: Iterable[int], values: Iterable[float]) -> None:
        """Append one row, with as many values as columns."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.ends.append(len(self.columns))
        self.lines.append(line)

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all column indices and values, (nnz,) each."""
        return np.asarray(self.columns), np.asarray(self.values)

    def refuse(self, wrong: np.ndarray, message: str) -> None:
        """Raise an error for the first entry marked in ``wrong`` (nnz,), with its column and value in the message."""
        if wrong.any():
            entry = int(np.argmax(wrong))
            row = int(np.searchsorted(np.asarray(self.ends), entry, side="right")) - 1
            column, value = self.columns[entry], self.values[entry]
            raise fault(self.path, self.lines[row], message.format(column=column, value=value))

    def matrix(self, width: int, what: str, first: int = 0) -> Any:
        """Return the rows as a CSR matrix (n, width), explicit zeros included.

        Parameters
        ----------
        width : int
            number of columns.
        what : str
            what a column is, for messages: ``"feature"``.
        first : int
            the number that the file gives to the first column.
        """
        if width >= 2**62:
            raise ValueError(f"{self.path}: {width} columns are more than can be numbered; the file is damaged.")
        columns, values = self.entries()
        within = f"the {width} of the file have the numbers {first} to {width - 1 + first}."
        self.refuse((columns < first) | (columns >= width + first), f"{what} {{column}} does not exist: {within}")
        self.refuse(~np.isfinite(values), f"the value of {what} {{column}} is {{value}}; numbers must be finite.")
        index = np.int32 if max(width, len(columns)) < 2**31 else np.int64
        ends = np.asarray(self.ends).astype(index)
        matrix = sparse.csr_matrix((values.copy(), (columns - first).astype(index), ends), (len(self), width))
        self._refuse_repetitions(matrix, what, first)
        return matrix

    def _refuse_repetitions(self, matrix: Any, what: str, first: int) -> None:
        matrix.sort_indices()
        same = matrix.indices[1:] == matrix.indices[:-1]  # (nnz − 1,); meaningless across the end of a row
        inner = matrix.indptr[1:-1]
        same[inner[(inner > 0) & (inner < len(matrix.indices))] - 1] = False
        if same.any():
            entry = int(np.argmax(same))
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            raise fault(self.path, self.lines[row], f"{what} {matrix.indices[entry] + first} stands twice in the row.")


def binary(rows: Rows, matrix: Any) -> Any:
    """Return label rows as a CSR matrix of int8 ones; any value but 0 and 1 is refused."""
    wrong = (matrix.data != 0) & (matrix.data != 1)
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise fault(rows.path, rows.lines[row], f"a label has the value {matrix.data[entry]:g}; labels are 0 or 1.")
    matrix = matrix.astype(np.int8)
    matrix.eliminate_zeros()
    return matrix
