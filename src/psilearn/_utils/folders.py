"""Manifest folders: plain files in a folder, described by a ``manifest.json`` that is written last.

Saved models, sets of candidates and libraries of molecules are such folders. A folder without a manifest is not
finished. :meth:`FolderFormat.claim` returns the only object that writes files into a folder, and
:meth:`FolderFormat.open` the only one that opens them, after the manifest and the files that it lists were validated:
names, sizes, shapes, dtypes and the SHA-256 of each file and of the manifest itself. No file is unpickled or executed.

The files of a format that can be replaced lie in a subfolder ``version-1``, ``version-2``, …, which the manifest
names, so that one rename of the manifest replaces all of them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from psilearn._utils.files import create_folder, open_regular_file, remove_empty_folders
from psilearn._utils.folder_files import MAX_JSON_BYTES, FileEntry, check_file_name, open_array, read_json, write_json
from psilearn._utils.folder_writer import MANIFEST, VERSION_FOLDER, FolderWriter
from psilearn._utils.locks import LOCK, read_lock

CHECKSUM = "manifest_sha256"  # of the other contents of the manifest
MAX_FILES = 10_000
MAX_READS = 50  # of a folder that is replaced while it is read
READ_PAUSE = 0.01  # seconds

Result = TypeVar("Result")


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
    replaceable: bool = False  # whether claim accepts overwrite

    def claim(self, path: Path, *, overwrite: bool = False) -> FolderWriter:
        """Create the folder, or take over an empty or unfinished one of this format; reject any other folder.

        The folder is locked until the writer finishes or releases it. With ``overwrite``, a finished folder of this
        format is replaced when the writer finishes. Files of an unfinished folder that can be resumed stay until they
        are written again.
        """
        self._check_claimable(path, overwrite)
        created = create_folder(path)
        writer = None
        try:
            writer = FolderWriter(self, path, created)
            self._check_claimable(path, overwrite)  # another process may have finished the folder
            writer.prepare()
            return writer
        except BaseException:
            if writer is not None:
                writer.release()
            remove_empty_folders(created or [path])
            raise

    def open(self, path: Path, *, verify: bool = True) -> ManifestFolder:
        """Read the manifest, and validate all files that it lists.

        With ``verify``, all files are read once to compare their SHA-256; otherwise only their headers are read.
        """
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: there is no {self.noun} to open. {self.remedy}")
        if not (path / MANIFEST).exists():
            if self.is_unfinished(path):
                raise FolderError(f"{path} is an unfinished {self.noun}. {self.resume or self.remedy}")
            raise FolderError(f"{path} is not a {self.noun}: it has no {MANIFEST}. {self.remedy}")
        content = self.read_manifest(path / MANIFEST)
        with self.convert_errors(path):
            data = _check_data(path / _check_version(content.pop("data"))) if self.replaceable else path
            entries = content.pop("files")
            if len(entries) > MAX_FILES:
                raise ValueError(f"its manifest lists more than {MAX_FILES:,} files")
            files = {name: FileEntry.from_json(entry) for name, entry in entries.items()}
            for name, entry in files.items():
                entry.check(data / check_file_name(name), verify=verify)
        return ManifestFolder(self, path, data, content, files)

    def read(self, path: Path, function: Callable[[ManifestFolder], Result], *, verify: bool = True) -> Result:
        """Return what a function reads from a folder, and repeat that if the folder was replaced meanwhile."""
        for _ in range(MAX_READS):
            before = _read_bytes(path / MANIFEST)
            try:
                return function(self.open(path, verify=verify))
            except FolderError:
                if _read_bytes(path / MANIFEST) == before:
                    raise
            time.sleep(READ_PAUSE)
        raise OSError(f"{path} was replaced {MAX_READS} times while it was read: another process keeps writing to it.")

    def is_unfinished(self, path: Path) -> bool:
        """Return whether a folder of this format was begun and not finished."""
        is_begun = (path / LOCK).is_file() and read_lock(path).get("format", self.name) == self.name
        return is_begun and not (path / MANIFEST).exists()

    def find_version(self, path: Path) -> str | None:
        """Return the subfolder of the files of a finished folder that can be replaced, None if there is none."""
        try:
            return _check_version(read_json(path / MANIFEST)["data"])
        except Exception:  # the manifest of another format, or not a manifest
            return None

    def write_manifest(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write a manifest; if the write is interrupted, the previous file stays unchanged."""
        content = {"format": self.name, "version": self.version, **content}
        write_json(file, {**content, CHECKSUM: compute_checksum(content)}, indent=1)

    def read_manifest(self, file: Path) -> dict[str, Any]:
        """Return what :meth:`write_manifest` was given; reject other formats and versions, and damaged manifests."""
        try:
            content = dict(read_json(file))
            name, version = content["format"], content["version"]
        except Exception as error:
            raise FolderError(f"{file} is not the manifest of a {self.noun}. {self.remedy}") from error
        if name != self.name:
            raise FolderError(f"{file.parent} contains {name!r:.80}, not a {self.noun} ({self.name}). {self.remedy}")
        if version != self.version:
            raise FolderError(
                f"{file.parent} has version {version!r:.80} of the format {self.name}; this psilearn reads version "
                f"{self.version}. {self.remedy}"
            )
        with self.convert_errors(file.parent):  # a number such as 1e999 has no checksum
            if content.pop(CHECKSUM, None) != compute_checksum(content):
                raise ValueError(f"{MANIFEST} is damaged or was changed: its SHA-256 is not the stored one")
        del content["format"], content["version"]
        return content

    def error(self, path: Path, reason: str) -> FolderError:
        """Return the error for a folder of this format that cannot be used."""
        return FolderError(f"{path} is not a {self.noun} that can be used: {reason.rstrip('.')}. {self.remedy}")

    @contextmanager
    def convert_errors(self, path: Path) -> Iterator[None]:
        """Convert errors that unexpected contents of a folder cause into a :class:`FolderError` that names it."""
        try:
            yield
        except FolderError:
            raise
        except Exception as error:
            has_message = isinstance(error, ValueError | OSError)
            raise self.error(path, str(error) if has_message else f"{type(error).__name__}: {error}") from error

    def _check_claimable(self, path: Path, overwrite: bool) -> None:
        if path.exists() and not path.is_dir():
            raise FileExistsError(f"{path} is a file: choose a new folder for the {self.noun}.")
        if self._wrote(path / MANIFEST):
            if not (overwrite and self.replaceable):
                advice = "pass overwrite=True to replace it" if self.replaceable else "open it"
                raise FileExistsError(f"{path} already contains a {self.noun}: {advice}, or choose another folder.")
        elif path.is_dir() and any(path.iterdir()) and not self.is_unfinished(path):
            raise FileExistsError(f"{path} contains other files: choose a new or empty folder for the {self.noun}.")

    def _wrote(self, manifest: Path) -> bool:
        """Return whether a file is a manifest of this format, of any version."""
        try:
            return bool(read_json(manifest)["format"] == self.name)
        except Exception:  # any file of another format
            return False


@dataclass(frozen=True)
class ManifestFolder:
    """A finished folder whose files are as its manifest describes them."""

    format: FolderFormat
    path: Path
    data: Path  # the folder of the files
    content: dict[str, Any]  # of the manifest, without format, version and files
    files: Mapping[str, FileEntry]

    def file(self, name: str) -> Path:
        """Return the path of a listed file."""
        if not isinstance(name, str) or name not in self.files:
            raise self.error(f"{name!r} is not a file of its manifest")
        return self.data / name

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


def compute_checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON data, independent of white space and of the order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_bytes(manifest: Path) -> bytes | None:
    """Return the content of a manifest; None if it is absent or not a regular file."""
    try:
        with open_regular_file(manifest) as file:
            return file.read(MAX_JSON_BYTES)
    except (OSError, ValueError):
        return None


def _check_version(name: Any) -> str:
    if not isinstance(name, str) or not VERSION_FOLDER.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not the subfolder of a version")
    return name


def _check_data(folder: Path) -> Path:
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError(f"{folder.name} is missing, or a link")
    return folder
