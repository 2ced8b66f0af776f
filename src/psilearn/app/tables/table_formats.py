"""Table files of all formats: the ending of the name determines the format. Every error names the file and the line.

Files may be damaged or made to harm: sizes are compared with that of the file before memory is allocated.
"""

from __future__ import annotations

import csv
import gzip
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import chain, dropwhile, islice
from math import isfinite
from pathlib import Path
from typing import Any

import arff
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from psilearn import utils
from psilearn.app.tables.input_columns import to_dense
from psilearn.app.tables.table import MISSING, Table, is_number, join_rows

BATCH_ROWS = 65_536  # of a Parquet file
CHUNK_CELLS = 200_000  # cells of a text file that are in memory as texts at once: about 25 MB
BLOCK_ROWS = 10_000  # of a svmlight file
MAX_CELL = 131_072  # characters
MAX_COLUMNS = 100_000
MAX_LINE = 1 << 22  # bytes
LABEL_COLUMN, LABEL_SEPARATOR = "labels", ","  # of svmlight files
NUMBER_BYTES = 8
# Attributes of ARFF files, matched in linear time. The pattern of liac-arff takes exponential time for other lists.
_WORD = r"""(?:'(?:[^'\\{}]|\\[^{}])*+'|"(?:[^"\\{}]|\\[^{}])*+"|[^\s,'"{}%]++)"""
ATTRIBUTE = re.compile(
    rf"@attribute\s++{_WORD}\s++(?:[a-z]++|\{{\s*+(?:{_WORD}\s*+(?:,\s*+(?!\}})|(?=\}})))++\}})", re.IGNORECASE
)
MEKA_COUNT = re.compile(r"(?:^|\s)-C\s+(-?[0-9]{1,9})(?:\s|$)")

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
    path = utils.validation.check_path(path, "path")
    is_names = isinstance(text_columns, Collection) and all(isinstance(name, str) for name in text_columns)
    if isinstance(text_columns, str) or not is_names:
        raise TypeError(f"text_columns must be a collection of names of columns; got {text_columns!r:.80}.")
    forced = set(text_columns)
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
    name = path.name.lower()
    return "" if name.endswith(".parquet.gz") else Path(name.removesuffix(".gz")).suffix[1:]


def is_table_file(path: Path) -> bool:
    """Return whether a name is that of an existing file in a known format."""
    return table_format(path) in _READERS and path.exists()


def _line_error(path: Path, line: int, message: str) -> ValueError:
    """Return an error that names the file and the line."""
    return ValueError(f"{path}, line {line}: {message}")


