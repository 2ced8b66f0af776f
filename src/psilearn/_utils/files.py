"""Write files atomically and convert values to JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file; if the write is interrupted, the previous file stays unchanged."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def to_json_value(value: object) -> JSONValue:
    """Return the value in a form that strict JSON can represent.

    NumPy numbers and arrays become numbers and lists, the keys of a mapping become strings, and values that JSON cannot
    represent (infinity, not-a-number, a kernel) become their ``repr``.

    >>> to_json_value({"p": float("inf"), "grid": (1, 2.5)})
    {'p': 'inf', 'grid': [1, 2.5]}
    """
    if hasattr(value, "tolist"):  # numpy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): to_json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
