"""One file for a JSON value and arrays: a safetensors file with checksums, from which nothing is executed.

The arrays are the tensors of the file. Its metadata has the name and version of the format, the JSON value as text,
the SHA-256 of the data, and the SHA-256 of the header itself with zeros in the place of its own digits. So every byte
of the file is covered, and the header, which contains the hash of the data, identifies the file.

A file is opened once, and the bytes that are hashed are those that are used. Every array has at least one byte per
element, so that reading costs time and memory proportional to the size of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.files import (
    MAX_JSON_BYTES,
    check_new_path,
    create_folder,
    open_atomically,
    open_regular_file,
    parse_json,
)

ALIGNMENT = 64  # of the data in the file
SHA256, DATA_SHA256 = "sha256", "data_sha256"
UNSEALED = "0" * 64  # in the place of a digest that is not known yet
DTYPES = {
    name: np.dtype(f"<{code}")
    for name, code in {
        "F64": "f8",
        "I64": "i8",
        "U64": "u8",
        "F32": "f4",
        "I32": "i4",
        "U32": "u4",
        "F16": "f2",
        "I16": "i2",
        "U16": "u2",
        "I8": "i1",
        "U8": "u1",
        "BOOL": "?",
    }.items()
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class ArrayFile:
    """The contents of a file: a JSON value and arrays.

    Parameters
    ----------
    content : JSON value
        The value.
    arrays : dict of str to ndarray
        The arrays by name.
    sha256 : str
        The SHA-256 of the header, which contains that of the data.
    n_bytes : int
        The size of the file.

    See Also
    --------
    FileFormat : Write and read such files.

    Examples
    --------
    >>> from psilearn.io import ArrayFile
    >>> ArrayFile({"a": 1}, {}, "", 0).content
    {'a': 1}
    """

    content: Any
    arrays: Mapping[str, NDArray[Any]]
    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class FileFormat:
    """A kind of safetensors files with a JSON value, arrays, and a SHA-256 that covers every byte.

    Parameters
    ----------
    name : str
        The name of the format in the files.
    version : int
        The version of the format in the files; files of other versions are rejected.
    noun : str
        The kind in error messages, such as "saved model".
    remedy : str
        A sentence of error messages that says how to get a valid file.

    See Also
    --------
    pack_texts : Return texts as arrays for such a file.
    save_model : Save a fitted model in such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn.io import FileFormat
    >>> format = FileFormat("mypackage.table", 1, "table", "Write it again.")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = format.write(Path(folder, "t"), {"unit": "m"}, {"length": np.array([1.0, 2.0])})
    ...     file = format.read(Path(folder, "t"))
    >>> file.content, file.arrays["length"]
    ({'unit': 'm'}, array([1., 2.]))
    """

    name: str
    version: int
    noun: str
    remedy: str

    def check_path(self, path: Path, *, overwrite: bool = False) -> None:
        """Raise an error if a file cannot be written, before the work whose result it will contain.

        Parameters
        ----------
        path : Path
            The file.
        overwrite : bool, default=False
            Whether an existing file of this format may be replaced. Other files are never replaced.

        See Also
        --------
        write : Write a file.

        Examples
        --------
        >>> from pathlib import Path
        >>> from psilearn.io import FileFormat
        >>> FileFormat("mypackage.table", 1, "table", "Write it again.").check_path(Path("new.table"))
        """
        if path.is_symlink() or not path.exists():
            check_new_path(path)
            return
        try:
            with open_regular_file(path) as file:
                is_own = _Header.read(file).metadata.get("format") == self.name
        except (OSError, ValueError):
            is_own = False
        if not is_own:
            raise FileExistsError(f"{path} exists and is not a {self.noun}: choose another path.")
        if not overwrite:
            raise FileExistsError(
                f"{path} already contains a {self.noun}: pass overwrite=True to replace it, or choose another path."
            )

    def write(self, path: Path, content: Any, arrays: Mapping[str, NDArray[Any]]) -> ArrayFile:
        """Write a file next to the path and rename it, so that a reader sees the previous file or the whole new one.

        Parameters
        ----------
        path : Path
            The file; missing folders are created.
        content : JSON value
            The value.
        arrays : dict of str to ndarray
            Arrays of numbers.

        Returns
        -------
        ArrayFile
            What was written.

        See Also
        --------
        read : Read a file.

        Examples
        --------
        >>> from pathlib import Path
        >>> from psilearn.io import FileFormat
        >>> format = FileFormat("mypackage.table", 1, "table", "Write it again.")
        >>> format.write(Path("lengths.table"), {"unit": "m"}, {}).content  # doctest: +SKIP
        {'unit': 'm'}
        """
        create_folder(path.parent)
        arrays = {name: _as_stored(array) for name, array in arrays.items()}
        arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))  # aligned
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        with open_atomically(path) as file:
            start = file.write(self._header(text, arrays, UNSEALED)[0])
            data = hashlib.sha256()
            for array in arrays.values():
                view = array.reshape(-1).view(np.uint8).data
                data.update(view)
                file.write(view)
            header, sha256 = self._header(text, arrays, data.hexdigest())
            file.seek(0)
            file.write(header)
        return ArrayFile(content, arrays, sha256, start + sum(array.nbytes for array in arrays.values()))

    def read(self, path: Path, *, mapped: bool = False, verify: bool = True) -> ArrayFile:
        """Read a file; every error names it.

        Parameters
        ----------
        path : Path
            The file. It is opened once, and neither a link nor a pipe is followed.
        mapped : bool, default=False
            Whether arrays are read-only, and read from the disk when they are used.
        verify : bool, default=True
            Whether the data are compared with their SHA-256; the header always is.

        Returns
        -------
        ArrayFile
            The contents.

        See Also
        --------
        write : Write a file.

        Examples
        --------
        >>> from pathlib import Path
        >>> from psilearn.io import FileFormat
        >>> format = FileFormat("mypackage.table", 1, "table", "Write it again.")
        >>> format.read(Path("lengths.table")).content  # doctest: +SKIP
        {'unit': 'm'}
        """
        with self.convert_errors(path), open_regular_file(path) as file:
            header = _Header.read(file)
            self._check_metadata(path, header.metadata)
            check_seal(header.text, header.metadata[SHA256])
            content = parse_json(header.metadata["content"])
            data = _map(file)[len(header.text) :] if mapped else _read(file, header.data_bytes)
            if verify and hashlib.sha256(data.data).hexdigest() != header.metadata[DATA_SHA256]:
                raise ValueError("it is damaged or was changed: the SHA-256 of its data is not the stored one")
            arrays = {name: entry.array(data, verify) for name, entry in header.table.items()}
            return ArrayFile(content, arrays, header.metadata[SHA256], len(header.text) + header.data_bytes)

    def error(self, path: Path, reason: str) -> ValueError:
        """Return the error for a file that cannot be used.

        Parameters
        ----------
        path : Path
            The file.
        reason : str
            Why it cannot be used.

        Returns
        -------
        ValueError
            The error, which names the file and says how to get a valid one.

        See Also
        --------
        convert_errors : Convert errors of a block of code.

        Examples
        --------
        >>> from pathlib import Path
        >>> from psilearn.io import FileFormat
        >>> FileFormat("mypackage.table", 1, "table", "Write it again.").error(Path("t"), "it has no rows")
        ValueError('t is not a table that can be used: it has no rows. Write it again.')
        """
        return ValueError(f"{path} is not a {self.noun} that can be used: {reason.rstrip('.')}. {self.remedy}")

    @contextmanager
    def convert_errors(self, path: Path) -> Iterator[None]:
        """Convert any error that unexpected contents cause into a ValueError that names the file.

        Parameters
        ----------
        path : Path
            The file.

        See Also
        --------
        error : Return such an error.

        Examples
        --------
        >>> from pathlib import Path
        >>> from psilearn.io import FileFormat
        >>> with FileFormat("mypackage.table", 1, "table", "Write it again.").convert_errors(Path("t")):
        ...     {}["rows"]
        Traceback (most recent call last):
        ValueError: t is not a table that can be used: KeyError: 'rows'. Write it again.
        """
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{path} does not exist: there is no {self.noun} to open.") from error
        except MemoryError as error:
            raise MemoryError(f"{path}: {error}") from error
        except OSError as error:
            if error.errno is not None and error.filename is None:  # a read that failed does not name the file
                error.filename = str(path)
            raise
        except Exception as error:
            if isinstance(error, ValueError) and str(path) in str(error):
                raise
            text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise self.error(path, f"{text:.500}") from error

    def _header(self, content: str, arrays: Mapping[str, NDArray[Any]], data_sha256: str) -> tuple[bytes, str]:
        """Return the length and the header, and its hash."""
        metadata = {"format": self.name, "version": str(self.version), "content": content, DATA_SHA256: data_sha256}
        header: dict[str, Any] = {"__metadata__": {**metadata, SHA256: UNSEALED}}
        end = 0
        for name, array in arrays.items():
            start, end = end, end + array.nbytes
            header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
        if len(text) > MAX_JSON_BYTES:
            raise ValueError(f"More than {MAX_JSON_BYTES:,} bytes of JSON cannot be written.")
        text += b" " * (-(8 + len(text)) % ALIGNMENT)
        return seal(len(text).to_bytes(8, "little") + text)

    def _check_metadata(self, path: Path, metadata: dict[str, Any]) -> None:
        """Raise an error for files of another format or version, or without checksums."""
        name, version = metadata.get("format"), metadata.get("version")
        if name != self.name:
            raise ValueError(f"{path} contains {name!r:.80}, not a {self.noun} ({self.name}). {self.remedy}")
        if version != str(self.version):
            raise ValueError(
                f"{path} has version {version!s:.80} of the format {self.name}; this psilearn reads version "
                f"{self.version}. {self.remedy}"
            )
        names = {"format", "version", "content", SHA256, DATA_SHA256}
        if set(metadata) != names or not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata are not those of the format")


@dataclass(frozen=True)
class _Entry:
    """An entry of the table of tensors."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int

    def array(self, data: NDArray[np.uint8], verify: bool) -> NDArray[Any]:
        """Return the array in the data of the file."""
        array = data[self.start : self.end].view(self.dtype).reshape(self.shape)
        array = np.require(array, requirements="A")  # compiled code of others relies on it
        if verify and self.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise ValueError("an array of bool contains other values")
        return array