def _read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text with their ends, decompressed if necessary."""
    utils.require_regular_file(path, "a text file")
    with utils.convert_read_errors(path, "a text file"), path.open("rb") as file:
        start = file.read(2)
        is_gzip = start == b"\x1f\x8b"
        if start and not is_gzip and path.suffix.lower() == ".gz":
            raise ValueError(f"{path} ends in .gz, but is not compressed by gzip: rename or compress it.")
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if is_gzip else file
        number, left = 0, utils.decompressed_limit(path)
        while raw := stream.readline(MAX_LINE + 1):
            number, left = number + 1, left - len(raw)
            if left < 0:
                message = f"the contents are over {utils.MAX_EXPANSION} times as large as the file"
                raise _line_error(path, number, f"{message}: decompress it if you trust it.")
            if len(raw) > MAX_LINE:
                raise _line_error(path, number, f"the line is longer than {MAX_LINE:,} bytes.")
            if b"\0" in raw:
                raise _line_error(path, number, "binary content instead of text: save it as UTF-8 text.")
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise _line_error(path, number, f"not UTF-8 text ({error.reason}): save it as UTF-8.") from error
        if not number:
            raise ValueError(f"{path}: the file is empty.")


_Record = tuple[int, list[str]]  # a row of a CSV file: the line in which it begins, and its cells


def _iter_delimited(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    """Yield the rows of a CSV or TSV file in chunks.

    In each chunk, a column of ``text_columns`` consists of texts; another one of numbers, or of texts if a cell of the
    chunk is neither a number nor missing. A quoted cell may contain line ends.
    """
    records = _iter_records(path)
    header = next(records, None)
    if header is None:
        raise _line_error(path, 1, "no header: the first line must name the columns.")
    line, names = header
    _check_header(path, line, names)
    shared: dict[str, dict[str, str]] = {name: {} for name in names}
    n_rows = max(1, CHUNK_CELLS // len(names))
    chunk = list(islice(records, n_rows))
    if not chunk:
        raise _line_error(path, line, f"no rows after the header of {len(names)} columns; the file may be truncated.")
    while chunk:
        yield _make_table(path, names, chunk, text_columns, shared)
        chunk = list(islice(records, n_rows))


def _iter_records(path: Path) -> Iterator[_Record]:
    """Yield the rows, the header first; empty lines are skipped. All rows have as many cells as the header."""
    lines = _read_lines(path)
    first = next(lines)
    if "\r" in first.rstrip("\r\n"):
        raise _line_error(path, 1, "the lines end with CR, as on old Macs: save it with LF or CRLF line ends.")
    delimiter = (
        "\t" if table_format(path) == "tsv" else next((delimiter for delimiter in ",;\t" if delimiter in first), ",")
    )
    if first.count(delimiter) >= MAX_COLUMNS:
        raise _line_error(path, 1, f"there are more than {MAX_COLUMNS:,} columns.")
    reader = csv.reader(chain((first,), lines), delimiter=delimiter, skipinitialspace=True, strict=True)
    width = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_open = "unexpected end of data" in str(error)
            reason = 'a cell begins with " but has no closing "' if is_open else str(error)
            raise _line_error(path, line, f"the row that begins here cannot be read: {reason}.") from error
        width = len(cells) if width is None else width
        if cells and len(cells) != width:
            quoted = "a cell that contains the separator must be quoted"
            advice = "add the missing cells, which may be empty" if len(cells) < width else quoted
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            raise _line_error(path, line, f"{count} for {width} columns; {advice}.")
        if cells:
            yield line, [cell.strip() for cell in cells]


def _check_header(path: Path, line: int, names: list[str]) -> None:
    """Raise an error for a repeated or missing name; the first column may have none, as row numbers of pandas."""
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if "" in names[1:]:
        message = f"column {names.index('', 1) + 1} has no name: the first line must name all columns."
    elif all(map(is_number, names)) and (repeated or not all(name.isdecimal() for name in names)):
        message = "the header is missing: the first line must name the columns, but it consists of numbers."
    elif repeated:
        message = f"several columns are named {', '.join(map(repr, repeated[:5]))}: rename or remove all but one."
    elif names == [""]:
        message = "the only column has no name."
    else:
        return
    raise _line_error(path, line, message)


def _make_table(
    path: Path,
    names: Sequence[str],
    chunk: Sequence[_Record],
    text_columns: Collection[str],
    shared: dict[str, dict[str, str]],
) -> Table:
    """Return the rows of a chunk; a first column without a name is left out, and equal texts are one object."""
    columns: dict[str, Any] = {}
    for name, cells in zip(names, zip(*(row for _, row in chunk), strict=True), strict=True):
        if not name:
            continue
        values = None if name in text_columns else _to_numbers(cells)
        if values is None and len(shared[name]) < CHUNK_CELLS:
            cells = tuple(shared[name].setdefault(cell, cell) for cell in cells)
        columns[name] = list(cells) if values is None else values
    return _table_of_columns(path, columns, np.array([line for line, _ in chunk], dtype=np.int64), "line")


def _to_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return cells as numbers, NaN where they are missing; None if another cell is not a number."""
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():  # Python would read 1_000 and digits of other scripts
        return None
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        if not all(is_number(cell) or cell.lower() in MISSING for cell in cells):
            return None
        return np.array([np.nan if cell.lower() in MISSING else float(cell) for cell in cells])


