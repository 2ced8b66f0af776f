"""Files of a few bytes or at the largest size that try to cost more than their bytes: contents that multiply or nest.

Random changes rarely find these: one value that a whole column refers to, declared sizes without contents, items of no
width, archives that expand, text that a parser reads again and again, and as much of everything as is allowed.
"""

from __future__ import annotations

import base64
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

EXPANSION = 64  # sizes of a content that is compressed
MAX_LINES = 8
_WORD = re.compile(rb"[^\s,;:=\"'<>{}]+")


def craft_files(suffix: str, content: bytes, tokens: Sequence[bytes], size: int) -> Iterator[bytes]:
    """Yield crafted files of a format, made from a valid content."""
    make = _FORMATS.get(suffix.lower())
    try:
        if make is not None:
            yield from make(content, size)
    except (ValueError, OSError, pyarrow.ArrowException):  # the content is of another format
        pass
    zeros = bytes(EXPANSION * size)
    yield from (gzip.compress(zeros), _zipped({"X.npy": _array_file("<f8", (len(zeros) // 8,), zeros)}), b"\n" * size)
    if b"\0" not in content and not content.startswith(b"\x1f\x8b"):
        yield from _grow_text(content, tokens, size)


def _grow_text(content: bytes, tokens: Sequence[bytes], size: int) -> Iterator[bytes]:
    """Yield texts of a size in which the content, a line, a word or a token repeats."""
    yield _repeat(content, size)
    lines = content.splitlines(keepends=True)
    for i in sorted({i * len(lines) // MAX_LINES for i in range(MAX_LINES)} | {len(lines) - 1}):
        if lines[i].strip():
            yield b"".join([*lines[:i], _repeat(lines[i], size), *lines[i:]])
            yield b"".join([*lines[:i], _repeat(lines[i].rstrip(), size), b"\n", *lines[i:]])
            word = _WORD.search(lines[i], len(lines[i]) // 2) or _WORD.search(lines[i])
            if word is not None:
                line = lines[i][: word.start()] + _repeat(word.group(), size) + lines[i][word.end() :]
                yield b"".join([*lines[:i], line, *lines[i + 1 :]])
    for token in {b"[", b"(", b'"', b"'", b" ", b"{", b"9", *tokens}:
        yield content.rstrip() + _repeat(token, size)
        yield b"".join([*lines[:-1], _repeat(token, size), lines[-1]])


def _repeat(part: bytes, size: int) -> bytes:
    return part * max(1, size // max(len(part), 1))


def _craft_parquet(content: bytes, size: int) -> Iterator[bytes]:
    """Yield tables in which one value multiplies: through a dictionary, in a list, in rows of no width."""
    table = parquet.read_table(io.BytesIO(content))
    for i, column in enumerate(table.columns):
        kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        n_rows = size // 64
        if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
            values = ["C" * max(1, size // 64)]
            multiplied: Any = pyarrow.DictionaryArray.from_arrays(np.zeros(n_rows, np.int32), values)
            yield _write_parquet(table, i, multiplied)
            yield _write_parquet(table, i, pyarrow.array([""] * n_rows))
        elif pyarrow.types.is_list(kind) or pyarrow.types.is_fixed_size_list(kind):
            flat = pyarrow.array(np.full(EXPANSION * size // 8, 50.0))
            yield _write_parquet(table, i, pyarrow.ListArray.from_arrays(pyarrow.array([0, len(flat)], "int32"), flat))
            yield _write_parquet(table, i, pyarrow.array([[]] * n_rows, kind))
        else:
            yield _write_parquet(table, i, pyarrow.array(np.ones(EXPANSION * size // 8), "float64").cast(kind))
        yield _write_parquet(table, i, pyarrow.nulls(EXPANSION * size // 8))
        wide = pyarrow.table({f"{table.column_names[i]}{j}": table.columns[i] for j in range(size // 512)})
        yield _write_parquet(wide)


def _write_parquet(table: Any, i: int = 0, column: Any = None) -> bytes:
    """Return a table as a file; if a column is given, all rows of the others are their first one."""
    if column is not None:
        n = len(column)
        columns = {name: table[name].take(np.zeros(n, np.int64)) for name in table.column_names}
        table = pyarrow.table({**columns, table.column_names[i]: column})
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


def _craft_npy(content: bytes, size: int) -> Iterator[bytes]:
    """Yield arrays that declare items of no width, or more items than there are bytes."""
    empty = (("<U0", (10**8,)), ("|S0", (10**9,)), ("|V0", (2**40,)), ("<f8", (10**9, 3)), ("<f8", (10**9, 0)))
    yield from (_array_file(dtype, shape) for dtype, shape in empty)
    yield _array_file("<f8", (1,) * 64, bytes(8))
    yield _array_file("|u1", (size // 8, 8), bytes(size))


def _array_file(dtype: str, shape: tuple[int, ...], data: bytes = b"") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def _craft_npz(content: bytes, size: int) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in members:
        for array in [*_craft_npy(b"", size), _array_file("<f8", (size,), bytes(8 * size))]:
            yield _zipped({**members, name: array})
    yield _zipped({f"{i}.npy": b"" for i in range(size // 256)})


def _zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _craft_xml(content: bytes, size: int) -> Iterator[bytes]:
    """Yield documents with entities that multiply, with nested elements, and with an array that expands."""
    entities = b'<!ENTITY e0 "aaaaaaaaaa">'
    entities += b"".join(b'<!ENTITY e%d "%s">' % (i, (b"&e%d;" % (i - 1)) * 10) for i in range(1, 9))
    root = re.search(rb"<([a-zA-Z]\w*)", content)
    name = root.group(1) if root else b"a"
    yield b'<?xml version="1.0"?><!DOCTYPE %s [%s]><%s>&e8;</%s>' % (name, entities, name, name)
    yield b'<!DOCTYPE %s SYSTEM "file:///etc/passwd">' % name + content
    yield b"<%s>" % name + _repeat(b"<spectrum>", size)
    array = base64.b64encode(zlib.compress(bytes(EXPANSION * size), 9))
    yield re.sub(rb"(<binary>)[^<]*", rb"\g<1>" + array, content)
    yield re.sub(rb'(encodedLength|defaultArrayLength|count)="\d+"', rb'\g<1>="999999999999"', content)


def _craft_hdf5(content: bytes, size: int) -> Iterator[bytes]:
    """Yield files whose arrays were declared and never written, or are compressed."""
    import h5py

    with h5py.File(io.BytesIO(content)) as file:
        names = [f"{group}/{name}" for group in file for name in file[group]]
    for n, is_written in ((10**9, False), (size // 32, True)):
        stream = io.BytesIO()
        with h5py.File(stream, "w") as file:
            for name in names:
                shape = (n, 256) if name.endswith("data") else (n,)
                data = {"data": np.zeros(shape, "f4"), "compression": "gzip"} if is_written else {"chunks": True}
                file.create_dataset(name, shape, "f4", **data)
        yield stream.getvalue()


def _craft_json(content: bytes, size: int) -> Iterator[bytes]:
    for opening in (b"[", b'{"a":', b'{"rows":[', b'{"kind":"list","items":['):
        yield _repeat(opening, size)
    yield re.sub(rb"-?\d+(\.\d+)?", b"9" * 5000, content)


_FORMATS: dict[str, Callable[[bytes, int], Iterator[bytes]]] = {
    ".parquet": _craft_parquet,
    ".npy": _craft_npy,
    ".npz": _craft_npz,
    ".h5": _craft_hdf5,
    ".json": _craft_json,
    ".xml": _craft_xml,
    ".mzml": _craft_xml,
}
