"""Report the errors of command-line commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

USAGE_STATUS = 2
USER_ERRORS = (ValueError, OSError, EOFError, ImportError, MemoryError)


@contextmanager
def report_errors() -> Iterator[None]:
    """Report user-fixable errors in one line on stderr and exit with status 2."""
    try:
        yield
    except USER_ERRORS as error:
        typer.secho(f"Error: {error}", err=True, fg="red")
        raise typer.Exit(USAGE_STATUS) from error
