"""Check the files that the commands for tables write: they replace no table that is read, and no file silently."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from psilearn.app.console import check_output_file


def check_result_file(path: Path, option: str, tables: Iterable[Path], model: Path, overwrite: bool) -> None:
    """Raise an error if a result would replace a table, the model or, without ``overwrite``, another file."""
    if any(_is_same_file(path, table) for table in tables):
        raise ValueError(f"{option} is the table that is read; name another file.")
    if _is_same_file(path, model):
        raise ValueError(f"{option} {path} is the model; name another file.")
    check_output_file(path, option)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{option}: {path} already exists: use --overwrite to replace it, or name another file.")


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two names, links included, lead to the same file."""
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return path.resolve() == other.resolve()
