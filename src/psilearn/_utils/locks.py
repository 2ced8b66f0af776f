"""A lock file that one process holds while it writes into a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from psilearn._utils.files import name_errors

try:
    import fcntl
except ImportError:  # Windows: folders are not locked
    fcntl = None  # type: ignore[assignment]

LOCK = ".psilearn-lock"


class FolderBusyError(OSError):
    """Another writer holds the lock of a folder. The message names the folder and the process."""


class FolderLock:
    """The lock of a folder, held until :meth:`release` or the end of the process.

    The lock file contains the format of the folder and the process number of the writer. The operating system drops the
    lock when the process ends, however it ends; then the file remains, marks the folder as unfinished, and the next
    writer takes it over. On a system without ``fcntl``, the file is only such a mark.
    """

    def __init__(self, folder: Path, format: str) -> None:
        self.file = folder / LOCK
        is_new = not self.file.exists()
        self._descriptor: int | None = self._open()
        try:
            with name_errors(self.file):
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, json.dumps({"format": format, "process": os.getpid()}).encode())
        except BaseException:
            self.release(remove=is_new)
            raise

    @property
    def is_held(self) -> bool:
        """Whether the lock was not released."""
        return self._descriptor is not None

    def release(self, *, remove: bool) -> None:
        """Let other processes write into the folder; remove the lock file if the folder is finished or discarded."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if fcntl is None:  # Windows cannot remove an open file
            os.close(descriptor)
            if remove:
                self.file.unlink(missing_ok=True)
            return
        if remove:
            self.file.unlink(missing_ok=True)  # while it is held: see _open
        os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.release(remove=False)

    def _open(self) -> int:
        """Open and lock the file; repeat that if the last holder removed the file in between."""
        while True:
            if self.file.is_symlink() or (self.file.exists() and not self.file.is_file()):
                raise FileExistsError(f"{self.file} is not a lock file, but a link, pipe or folder: remove it.")
            descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                if fcntl is None:
                    return descriptor
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_nlink:
                    return descriptor
            except OSError as error:
                os.close(descriptor)
                if not isinstance(error, BlockingIOError):
                    raise OSError(error.errno, f"{error.strerror} (lock)", str(self.file)) from error
                process = read_lock(self.file.parent).get("process", "unknown")
                raise FolderBusyError(
                    f"{self.file.parent} is being written by another process (process {process}): wait until it has "
                    f"finished, or choose another path."
                ) from None
            os.close(descriptor)


def read_lock(folder: Path) -> dict[str, Any]:
    """Return the contents of the lock file of a folder; empty if it has none or was killed while it wrote them."""
    file = folder / LOCK
    try:
        content = json.loads(file.read_bytes()[:1000]) if file.is_file() and not file.is_symlink() else {}
    except (OSError, ValueError):
        content = {}
    return content if isinstance(content, dict) else {}
