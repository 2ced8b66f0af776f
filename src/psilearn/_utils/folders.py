"""Manifest folders: plain files in a folder, described by a ``manifest.json`` that is written last.

Saved models, sets of candidates and libraries of molecules are such folders. A folder without a manifest is not
finished. :meth:`FolderFormat.claim` returns the only object that writes files into a folder, and
:meth:`FolderFormat.open` the only one that opens them, after the manifest and the files that it lists were validated.
No file is unpickled or executed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from psilearn._utils.files import write_atomically

MANIFEST = "manifest.json"
UNFINISHED = "manifest.json.unfinished"  # the manifest of a folder that is being written
ARRAY_SUFFIX = ".npy"

# Errors that Python raises for unexpected contents.
_CONTENT_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TokenError,  # the header of an array
    TypeError,
    ValueError,
)


class FolderError(ValueError):
    """A folder is not of the expected format, is not finished, or is damaged. The message names the folder."""


@dataclass(frozen=True)
class FolderFormat:
    """The format of a kind of folders: its name and version in manifests, and its description in messages."""

    name: str
    version: int
    noun: str  # such as "saved model"
    remedy: str  # a sentence that says how to get a valid folder
    resume: str = ""  # a sentence that says how to finish an unfinished folder, if that is not the remedy

    def claim(self, path: Path) -> FolderWriter:
        """Create the folder, or take over an empty or unfinished one of this format; reject any other folder.

        Files of an unfinished folder stay until they are written again, so that work can be resumed.
        """
        if path.exists() and not path.is_dir():
            raise FileExistsError(f"{path} is a file: choose a new folder for the {self.noun}.")
        if self._wrote(path / MANIFEST):
            raise FileExistsError(f"{path} already contains a {self.noun}: open it, or choose another folder.")
        if path.is_dir() and any(path.iterdir()) and not self.is_unfinished(path):
            raise FileExistsError(f"{path} contains other files: choose a new or empty folder for the {self.noun}.")
        path.mkdir(parents=True, exist_ok=True)
        self.write_manifest(path / UNFINISHED, {})
        return FolderWriter(self, path)

    def open(self, path: Path) -> ManifestFolder:
        """Read the manifest, and validate names, sizes, shapes and dtypes of all files that it lists."""
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: there is no {self.noun} to open. {self.remedy}")
        if not (path / MANIFEST).is_file():
            if self.is_unfinished(path):
                raise FolderError(f"{path} is an unfinished {self.noun}. {self.resume or self.remedy}")
            raise FolderError(f"{path} is not a {self.noun}: it has no {MANIFEST}. {self.remedy}")
        content = self.read_manifest(path / MANIFEST)
        with self.convert_errors(path):
            files = {name: FileEntry.from_json(entry) for name, entry in content.pop("files").items()}
            for name, entry in files.items():
                entry.check(path / check_file_name(name))
        return ManifestFolder(self, path, content, files)

    def is_unfinished(self, path: Path) -> bool:
        """Return whether a folder of this format was begun and not finished."""
        return self._wrote(path / UNFINISHED) and not (path / MANIFEST).exists()

    def write_manifest(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write a manifest; if the write is interrupted, the previous file stays unchanged."""
        write_json(file, {"format": self.name, "version": self.version, **content}, indent=1)

    def read_manifest(self, file: Path) -> dict[str, Any]:
        """Return what :meth:`write_manifest` was given; reject other formats and versions."""
        try:
            content = dict(read_json(file))
            name, version = content.pop("format"), content.pop("version")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise FolderError(f"{file} is not the manifest of a {self.noun}. {self.remedy}") from error
        if name != self.name:
            raise FolderError(f"{file.parent} contains {name!r}, not a {self.noun} ({self.name}). {self.remedy}")
        if version != self.version:
            raise FolderError(
                f"{file.parent} has version {version!r} of the format {self.name}; this psilearn reads version "
                f"{self.version}. {self.remedy}"
            )
        return content

    def error(self, path: Path, reason: str) -> FolderError:
        """Return the error for a folder of this format that cannot be used."""
        return FolderError(f"{path} is not a {self.noun} that can be used: {reason.rstrip('.')}. {self.remedy}")

    def _wrote(self, manifest: Path) -> bool:
        """Return whether a file is a manifest of this format, of any version."""
        try:
            return bool(read_json(manifest)["format"] == self.name)
        except _CONTENT_ERRORS:
            return False

    @contextmanager
    def convert_errors(self, path: Path) -> Iterator[None]:
        """Convert errors that unexpected contents of a folder cause into a :class:`FolderError` that names it."""
        try:
            yield
        except FolderError:
            raise
        except _CONTENT_ERRORS as error:
            has_message = isinstance(error, ValueError | OSError)
            raise self.error(path, str(error) if has_message else f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class FileEntry:
    """The size of a file, and the shape and dtype if it is an array."""

    size: int
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    @classmethod
    def of(cls, file: Path) -> FileEntry:
        """Describe an existing file."""
        if file.suffix != ARRAY_SUFFIX:
            return cls(file.stat().st_size)
        array = open_array(file, mapped=True)
        return cls(file.stat().st_size, array.shape, array.dtype.str)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> FileEntry:
        """Return the entry of a manifest."""
        shape = entry.get("shape")
        return cls(entry["bytes"], None if shape is None else tuple(shape), entry.get("dtype"))

    def to_json(self) -> dict[str, Any]:
        """Return the entry for a manifest."""
        array = {} if self.shape is None else {"shape": list(self.shape), "dtype": self.dtype}
        return {"bytes": self.size, **array}

    def check(self, file: Path) -> None:
        """Raise an error if a file is not as described."""
        if not file.is_file():
            raise ValueError(f"{file.name} is missing")
        size = file.stat().st_size
        if size != self.size:
            raise ValueError(f"{file.name} has {size:,} bytes instead of {self.size:,}: it was truncated or changed")
        found = FileEntry.of(file)
        if found != self:
            raise ValueError(
                f"{file.name} has shape {found.shape} and dtype {found.dtype}; the manifest lists shape {self.shape} "
                f"and dtype {self.dtype}"
            )


class FolderWriter:
    """Writes files into a claimed folder, and lists them in the manifest at the end."""

    def __init__(self, format: FolderFormat, path: Path) -> None:
        self.format = format
        self.path = path
        self._names: list[str] = []
        self._mapped: list[np.memmap[Any, Any]] = []

    def add_file(self, name: str) -> Path:
        """Return the path of a new file, which the caller writes before :meth:`finish`."""
        if name in (MANIFEST, UNFINISHED, *self._names):
            raise ValueError(f"{name} is already a file of {self.path}.")
        self._names.append(check_file_name(name))
        return self.path / name

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file."""
        self.add_file(name).write_bytes(content)

    def write_json(self, name: str, value: Any) -> None:
        """Write a value as strict JSON."""
        write_json(self.add_file(name), value)

    def save_array(self, name: str, array: Any) -> None:
        """Write an array without pickle."""
        np.save(self.add_file(check_file_name(name, ARRAY_SUFFIX)), array, allow_pickle=False)

    def create_array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.memmap[Any, Any]:
        """Create an array on disk, mapped into memory, which the caller fills before :meth:`finish`."""
        path = self.add_file(check_file_name(name, ARRAY_SUFFIX))
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        self._mapped.append(array)
        return array

    def require_space(self, n_bytes: int) -> None:
        """Raise an error if the disk is too small: writing to a mapped array on a full disk ends the process."""
        free = shutil.disk_usage(self.path).free
        if n_bytes > free:
            raise OSError(
                f"{self.path}: the {self.format.noun} needs {n_bytes:,} bytes, but only {free:,} are free on this disk."
            )

    def finish(self, content: Mapping[str, Any]) -> None:
        """Write the manifest with this content and the list of files. Only now is the folder valid."""
        for array in self._mapped:
            array.flush()
        self._mapped.clear()
        files = {name: FileEntry.of(self.path / name).to_json() for name in self._names}
        self.format.write_manifest(self.path / UNFINISHED, {**content, "files": files})
        (self.path / UNFINISHED).replace(self.path / MANIFEST)


@dataclass(frozen=True)
class ManifestFolder:
    """A finished folder whose files are as its manifest describes them."""

    format: FolderFormat
    path: Path
    content: dict[str, Any]  # of the manifest, without format, version and files
    files: Mapping[str, FileEntry]

    def file(self, name: str) -> Path:
        """Return the path of a listed file."""
        if not isinstance(name, str) or name not in self.files:
            raise self.error(f"{name!r} is not a file of its manifest")
        return self.path / name

    def load_array(self, name: str, *, mapped: bool = False) -> NDArray[Any]:
        """Return an array, read into memory or mapped from the disk (read-only)."""
        with self.convert_errors():
            return open_array(self.file(name), mapped=mapped)

    def read_json(self, name: str) -> Any:
        """Return the value of a JSON file."""
        with self.convert_errors():
            return read_json(self.file(name))

    def error(self, reason: str) -> FolderError:
        """Return the error for contents that cannot be used."""
        return self.format.error(self.path, reason)

    @contextmanager
    def convert_errors(self) -> Iterator[None]:
        """Convert errors that unexpected contents cause into a :class:`FolderError` that names the folder."""
        with self.format.convert_errors(self.path):
            yield


def check_file_name(name: str, suffix: str = "") -> str:
    """Return the name of a file in a folder; reject names that lead out of the folder or lack the suffix."""
    if (
        not isinstance(name, str)
        or name in ("", ".", "..")
        or any(character in "/\\:\0" for character in name)
        or not name.endswith(suffix)
    ):
        raise ValueError(f"{name!r} is not the name of a {suffix + ' ' if suffix else ''}file in the folder")
    return name


def read_json(file: Path) -> Any:
    """Return the value of a strict JSON file, without infinite numbers and NaN."""
    return json.loads(file.read_text(encoding="utf-8"), parse_constant=_reject_constant)


def write_json(file: Path, value: Any, *, indent: int | None = None) -> None:
    """Write a value as strict JSON; if the write is interrupted, the previous file stays unchanged."""
    write_atomically(file, json.dumps(value, indent=indent, allow_nan=False).encode())


def open_array(file: Path, *, mapped: bool) -> NDArray[Any]:
    """Return the array of an .npy file, which must not contain pickled objects."""
    try:
        if mapped:
            return np.lib.format.open_memmap(file, mode="r")
        with file.open("rb") as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
            return array
    except (ValueError, EOFError, TokenError) as error:
        raise ValueError(f"{file.name} is not a readable .npy file: {error}") from error


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")
