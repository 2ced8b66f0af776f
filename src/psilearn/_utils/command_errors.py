"""Report the errors and interruptions of command-line commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from psilearn._utils.command_signals import report_interrupt
from psilearn._utils.missing_packages import MissingDependencyError

USAGE_STATUS = 2
USER_ERRORS = (ValueError, OSError, EOFError, MissingDependencyError, MemoryError)


@contextmanager
def report_errors(*, resume: str = "") -> Iterator[None]:
    """Report user-fixable errors in one line on stderr and exit with status 2.

    An interruption is also one line, followed by the sentence ``resume``; the exit status is 128 plus the signal.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except USER_ERRORS as error:
        typer.secho(f"Error: {_describe(error)}", err=True, fg="red")
        raise typer.Exit(USAGE_STATUS) from error
    except KeyboardInterrupt as interrupt:
        raise typer.Exit(report_interrupt(interrupt, resume)) from interrupt


def _describe(error: BaseException) -> str:
    """Return the message of an error in one line, without characters that could control a terminal."""
    message = " ".join(str(error).splitlines()) or type(error).__name__
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in message)
