"""An input of a reader as a value: the files of a folder, which may also be pipes, links or folders."""

from __future__ import annotations

import os
import shutil
from enum import Enum
from pathlib import Path


class Special(Enum):
    """What stands at the place of a file."""

    PIPE = "a pipe that nobody writes to"
    FOLDER = "an empty folder"
    BROKEN_LINK = "a link to a missing file"
    LINK = "a link to a file outside of the folder"


Tree = dict[str, bytes | Special]


def write_tree(folder: Path, tree: Tree) -> None:
    """Make a folder that contains exactly the files of a tree; the file that links lead to is next to the folder."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name, content in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write_entry(folder / name, content, folder.with_name("linked"))


def read_tree(folder: Path) -> Tree:
    """Return the files of a folder and of its subfolders, by their names relative to the folder."""
    tree: Tree = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and any(path.iterdir()):
            tree.update({f"{path.name}/{name}": content for name, content in read_tree(path).items()})
        else:
            tree[path.name] = _read_entry(path)
    return tree


def count_bytes(tree: Tree) -> int:
    """Return the size of all files."""
    return sum(len(content) for content in tree.values() if isinstance(content, bytes))


def _write_entry(path: Path, content: bytes | Special, outside: Path) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is Special.PIPE:
        os.mkfifo(path)
    elif content is Special.FOLDER:
        path.mkdir()
    elif content is Special.BROKEN_LINK:
        path.symlink_to("missing")
    else:
        outside.write_bytes(b"a file outside of the folder\n")
        path.symlink_to(outside)


def _read_entry(path: Path) -> bytes | Special:
    if path.is_symlink():
        return Special.LINK if path.exists() else Special.BROKEN_LINK
    if path.is_fifo():
        return Special.PIPE
    return Special.FOLDER if path.is_dir() else path.read_bytes()
