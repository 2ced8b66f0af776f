"""Dataclasses as JSON data in the notes of a saved model, and back by the types of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np


def to_notes(value: Any) -> Any:
    """Return a dataclass of arrays, numbers, tuples, mappings and further dataclasses as JSON data; NaN is None."""
    if is_dataclass(value):
        return {field.name: to_notes(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | tuple):
        return [to_notes(item) for item in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, Mapping):
        return dict(value)
    return None if isinstance(value, float) and value != value else value


def from_notes(kind: Any, notes: Any) -> Any:
    """Return the value of a type from JSON data; a dataclass checks its values when it is made."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:  # with None
        return None if notes is None else from_notes(arguments[0], notes)
    if origin is np.ndarray:
        return np.asarray(notes, dtype=get_args(arguments[1])[0])
    if origin is tuple:
        return tuple(from_notes(arguments[0], item) for item in notes)
    if origin is Mapping:
        return {str(name): float(number) for name, number in notes.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: from_notes(hints[field.name], notes[field.name]) for field in fields(kind)})
    return kind(notes)