def seal(text: bytes) -> tuple[bytes, str]:
    """Return a text with its SHA-256 in the place of the last 64 zeros, and the SHA-256."""
    sha256 = hashlib.sha256(text).hexdigest()
    before, _, after = text.rpartition(UNSEALED.encode())
    return before + sha256.encode() + after, sha256


def check_seal(text: bytes, sha256: str) -> None:
    """Raise an error unless a text contains this SHA-256 once, and it is that of the text with zeros in its place."""
    if len(sha256) != len(UNSEALED) or text.count(sha256.encode()) != 1:
        raise ValueError("it does not contain one SHA-256 of itself")
    if hashlib.sha256(text.replace(sha256.encode(), UNSEALED.encode())).hexdigest() != sha256:
        raise ValueError("it is damaged or was changed: the SHA-256 of its header is not the stored one")


def check_shape(shape: Any, n_bytes: int) -> tuple[int, ...]:
    """Return a shape; raise an error unless a file of this size could hold an array of it with one byte per element.

    Without this, an array of shape (10**15, 0) would have no bytes, but many rows.
    """
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 32:
        raise ValueError(f"{shape!r:.80} is not the shape of an array")
    if math.prod(max(1, size) for size in shape) > n_bytes:
        raise ValueError(f"an array of shape {shape!r:.80} is larger than the file")
    return tuple(shape)


