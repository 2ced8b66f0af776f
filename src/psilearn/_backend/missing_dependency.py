"""The error for optional packages that are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingDependencyError(ModuleNotFoundError):
    """An optional package is not installed; the message says how to install it."""


@contextmanager
def explain_missing(message: str) -> Iterator[None]:
    """Convert a ModuleNotFoundError of the imports in the block; an installed but broken package keeps its error."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDependencyError(message, name=error.name) from error
