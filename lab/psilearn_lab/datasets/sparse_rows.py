"""Common parts of the readers of text formats: numbered lines, checked CSR matrices, errors with file and line."""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn.utils import MAX_EXPANSION, convert_read_errors, decompressed_limit, require_regular_file

_ARCHIVES = {b"PK\x03\x04": "zip", b"Rar!": "rar", b"7z\xbc\xaf": "7z", b"BZh": "bzip2", b"\xfd7zX": "xz"}
_GZIP = b"\x1f\x8b"
MAX_COLUMNS = 2**62  # column numbers are 64-bit integers


def line_error(path: Path, line: int, message: str) -> ValueError:
    """Return an error that names the file and the line."""
    return ValueError(f"{path}, line {line}: {message}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a UTF-8 text, compressed with gzip or not, without line ends.

    An error is raised for anything that is not a text: a folder, a pipe, an archive, a web page, binary content, and a
    gzip file whose contents are more than ``MAX_EXPANSION`` times as large.
    """
    require_regular_file(path, "a text file")
    with convert_read_errors(path, "a text file"):
        with path.open("rb") as file:
            start = file.read(512)
        _check_start(path, start)
        with path.open("rb") as file:
            lines = _iter_decompressed(path, file) if start.startswith(_GZIP) else file
            for number, raw in enumerate(lines, 1):
                yield number, _decode(path, number, raw)


def _iter_decompressed(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a gzip file; raise an error if it is damaged, empty or expands too much."""
    left, number = decompressed_limit(path), 0
    with gzip.GzipFile(fileobj=file) as content:
        try:
            while raw := content.readline(left + 1):
                left, number = left - len(raw), number + 1
                if left < 0:
                    break
                yield raw
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            message = f"the compressed file is truncated or damaged ({error}): download it again."
            raise line_error(path, number + 1, message) from error
    if left < 0:
        message = f"the contents are over {MAX_EXPANSION} times as large as the file: decompress it if you trust it."
        raise line_error(path, number, message)
    if not number:
        raise ValueError(f"{path} is empty: download the file again.")


def _check_start(path: Path, start: bytes) -> None:
    """Raise an error for the first bytes of an archive, or for an empty file."""
    for magic, kind in _ARCHIVES.items():
        if start.startswith(magic):
            raise ValueError(f"{path} is a {kind} archive: unpack it and give the text file inside.")
    if not start:
        raise ValueError(f"{path} is empty: download the file again.")


def _decode(path: Path, number: int, raw: bytes) -> str:
    """Return a line as a string without its end; raise an error for binary content, HTML and XML."""
    try:
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text ({error.reason}): save the file as UTF-8, or download it again."
        raise line_error(path, number, message) from error
    if "\0" in line:
        raise line_error(path, number, "binary content instead of text: download the file again.")
    if number == 1 and line.lstrip()[:5].lower() in ("<html", "<!doc", "<?xml"):
        raise line_error(path, number, f"a web page or XML instead of data, {line[:40]!r}: download the file again.")
    return line


class SparseRows:
    """Sparse rows in the order in which they are read.

    Entries are stored as plain numbers (16 bytes each); checks of the whole file run once, vectorized, in ``to_csr``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = array("q")
        self.values = array("d")
        self.ends = array("q", [0])
        self.lines = array("q")  # the line of each row in the file

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    def add(self, line: int, columns: Iterable[int], values: Iterable[float]) -> None:
        """Append one row, with as many values as columns."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.ends.append(len(self.columns))
        self.lines.append(line)

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all column indices and values, (nnz,) each."""
        return np.asarray(self.columns), np.asarray(self.values)

    def raise_for_entry(self, wrong: NDArray[np.bool_], message: str) -> None:
        """Raise an error for the first entry marked in ``wrong`` (nnz,), with its column and value in the message."""
        if wrong.any():
            entry = int(np.argmax(wrong))
            row = int(np.searchsorted(np.asarray(self.ends), entry, side="right")) - 1
            column, value = self.columns[entry], self.values[entry]
            raise line_error(self.path, self.lines[row], message.format(column=column, value=value))

    def to_csr(self, width: int, what: str, first: int = 0) -> sparse.csr_matrix:
        """Return the rows as a CSR matrix (n, width), explicit zeros included.

        ``what`` names a column in messages, such as ``"feature"``; ``first`` is the number of the first column in the
        file.
        """
        if width >= MAX_COLUMNS:
            raise ValueError(f"{self.path}: {width} columns are more than can be numbered; the file is damaged.")
        columns, values = self.entries()
        allowed = f"the {width} of the file have the numbers {first} to {width - 1 + first}."
        outside = (columns < first) | (columns >= width + first)
        self.raise_for_entry(outside, f"{what} {{column}} does not exist: {allowed}")
        not_finite = ~np.isfinite(values)
        self.raise_for_entry(not_finite, f"the value of {what} {{column}} is {{value}}; numbers must be finite.")
        index: type[np.signedinteger[Any]] = np.int32 if max(width, len(columns)) < 2**31 else np.int64
        ends = np.asarray(self.ends).astype(index)
        matrix = sparse.csr_matrix((values.copy(), (columns - first).astype(index), ends), (len(self), width))
        self._check_repetitions(matrix, what, first)
        return matrix

    def _check_repetitions(self, matrix: sparse.csr_matrix, what: str, first: int) -> None:
        """Raise an error if a column occurs twice in a row."""
        matrix.sort_indices()
        same = matrix.indices[1:] == matrix.indices[:-1]  # (nnz − 1,); meaningless across the end of a row
        inner = matrix.indptr[1:-1]
        same[inner[(inner > 0) & (inner < len(matrix.indices))] - 1] = False
        if same.any():
            entry = int(np.argmax(same))
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            message = f"{what} {matrix.indices[entry] + first} occurs twice in the row."
            raise line_error(self.path, self.lines[row], message)


def to_label_matrix(rows: SparseRows, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return label rows as a CSR matrix of int8 ones; raise an error for a value other than 0 and 1."""
    wrong = (matrix.data != 0) & (matrix.data != 1)
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        message = f"a label has the value {matrix.data[entry]:g}; labels are 0 or 1."
        raise line_error(rows.path, rows.lines[row], message)
    matrix = matrix.astype(np.int8)
    matrix.eliminate_zeros()
    return matrix
