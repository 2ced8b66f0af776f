"""Write files atomically with errors that name them, reserve disk space, and convert values to JSON."""

from __future__ import annotations

import errno
import io
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
ZEROS = bytes(2**20)


class OutputFile(io.RawIOBase):
    """A new binary file. Each write writes all bytes or raises an OSError that names the file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)

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
            yield file
        sync_file(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def open_text_atomically(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a text file in UTF-8 for writing, without changing line ends, as :func:`open_atomically` does."""
    with (
        open_atomically(path) as file,
        io.TextIOWrapper(io.BufferedWriter(file), encoding="utf-8", newline="", write_through=False) as text,
    ):
        yield text


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk, so that it survives a power failure."""
    with name_errors(path), path.open("r+b") as file:
        os.fsync(file.fileno())


def draft_of(path: Path, process: int | str | None = None) -> Path:
    """Return the file in which a process, by default this one, writes new content before it replaces a file."""
    return path.with_name(f".{path.name}.{os.getpid() if process is None else process}.tmp")


def reserve_space(path: Path, n_bytes: int) -> None:
    """Allocate the first bytes of a file on the disk; raise an OSError that names it if the disk is full.

    Writing to a mapped file without space on the disk would end the process with SIGBUS.
    """
    with name_errors(path), path.open("r+b") as file:
        if hasattr(os, "posix_fallocate"):
            if n_bytes:
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            return
        file.seek(0, io.SEEK_END)
        size = file.tell()
        while size < n_bytes:
            size += file.write(ZEROS[: n_bytes - size])


def create_folder(path: Path) -> list[Path]:
    """Create a folder and its parents; return those that did not exist, from inside to outside."""
    if "\0" in str(path):
        raise ValueError(f"{str(path)!r} is not a path: it contains a null character.")
    if path.is_symlink() and not path.exists():
        raise FileExistsError(f"{path} is a link to a folder that does not exist: create the folder, or remove it.")
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty_folders(paths: Iterable[Path]) -> None:
    """Remove folders, from inside to outside, as long as nothing is in them."""
    for path in paths:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def open_regular_file(path: Path) -> io.BufferedReader:
    """Open an existing regular file for reading; reject links, folders, pipes and devices without opening them."""
    _require_regular(path, path.lstat().st_mode)
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _require_regular(path, os.fstat(file.fileno()).st_mode)  # of the file that was opened
    except ValueError:
        file.close()
        raise
    return file


def _require_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise ValueError(f"{path.name} is {kinds.get(stat.S_IFMT(mode), 'a device')}, not a regular file")


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
