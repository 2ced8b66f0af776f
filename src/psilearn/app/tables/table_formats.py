"""Table files of all formats: the ending of the name determines the format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.app.tables.delimited_text import iter_delimited
from psilearn.app.tables.table import Table, join_rows
from psilearn.utils import (
    MAX_EXPANSION,
    convert_read_errors,
    decompressed_limit,
    explain_missing,
    require_regular_file,
    validation,
)
from psilearn_lab.datasets import read_svmlight_multilabel
from psilearn_lab.datasets.arff import Arff, read_arff

BATCH_ROWS = 65_536  # of a Parquet file
LABEL_COLUMN, LABEL_SEPARATOR = "labels", ","  # of svmlight files
NUMBER_BYTES = 8

Reader = Callable[[Path, Collection[str]], Iterator[Table]]


def read_table(path: str | Path, text_columns: Collection[str] = ()) -> Table:
    r"""Read a table file.

    Memory: 16 bytes per number while a CSV or Parquet file is read, 8 afterwards; texts take their length and about 60
    bytes, short equal texts of a column once.

    Parameters
    ----------
    path : str or Path
        A file whose name ends in ``.csv``, ``.tsv``, ``.arff``, ``.svm``, ``.svmlight`` or ``.libsvm``, each also
        compressed (``.gz``), or in ``.parquet``. The first line of a CSV or TSV file names the columns. The labels of a
        svmlight file are the column ``labels``, and its features have their numbers as names.
    text_columns : collection of str, default=()
        Columns that are texts even if all cells are numbers.

    Returns
    -------
    Table
        The rows.

    Raises
    ------
    ValueError
        If the file cannot be read as a table; the message names the file and the line.

    See Also
    --------
    TableModel : Predicts from tables.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn.app.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("a,b\n1,2\n3,4\n")
    ...     read_table(path).numbers
    array([[1., 2.],
           [3., 4.]])
    """
    path, forced = validation.check_path(path, "path"), _check_names(text_columns)
    tables = list(iter_tables(path, forced))
    kinds = Counter(name for table in tables for name in table.texts)
    mixed = {name for name, count in kinds.items() if count < len(tables)}  # a later chunk has texts
    if mixed:
        del tables
        tables = list(iter_tables(path, forced | mixed))
    return join_rows(tables)


def iter_tables(path: Path, text_columns: Collection[str] = ()) -> Iterator[Table]:
    """Yield the rows of a file in chunks: large CSV and Parquet files are never in memory completely."""
    reader = _READERS.get(table_format(path))
    if reader is None:
        listed = ", ".join(f".{name}" for name in _READERS)
        raise ValueError(f"{path} does not end in a known format: {listed}, all but Parquet also with .gz.")
    return reader(path, text_columns)


def table_format(path: Path) -> str:
    """Return the ending of a file name without dot and without .gz, in lower case; empty if there is none."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
        if suffixes and suffixes[-1] == ".parquet":
            return ""
    return suffixes[-1][1:] if suffixes else ""


def is_table_file(path: Path) -> bool:
    """Return whether a name is that of an existing file in a known format."""
    return table_format(path) in _READERS and path.exists()


def _check_names(names: Any) -> set[str]:
    if isinstance(names, str) or not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"text_columns must be a collection of names of columns; got {names!r:.80}.")
    return set(names)


