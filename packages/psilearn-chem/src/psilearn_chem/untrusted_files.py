"""Files of any origin: texts in any of three encodings, and Parquet tables whose contents are bounded."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from psilearn.utils import MAX_EXPANSION, convert_read_errors, decompressed_limit

if TYPE_CHECKING:
    from pyarrow import RecordBatch

AS_WINDOWS = "psilearn.cp1252"  # name of the handler of bytes that are not UTF-8
BATCH_ROWS = 1024  # rows of a table that are objects of Python at once
READ_ROWS = 16 * BATCH_ROWS  # that are read at once, with the whole dictionaries
VALUE_BYTES = 32  # of a value as an object of Python


def open_text(path: Path, newline: str | None = None) -> TextIO:
    """Open a text in UTF-8, with or without a byte order mark; other bytes are read as Windows-1252, else Latin-1."""
    return path.open(encoding="utf-8-sig", errors=AS_WINDOWS, newline=newline)


def _decode_as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes that are not UTF-8, one by one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = error.object[error.start : error.end]
    return "".join(_decode_byte(rest[i : i + 1]) for i in range(len(rest))), error.end


def _decode_byte(byte: bytes) -> str:
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:
        return byte.decode("latin-1")


codecs.register_error(AS_WINDOWS, _decode_as_windows)


def iter_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[RecordBatch]:
    """Yield batches of rows of a Parquet file, all of which together are not much larger than the file.

    A few bytes can stand for any number of equal values, and for dictionaries that no row uses: the sizes that the file
    states are compared first, and texts stay in the dictionaries of the file until their lengths are added up.
    """
    from pyarrow import parquet

    with convert_read_errors(path, "a Parquet file"), parquet.ParquetFile(path) as plain:
        leaves = map(plain.schema.column, range(len(plain.schema)))
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        groups = [plain.metadata.row_group(i) for i in range(plain.metadata.num_row_groups)]
        chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
        n_left = decompressed_limit(path) - sum(VALUE_BYTES * c.num_values + c.total_uncompressed_size for c in chunks)
        _check_left(n_left)
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(READ_ROWS, columns=columns):
                batch.validate(full=True)  # offsets out of range would read other memory
                n_left -= _count_characters(batch)
                _check_left(n_left)
                yield from (batch.slice(start, BATCH_ROWS) for start in range(0, len(batch), BATCH_ROWS))


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    from pyarrow import parquet

    with convert_read_errors(path, "a Parquet file"):
        return list(parquet.read_schema(path).names)


def _check_left(n_left: int) -> None:
    if n_left < 0:
        raise ValueError(f"its contents are over {MAX_EXPANSION} times as large as the file")


def _count_characters(batch: RecordBatch) -> int:
    """Return the bytes of all texts of a batch, which are in dictionaries."""
    from pyarrow import compute, types

    total = 0
    for column in batch.columns:
        while types.is_list(column.type):
            column = column.flatten()
        if types.is_dictionary(column.type):
            total += compute.sum(compute.binary_length(column.dictionary).take(column.indices)).as_py() or 0
    return total
