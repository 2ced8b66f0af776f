"""The group of all commands: interruptions and closed pipes end a command without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from psilearn.app.console import (
    PIPE_STATUS,
    catch_signals,
    flush_output,
    replace_unknown_characters,
    report_interrupt,
)


class CommandGroup(TyperGroup):
    """Commands whose exit status after a signal is 128 plus its number, as in shells.

    If the reader of the output is gone, a command ends silently, as if by SIGPIPE. Characters that the encoding of the
    output lacks are printed as question marks.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse the arguments and run a command."""
        replace_unknown_characters()
        try:
            with catch_signals():
                return super().main(*args, **extra)
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):  # help pages end with status 1 at a closed pipe
                end.code = PIPE_STATUS
            raise
        finally:
            if flush_output():
                sys.exit(PIPE_STATUS)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the arguments; some options print and exit."""
        with _exit_quietly():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command after its arguments were parsed."""
        with _exit_quietly():
            return super().invoke(ctx)


@contextmanager
def _exit_quietly() -> Iterator[None]:
    """Exit with the status of shells after a closed pipe or an interruption."""
    try:
        yield
    except BrokenPipeError as error:
        flush_output()
        raise typer.Exit(PIPE_STATUS) from error
    except KeyboardInterrupt as interrupt:  # outside of report_errors
        raise typer.Exit(report_interrupt(interrupt)) from interrupt
