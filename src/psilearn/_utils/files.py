"""Write files atomically with errors that name them, open files of unknown origin, and convert values to JSON."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
MAX_JSON_BYTES = 2**28


class OutputFile(io.RawIOBase):
    """A new binary file. Each write writes all bytes or raises an OSError that names the file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Buffer) -> int:
        """Write all bytes, and return their number."""
        view = memoryview(data).cast("B")
        with name_errors(self.path):
            start = 0
            while start < len(view):
                written = os.write(self._descriptor, view[start:])
                if written <= 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                start += written
        return len(view)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, from which the next write continues."""
        with name_errors(self.path):
            return os.lseek(self._descriptor, offset, whence)

    def sync(self) -> None:
        """Wait until the content is on the disk, so that it survives a power failure."""
        with name_errors(self.path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            super().close()
            with name_errors(self.path):
                os.close(self._descriptor)


@contextmanager
def name_errors(path: Path) -> Iterator[None]:
    """Add the name of a file to an OSError that lacks it, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        number = errno.EIO if error.errno is None else error.errno
        raise OSError(number, error.strerror or str(error), str(path)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file; if the write is interrupted or fails, the previous file stays unchanged."""
    with open_atomically(path) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path) -> Iterator[OutputFile]:
    """Open a file for writing; if the block ends by an error, the previous file stays unchanged."""
    draft = draft_of(path)
    try:
        with OutputFile(draft) as file:
            if path.exists():  # a private file stays private
                shutil.copymode(path, draft)
            yield file
            file.sync()
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def open_text_atomically(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a text file in UTF-8 for writing, without changing line ends, as :func:`open_atomically` does."""
    with open_atomically(path) as file:
        text = io.TextIOWrapper(io.BufferedWriter(file), encoding="utf-8", newline="")
        yield text
        text.flush()


def draft_of(path: Path) -> Path:
    """Return a new name for the file or folder that is written before it replaces another one."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def create_folder(path: Path) -> None:
    """Create a folder and its parents, unless they exist."""
    if "\0" in str(path):
        raise ValueError(f"{str(path)!r} is not a path: it contains a null character.")
    if path.is_symlink() and not path.exists():
        raise FileExistsError(f"{path} is a link to a folder that does not exist: create the folder, or remove it.")
    path.mkdir(parents=True, exist_ok=True)


def check_new_path(path: Path) -> None:
    """Raise an error unless a file or folder can be created at a path that does not exist."""
    if "\0" in str(path):
        raise ValueError(f"{str(path)!r} is not a path: it contains a null character.")
    if path.is_symlink():
        raise FileExistsError(f"{path} is a link: choose another path, or remove it.")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {parent} is not a folder.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: no permission to write in {parent}.")


def open_regular_file(path: Path) -> io.BufferedReader:
    """Open a regular file for reading; reject links, folders, pipes and devices.

    The file is opened once, without following a link and without waiting for the other end of a pipe, and the opened
    file is examined: what another process puts in its place afterwards does not matter.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, and a socket or a device that is not ready
            raise ValueError("it is a link, a socket or a device, not a regular file") from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
        raise ValueError(f"it is {kinds.get(stat.S_IFMT(mode), 'a device')}, not a regular file")
    return os.fdopen(descriptor, "rb")


def parse_json(text: str) -> Any:
    """Return the value of a strict JSON text, without infinite numbers and NaN."""
    return json.loads(text, parse_constant=_reject_constant)


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")


def to_json_value(value: object) -> JSONValue:
    """Return the value in a form that strict JSON can represent.

    NumPy numbers and arrays become numbers and lists, the keys of a mapping become strings, and values that JSON cannot
    represent (infinity, not-a-number, a kernel) become their ``repr``.

    >>> to_json_value({"p": float("inf"), "grid": (1, 2.5)})
    {'p': 'inf', 'grid': [1, 2.5]}
    """
    if hasattr(value, "tolist"):  # numpy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): to_json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
