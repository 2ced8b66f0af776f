"""Files that are whole or not there, and plain data to put into them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; whatever interrupts the writing, the former file stays as it was."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """Return the value as strict JSON can hold it.

    Numbers and arrays of numpy become numbers and lists, names of a mapping text, what JSON has no word for (infinity,
    not-a-number, a kernel) the text that Python shows.

    >>> plain({"p": float("inf"), "grid": (1, 2.5)})
    {'p': 'inf', 'grid': [1, 2.5]}
    """
    if hasattr(value, "tolist"):  # numpy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
