"""Consoles of rich whose closed pipes are handled by the command."""

from rich.console import Console


class PipeConsole(Console):
    """A console that raises a BrokenPipeError if its reader is gone, instead of exiting with status 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error again."""
        raise  # called by rich while the error is handled
