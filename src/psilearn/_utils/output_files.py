"""Check that files can be written, before the work whose result they receive."""

from __future__ import annotations

import os
from pathlib import Path


def check_output_file(path: Path, option: str) -> None:
    """Raise an OSError that names the option if a file cannot be written; nothing is left on the disk.

    A file that exists is accepted if it is an ordinary one: it will be replaced.
    """
    folder = path.absolute().parent
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file.")
        if path.exists() and not path.is_file():
            raise OSError(f"{path} is not an ordinary file and cannot be replaced.")
        if not folder.is_dir():
            raise NotADirectoryError(f"the folder {folder} does not exist.")
        _try_to_write(path.with_name(f".{path.name}.{os.getpid()}.tmp"))
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror}." if error.strerror else str(error)
        raise type(error)(f"{option}: {reason}") from error


def check_output_folder(path: Path, option: str) -> None:
    """Raise an OSError that names the option if a folder, or the first parent that exists, is not writable."""
    existing = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    try:
        if not existing.is_dir():
            raise NotADirectoryError(f"{existing} is a file; name a folder.")
        _try_to_write(existing / f".psilearn.{os.getpid()}.tmp")
    except OSError as error:
        reason = f"the folder {existing} is not writable: {error.strerror}." if error.strerror else str(error)
        raise type(error)(f"{option}: {reason}") from error


def _try_to_write(file: Path) -> None:
    """Write one byte and remove the file, which fails on full and read-only disks also for the superuser."""
    try:
        file.write_bytes(b"\0")
    finally:
        file.unlink(missing_ok=True)
