"""Helpers to write seeds, one folder per seed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

Writer = Callable[[Path], None]


def new_seed(folder: Path) -> Path:
    """Return a new empty folder for one seed."""
    path = folder / f"{len(list(folder.iterdir())):02d}"
    path.mkdir()
    return path


def texts(name: str, *contents: str, compressed: bool = False) -> Writer:
    """Return a function that writes one seed per text, and one that is compressed."""

    def write(folder: Path) -> None:
        for content in contents:
            (new_seed(folder) / name).write_bytes(content.encode())
        if compressed:
            (new_seed(folder) / name).write_bytes(gzip.compress(contents[0].encode(), mtime=0))

    return write