def pack_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return texts as two arrays for a file of arrays.

    Parameters
    ----------
    texts : sequence of n str
        The texts.

    Returns
    -------
    content : ndarray of uint8
        Their UTF-8 bytes, one text after the other.
    ends : ndarray of shape (n,) of int64
        The end of each text.

    See Also
    --------
    unpack_texts : The inverse.

    Examples
    --------
    >>> from psilearn.io import pack_texts
    >>> pack_texts(["ab", "", "c"])
    (array([97, 98, 99], dtype=uint8), array([2, 2, 3]))
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def unpack_texts(
    content: NDArray[np.uint8], ends: NDArray[np.int64], rows: NDArray[np.intp] | None = None
) -> list[str]:
    """Return texts from the arrays of :func:`pack_texts`.

    Parameters
    ----------
    content : ndarray of uint8
        The UTF-8 bytes.
    ends : ndarray of shape (n,) of int64
        The end of each text.
    rows : ndarray of int, default=None
        Which texts are returned. None returns all.

    Returns
    -------
    list of str
        The texts.

    Raises
    ------
    ValueError
        If the arrays are not those of texts.

    See Also
    --------
    pack_texts : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.io import pack_texts, unpack_texts
    >>> unpack_texts(*pack_texts(["ab", "", "c"]), rows=np.array([2, 0]))
    ['c', 'ab']
    """
    if content.dtype != np.uint8 or ends.dtype != np.int64 or content.ndim != 1 or ends.ndim != 1:
        raise ValueError(f"texts are bytes of {content.dtype} with ends of {ends.dtype}")
    index = np.arange(len(ends)) if rows is None else rows
    stops = ends[index]
    starts = np.where(index > 0, ends[index - 1], 0)
    if (starts < 0).any() or (stops < starts).any() or (stops > len(content)).any():
        raise ValueError(f"the ends of texts do not ascend to their {len(content)} bytes")
    data = content.tobytes() if rows is None else content.data
    return [
        str(data[start:stop], "utf-8", "surrogatepass")
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


def _as_stored(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous little-endian array; raise an error for dtypes that tensors cannot have."""
    little = array.dtype.newbyteorder("<")
    if little not in NAMES:
        raise TypeError(f"An array of dtype {array.dtype} cannot be stored as a tensor.")
    return np.ascontiguousarray(array, dtype=little).reshape(array.shape)


def _check_entry(entry: Any, n_bytes: int) -> _Entry:
    """Return an entry of the table of tensors whose dtype, shape and offsets are consistent."""
    dtype, shape = DTYPES[entry["dtype"]], check_shape(entry["shape"], n_bytes)
    start, end = entry["data_offsets"]
    is_consistent = type(start) is int and type(end) is int and 0 <= start <= end and len(entry) == 3
    if not is_consistent or end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(
            f"a tensor of {dtype} and shape {shape!r:.80} does not take the bytes {start!r:.30}-{end!r:.30}"
        )
    return _Entry(dtype, shape, start, end)


@dataclass(frozen=True)
class _Header:
    """The header of a file, read once: the bytes that are parsed are those that are hashed."""

    text: bytes  # with the length in front
    metadata: dict[str, Any]
    table: dict[str, _Entry]
    data_bytes: int

    @classmethod
    def read(cls, file: BufferedReader) -> _Header:
        """Read a header; raise an error if the table of tensors contradicts itself or the size of the file."""
        size = os.fstat(file.fileno()).st_size
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > min(size - 8, MAX_JSON_BYTES):
            raise ValueError("it does not begin with the header of a safetensors file")
        text = _read(file, length).tobytes()
        header = parse_json(text.decode("ascii"))
        if text[:1] != b"{" or not isinstance(header, dict):
            raise ValueError("its header is not a JSON object")
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict):
            raise ValueError("its metadata are not a JSON object")
        table = {name: _check_entry(entry, size) for name, entry in header.items()}
        end = 0
        for entry in sorted(table.values(), key=lambda entry: (entry.start, entry.end)):
            if entry.start != end:
                raise ValueError("its arrays overlap, or bytes between them belong to none")
            end = entry.end
        if 8 + length + end != size:
            raise ValueError(f"it has {size:,} bytes instead of {8 + length + end:,}: it was truncated or changed")
        return cls(first + text, metadata, table, end)


def _read(file: BufferedReader, size: int) -> NDArray[np.uint8]:
    """Read a number of bytes into one buffer."""
    buffer = np.empty(size, dtype=np.uint8)
    if file.readinto(buffer.data) != size:
        raise ValueError("it was truncated while it was read")
    return buffer


def _map(file: BufferedReader) -> NDArray[np.uint8]:
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
