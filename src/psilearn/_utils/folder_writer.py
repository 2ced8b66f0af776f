"""Write the files of a manifest folder; the manifest, which makes the folder valid, is replaced last in one rename."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from psilearn._utils.files import OutputFile, draft_of, name_errors, remove_empty_folders, reserve_space, sync_file
from psilearn._utils.folder_files import ARRAY_SUFFIX, FileEntry, check_file_name, write_json
from psilearn._utils.locks import LOCK, FolderLock

if TYPE_CHECKING:
    from psilearn._utils.folders import FolderFormat

MANIFEST = "manifest.json"
MAX_VERSION = 10**9 - 1
VERSION_FOLDER = re.compile(r"version-[1-9][0-9]{0,8}")  # of the files of a folder that can be replaced


class FolderWriter:
    """Writes files into a claimed folder, and lists them in the manifest at the end.

    The writer is a context manager that holds the lock of the folder. If its block ends by an error, the files of an
    unfinished folder are removed, unless the format can resume its work.
    """

    def __init__(self, format: FolderFormat, path: Path, created: Sequence[Path] = ()) -> None:
        """Lock a folder; ``created`` are the folder and its parents that did not exist, from inside to outside."""
        self.format = format
        self.path = path
        self._created = created
        self._lock = FolderLock(path, format.name)
        self._version = self._next_version() if format.replaceable else None  # the subfolder of the files
        self._names: list[str] = []
        self._mapped: list[np.memmap[Any, Any]] = []

    def __enter__(self) -> FolderWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    @property
    def data(self) -> Path:
        """The folder of the files."""
        return self.path if self._version is None else self.path / self._version

    def prepare(self) -> None:
        """Remove what an interrupted writer left: drafts of the manifest, and other versions of the files."""
        for draft in self.path.glob(draft_of(self.path / MANIFEST, "*").name):
            if draft.is_file() or draft.is_symlink():
                draft.unlink()
        self._remove_versions(keep=self.format.find_version(self.path))
        self.data.mkdir(exist_ok=True)

    def add_file(self, name: str) -> Path:
        """Return the path of a new file, which the caller writes before :meth:`finish`."""
        if name in (MANIFEST, LOCK, *self._names):
            raise ValueError(f"{name} is already a file of {self.path}.")
        self._names.append(check_file_name(name))
        return self.data / name

    def open(self, name: str) -> OutputFile:
        """Open a new file for writing."""
        return OutputFile(self.add_file(name))

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file."""
        with self.open(name) as file:
            file.write(content)

    def write_json(self, name: str, value: Any) -> None:
        """Write a value as strict JSON."""
        write_json(self.add_file(name), value)

    def save_array(self, name: str, array: Any) -> None:
        """Write an array without pickle."""
        with self.open(check_file_name(name, ARRAY_SUFFIX)) as file:
            np.save(file, array, allow_pickle=False)

    def create_array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, *, keep: bool = False
    ) -> np.memmap[Any, Any]:
        """Create an array on disk, mapped into memory, which the caller fills before :meth:`finish`.

        Its disk space is reserved, because writing to a mapped array on a full disk would end the process. With
        ``keep``, the array of an interrupted writer is opened instead, which has this shape and dtype.
        """
        path = self.add_file(check_file_name(name, ARRAY_SUFFIX))
        with name_errors(path):
            if keep:
                array = np.lib.format.open_memmap(path, mode="r+")
            else:
                array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        reserve_space(path, path.stat().st_size)
        self._mapped.append(array)
        return array

    def require_space(self, n_bytes: int) -> None:
        """Raise an error if the disk is too small, before anything is written."""
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
        for name in self._names:
            sync_file(self.data / name)  # before the manifest replaces an older one
        files = {name: FileEntry.of(self.data / name).to_json() for name in self._names}
        data = {} if self._version is None else {"data": self._version}
        self.format.write_manifest(self.path / MANIFEST, {**content, **data, "files": files})
        self._remove_versions(keep=self._version)
        self._lock.release(remove=True)

    def release(self) -> None:
        """Release the lock; without :meth:`finish`, remove the new files, unless the format can resume its work."""
        if not self._lock.is_held:
            return
        self._mapped.clear()
        if self._version is not None:
            self._remove_versions(keep=self.format.find_version(self.path))
        elif not (self.path / MANIFEST).exists():
            if self.format.resume:
                self._lock.release(remove=False)
                return
            for name in self._names:
                (self.path / name).unlink(missing_ok=True)
        self._lock.release(remove=True)
        remove_empty_folders(self._created or [self.path])

    def _next_version(self) -> str:
        """Return the name of a subfolder that no version of the files has."""
        names = [folder.name for folder in self.path.iterdir() if VERSION_FOLDER.fullmatch(folder.name)]
        used = {int(name.partition("-")[2]) for name in names}
        following = 1 + max(used, default=0)
        return f"version-{following if following <= MAX_VERSION else min(set(range(1, len(used) + 2)) - used)}"

    def _remove_versions(self, keep: str | None) -> None:
        """Remove all versions of the files but one."""
        for folder in self.path.iterdir():
            if VERSION_FOLDER.fullmatch(folder.name) and folder.name != keep and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
