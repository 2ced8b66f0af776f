"""Dataclasses as JSON data: fields are texts, bools, and lists of texts or numbers, which are validated when loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any, TypeVar

Described = TypeVar("Described")


def to_json(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON data."""
    return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}


def from_json(cls: type[Described], data: Any) -> Described:
    """Return the dataclass; raise a ValueError for fields of another type."""
    names = {field.name: str(field.type) for field in fields(cls)}  # type: ignore[arg-type]
    if not isinstance(data, Mapping) or set(data) != set(names):
        raise ValueError(f"{cls.__name__} must have the fields {', '.join(names)}; got {data!r:.80}")
    for name, kind in names.items():
        if not _CHECKS[kind](data[name]):
            raise ValueError(f"{name} of {cls.__name__} must be {kind}; got {data[name]!r:.80}")
    return cls(**{name: _to_tuple(data[name]) for name in names})


def _to_plain(value: Any) -> Any:
    return [_to_plain(item) for item in value] if isinstance(value, tuple) else value


def _to_tuple(value: Any) -> Any:
    return tuple(_to_tuple(item) for item in value) if isinstance(value, list) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "bool": _is_bool,
    "tuple[str, ...]": _list_of(_is_text),
    "tuple[float, ...]": _list_of(_is_number),
    "tuple[tuple[str, ...], ...]": _list_of(_list_of(_is_text)),
}
