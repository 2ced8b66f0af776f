"""Check the files that the commands for tables write: they replace no table that is read, and no file silently."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from psilearn.app.console import check_output_file


def check_result_file(path: Path, option: str, tables: Iterable[Path], model: Path, overwrite: bool) -> None:
    """Raise an error if a result would replace a table, a part of the model or, without ``overwrite``, another file."""
    if any(_is_same_file(path, table) for table in tables):
        raise ValueError(f"{option} is the table that is read; name another file.")
    if path.resolve().is_relative_to(model.resolve()):
        raise ValueError(f"{option} {path} is in the folder of the model; name another file.")
    check_output_file(path, option)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{option}: {path} already exists: use --overwrite to replace it, or name another file.")


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two names, links included, lead to the same file."""
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return path.resolve() == other.resolve()