def _table_of_columns(path: Path, columns: dict[str, Any], places: NDArray[np.int64], unit: str) -> Table:
    """Return a table of columns, each an array of numbers or a list of texts."""
    texts = {name: column for name, column in columns.items() if isinstance(column, list)}
    numbers = {name: column for name, column in columns.items() if name not in texts}
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((len(places), 0))
    return Table(path, tuple(columns), tuple(numbers), matrix, texts, places, unit)


def _iter_parquet(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    with utils.explain_missing("Reading a .parquet file needs pyarrow: pip install 'psilearn[app]'."):
        from pyarrow import parquet, types
    utils.require_regular_file(path, "a Parquet file")
    with utils.convert_read_errors(path, "a Parquet file"), path.open("rb") as stream:
        metadata = parquet.read_metadata(stream)
        schema = metadata.schema.to_arrow_schema()
        names = [str(name) for name in schema.names]
        _check_parquet(path, metadata, names)
        # texts stay places in a dictionary: each of them may be as long as the file, and occur in every row
        words = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
        with parquet.ParquetFile(stream, read_dictionary=words, pre_buffer=False) as file:
            first = 0
            for batch in file.iter_batches(BATCH_ROWS):
                batch.validate(full=True)  # offsets out of range would read other memory
                yield _table_of_batch(path, names, batch, text_columns, first)
                first += batch.num_rows
        if not first:
            raise ValueError(f"{path} has no rows.")


def _check_parquet(path: Path, metadata: Any, names: list[str]) -> None:
    """Compare the names of the columns and the stated sizes of the contents with the file before it is read."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated or not names:
        raise ValueError(f"{path}: {f'several columns are named {repeated[0]!r}' if repeated else 'no columns'}.")
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    stated = sum(group.column(j).total_uncompressed_size for group in groups for j in range(group.num_columns))
    if max(stated, metadata.num_rows * len(names) * NUMBER_BYTES) > utils.decompressed_limit(path):
        raise ValueError(
            f"{path} has {metadata.num_rows:,} rows of {len(names)} columns, which need over {utils.MAX_EXPANSION} "
            f"times the size of the file: write it as CSV if you trust it."
        )


def _table_of_batch(path: Path, names: list[str], batch: Any, text_columns: Collection[str], first: int) -> Table:
    """Return a batch as a table; the index of pandas is left out."""
    pairs = [pair for pair in zip(names, batch.columns, strict=True) if not pair[0].startswith("__index_level_")]
    columns = {name: _convert_column(path, name, column) for name, column in pairs}
    places = np.arange(first + 1, first + batch.num_rows + 1)
    return _as_texts(_table_of_columns(path, columns, places, "row"), text_columns)


def _convert_column(path: Path, name: str, column: Any) -> Any:
    """Return a column as numbers or as a list of texts; raise an error for other types."""
    import pyarrow
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        coded = column if types.is_dictionary(column.type) else column.dictionary_encode()
        words = coded.dictionary.to_pylist()
        if max(map(len, filter(None, words)), default=0) > MAX_CELL:
            raise ValueError(f"{path}: a text of the column {name!r} has more than {MAX_CELL:,} characters.")
        return ["" if place is None else words[place] or "" for place in coded.indices.to_pylist()]
    is_numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    if not (is_numeric or types.is_null(kind)):
        raise ValueError(
            f"{path}: the column {name!r} has the type {kind}; numbers, booleans and texts are read. "
            "Convert or remove it."
        )
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_boolean(kind):
        column = column.cast(pyarrow.int8())
    return column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)


def _as_texts(table: Table, names: Collection[str]) -> Table:
    """Return a table in which columns of numbers are texts."""
    forced = [name for name in table.number_names if name in names]
    if not forced:
        return table
    kept = [column for column, name in enumerate(table.number_names) if name not in names]
    texts = {**table.texts, **{name: table.get_texts(name) for name in forced}}
    number_names = tuple(table.number_names[column] for column in kept)
    return replace(table, number_names=number_names, numbers=table.numbers[:, kept], texts=texts)


def _arff_lines(path: Path, is_sparse: bool, latest: list[int]) -> Iterator[str]:
    """Yield the lines of an ARFF file for liac-arff without comments; ``latest`` receives the number of each line."""
    n_attributes, in_header = 0, True
    for latest[0], raw in enumerate(_read_lines(path), 1):
        line = raw.strip()
        if not line or line[0] == "%":
            continue
        if in_header:
            line = line.replace("\t", " ")
            in_header = line[:5].lower() != "@data"
            is_attribute = line[:10].lower() == "@attribute"
            n_attributes += is_attribute
            if is_attribute and (ATTRIBUTE.fullmatch(line) is None or n_attributes > MAX_COLUMNS):
                message = f"an attribute must be a name and numeric or {{a,'b c'}}, not {line[:60]!r}."
                raise _line_error(path, latest[0], f"{message} Quote texts with spaces; {MAX_COLUMNS:,} are allowed.")
        elif line[0] == "{" and not is_sparse:
            raise _line_error(path, latest[0], "a row lists places and values in braces, but the first row does not.")
        yield line


def _iter_arff(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    """Yield all rows of an ARFF file; the labels of MEKA files are outputs, and words are texts."""
    data = dropwhile(lambda line: line.strip()[:5].lower() != "@data", _read_lines(path))
    is_sparse = next((line for line in islice(data, 1, None) if line.strip() and line[0] != "%"), "").strip()[:1] == "{"
    latest = [0]
    with utils.convert_read_errors(path, "an ARFF file"):
        try:
            mode = arff.LOD_GEN if is_sparse else arff.DENSE_GEN
            content = arff.load(_arff_lines(path, is_sparse, latest), encode_nominal=True, return_type=mode)
            matrix, places = _read_arff_rows(path, content, latest)
        except (arff.ArffException, ValueError, OverflowError) as error:
            if str(path) in str(error.args):
                raise
            reason = getattr(error, "message", str(error)).replace("%d", str(latest[0]))
            raise _line_error(path, latest[0], f"{reason[:200]} Correct or remove the line.") from error
        table = _decode_arff(path, content, matrix, places)
    yield _as_texts(table, text_columns)


def _read_arff_rows(path: Path, content: dict[str, Any], latest: list[int]) -> tuple[Any, NDArray[np.int64]]:
    """Return the numbers of all rows, those of nominal values being places in the header, and their lines."""
    attributes = content["attributes"]
    strings = [name for name, kind in attributes if kind == "STRING"]
    if strings:
        raise ValueError(f"{path}: the attribute {strings[0]!r} is a string; list its values in braces, or drop it.")
    values, columns, ends, places = array("d"), array("i"), array("q", [0]), array("q")
    for row in content["data"]:
        places.append(latest[0])
        if isinstance(row, dict):
            columns.extend(row)
            row = row.values()
            if not all(value is not None and isfinite(value) for value in row):
                raise _line_error(path, latest[0], "a value is missing or infinite; fill it in, or remove the row.")
        values.extend(np.nan if value is None else value for value in row)
        ends.append(len(values))
    if not places:
        raise ValueError(f"{path}: no data rows after {len(attributes)} attributes; the file may be truncated.")
    shape, data = (len(places), len(attributes)), np.asarray(values)
    if len(values) == shape[0] * shape[1] and not columns:
        return data.reshape(shape), np.asarray(places)
    return sparse.csr_matrix((data, np.asarray(columns), np.asarray(ends)), shape), np.asarray(places)


def _decode_arff(path: Path, content: dict[str, Any], matrix: Any, places: NDArray[np.int64]) -> Table:
    """Return the table, with words and numbers in place of the codes of nominal values."""
    attributes = content["attributes"]
    names = tuple(name for name, _ in attributes)
    kept: list[int] = []
    coded: list[int] = []
    for j, (_, kind) in enumerate(attributes):
        is_plain = isinstance(kind, str) or kind == [str(code) for code in range(len(kind))]
        (kept if is_plain else coded).append(j)
    if len(places) * len(coded) * NUMBER_BYTES > utils.decompressed_limit(path):
        raise ValueError(
            f"{path}: {len(places):,} rows of {len(coded):,} nominal attributes are too many for its size."
        )
    codes, texts, numbers, number_names = to_dense(matrix[:, coded]), {}, [], [names[j] for j in kept]
    for j, column in zip(coded, codes.T, strict=True):
        words = attributes[j][1]
        found = np.where(np.isnan(column), len(words), column).astype(np.intp)
        if all(map(is_number, words)):
            numbers.append(np.array([*map(float, words), np.nan])[found])
            number_names.append(names[j])
        else:
            texts[names[j]] = [*map([*words, ""].__getitem__, found.tolist())]
    block = np.array(numbers).reshape(len(numbers), len(places)).T
    blocks = [matrix[:, kept], block]
    joined = sparse.hstack(blocks, "csr") if sparse.issparse(matrix) else np.hstack(blocks)
    count = MEKA_COUNT.search(content["relation"])
    n_labels = int(count[1]) if count else 0
    outputs = (names[:n_labels] if n_labels > 0 else names[n_labels:]) if n_labels else ()
    return Table(path, names, tuple(number_names), joined, texts, places, outputs=outputs)


def _iter_svmlight(path: Path, text_columns: Collection[str]) -> Iterator[Table]:
    """Yield all rows; only features that occur are columns, so that memory is bounded by the size of the file."""
    blocks, labels, places = [], [], array("q")
    shared: dict[str, str] = {}
    lines = ((number, line.partition("#")[0]) for number, line in enumerate(_read_lines(path), 1))
    rows = (row for row in lines if row[1].strip())
    while block := list(islice(rows, BLOCK_ROWS)):
        X, words = _load_svmlight(path, block)
        blocks.append((X.data, X.indices.astype(np.int32), np.diff(X.indptr)))
        labels += [shared.setdefault(word, word) for word in words]
        places.extend(number for number, _ in block)
    if not blocks:
        raise ValueError(f"{path}: no rows; the file may be truncated.")
    data, indices, sizes = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    del blocks
    used, columns = np.unique(indices, return_inverse=True)
    numbers = sparse.csr_matrix((data, columns, np.concatenate(([0], np.cumsum(sizes)))), (len(labels), len(used)))
    names = tuple(map(str, used.tolist()))
    marks: dict[str, Any] = {"outputs": (LABEL_COLUMN,), "separator": LABEL_SEPARATOR, "is_sparse_format": True}
    yield Table(path, (LABEL_COLUMN, *names), names, numbers, {LABEL_COLUMN: labels}, np.asarray(places), **marks)


def _load_svmlight(path: Path, block: list[tuple[int, str]]) -> tuple[Any, list[str]]:
    """Return the features and the labels of lines; for an error, the line is found by bisection."""
    try:
        text = "\n".join(line for _, line in block)
        if "_" in text:  # Python would read 1_000 as a number
            raise ValueError("a number contains _")
        X, y = load_svmlight_file(BytesIO(text.encode()), multilabel=True, zero_based=True)
        if not np.isfinite(X.data).all() or not all(label.is_integer() for labels in y for label in labels):
            raise ValueError("values must be finite, and labels whole numbers")
    except (ValueError, OverflowError) as error:
        if len(block) == 1:
            number, line = block[0]
            message = f"a row must be 'label,label index:value index:value …', not {line[:60]!r} ({error})."
            raise _line_error(path, number, message) from error
        _load_svmlight(path, block[: len(block) // 2])
        return _load_svmlight(path, block[len(block) // 2 :])
    return X, [LABEL_SEPARATOR.join(str(int(label)) for label in labels) for labels in y]


_READERS: dict[str, Reader] = {
    "csv": _iter_delimited,
    "tsv": _iter_delimited,
    "parquet": _iter_parquet,
    "arff": _iter_arff,
    **dict.fromkeys(("svm", "svmlight", "libsvm"), _iter_svmlight),
}