def _iter_parquet(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    with explain_missing("Reading a .parquet file needs pyarrow: pip install 'psilearn[parquet]'."):
        from pyarrow import parquet
    require_regular_file(path, "a Parquet file")
    with convert_read_errors(path, "a Parquet file"), parquet.ParquetFile(path) as file:
        names = [str(name) for name in file.schema_arrow.names]
        _check_parquet_names(path, names)
        n_bytes = file.metadata.num_rows * len(names) * NUMBER_BYTES
        if n_bytes > decompressed_limit(path):
            raise ValueError(
                f"{path} has {file.metadata.num_rows:,} rows of {len(names)} columns, which need over {MAX_EXPANSION} "
                f"times the size of the file: write it as CSV if you trust it."
            )
        first = 0
        for batch in file.iter_batches(BATCH_ROWS):
            batch.validate(full=True)  # offsets out of range would read other memory
            yield _table_of_batch(path, names, batch, text_columns, first)
            first += batch.num_rows
        if not first:
            raise ValueError(f"{path} has no rows.")


def _check_parquet_names(path: Path, names: list[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated or not names:
        raise ValueError(f"{path}: {f'several columns are named {repeated[0]!r}' if repeated else 'no columns'}.")


def _table_of_batch(path: Path, names: list[str], batch: Any, text_columns: Collection[str], first: int) -> Table:
    """Return a batch as a table; the index of pandas is left out."""
    numbers, texts = {}, {}
    for name, column in zip(names, batch.columns, strict=True):
        if name.startswith("__index_level_"):
            continue
        values = _convert_column(path, name, column)
        if isinstance(values, list):
            texts[name] = values
        else:
            numbers[name] = values
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((batch.num_rows, 0))
    kept = tuple(name for name in names if name in numbers or name in texts)
    places = np.arange(first + 1, first + batch.num_rows + 1)
    table = Table(path, kept, tuple(numbers), matrix, texts, places, unit="row")
    forced = [name for name in numbers if name in text_columns]
    return _as_texts(table, forced) if forced else table


def _convert_column(path: Path, name: str, column: Any) -> Any:
    """Return a column as numbers or as a list of texts; raise an error for other types."""
    import pyarrow
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return ["" if value is None else value for value in column.to_pylist()]
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    if not (is_number or types.is_null(kind)):
        raise ValueError(
            f"{path}: the column {name!r} has the type {kind}; numbers, booleans and texts are read. "
            "Convert or remove it."
        )
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_boolean(kind):
        column = column.cast(pyarrow.int8())
    return column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)


def _as_texts(table: Table, names: list[str]) -> Table:
    """Return a table in which columns of numbers are texts."""
    kept = [column for column, name in enumerate(table.number_names) if name not in names]
    texts = {**table.texts, **{name: table.get_texts(name) for name in names}}
    number_names = tuple(table.number_names[column] for column in kept)
    return Table(table.path, table.names, number_names, table.numbers[:, kept], texts, table.places, table.unit)


def _iter_arff(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    """Yield all rows of an ARFF file; the labels of MEKA files are outputs."""
    file = read_arff(path, words=True)
    names = [attribute.name for attribute in file.attributes]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{path}: several attributes are named {repeated[0]!r}.")
    texts = {attribute.name: _words_of(file, j) for j, attribute in enumerate(file.attributes) if attribute.words}
    kept = [j for j, attribute in enumerate(file.attributes) if not attribute.words]
    numbers, places = file.matrix[:, kept], np.asarray(file.rows.lines)
    numbers.eliminate_zeros()
    number_names = tuple(names[j] for j in kept)
    table = Table(path, tuple(names), number_names, numbers, texts, places, outputs=_meka_labels(file, names))
    forced = [name for name in number_names if name in text_columns]
    yield _as_texts(table, forced) if forced else table


def _words_of(file: Arff, column: int) -> list[str]:
    words = list(file.attributes[column].values or ())
    return [words[int(code)] for code in file.matrix[:, [column]].toarray().ravel()]


def _meka_labels(file: Arff, names: list[str]) -> tuple[str, ...]:
    """Return the labels that the relation counts, as in ``-C 5`` for the first five attributes."""
    count = re.search(r"(?:^|\s)-C\s+(-?[0-9]{1,9})(?:\s|$)", file.relation)
    n_labels = int(count[1]) if count else 0
    return tuple(names[:n_labels] if n_labels > 0 else names[n_labels:]) if n_labels else ()


def _iter_svmlight(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    """Yield all rows; only features that occur are columns, so that memory is bounded by the size of the file."""
    rows = read_svmlight_multilabel(path, zero_based=True)  # names are the numbers in the file
    used = np.unique(rows.X.indices)
    names = tuple(map(str, used.tolist()))
    compact = rows.X.data, np.searchsorted(used, rows.X.indices), rows.X.indptr
    numbers = sparse.csr_matrix(compact, (rows.X.shape[0], len(used)))
    labels = [
        LABEL_SEPARATOR.join(map(str, rows.Y.indices[start:end]))
        for start, end in zip(rows.Y.indptr[:-1], rows.Y.indptr[1:], strict=True)
    ]
    places = np.arange(1, len(labels) + 1)
    yield Table(
        path,
        (LABEL_COLUMN, *names),
        names,
        numbers,
        {LABEL_COLUMN: labels},
        places,
        unit="row",
        outputs=(LABEL_COLUMN,),
        separator=LABEL_SEPARATOR,
        is_sparse_format=True,
    )


_READERS: dict[str, Reader] = {
    "csv": iter_delimited,
    "tsv": iter_delimited,
    "parquet": _iter_parquet,
    "arff": _iter_arff,
    **dict.fromkeys(("svm", "svmlight", "libsvm"), _iter_svmlight),
}
