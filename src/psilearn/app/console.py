"""Consoles, errors, interruptions and output files of commands, for the commands of all packages.

Nothing heavy is imported here, so that ``psilearn --version`` and ``psilearn --help`` answer at once.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

USAGE_STATUS = 2
USER_ERRORS = (ValueError, OSError, EOFError, ModuleNotFoundError, MemoryError)


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
        if type(error) is ModuleNotFoundError:  # not a subclass that says how to install an optional package
            raise
        typer.secho(f"Error: {_describe(error)}", err=True, fg="red")
        raise typer.Exit(USAGE_STATUS) from error
    except KeyboardInterrupt as interrupt:
        raise typer.Exit(report_interrupt(interrupt, resume)) from interrupt


def _describe(error: BaseException) -> str:
    """Return the message of an error in one line, without characters that could control a terminal."""
    message = " ".join(str(error).splitlines()) or type(error).__name__
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in message)


def print_status(text: str) -> None:
    """Print to the standard error, so that it does not mix with results."""
    typer.echo(text, err=True)


SIGNAL_STATUS = 128  # plus the number of the signal
PIPE_STATUS = SIGNAL_STATUS + 13  # SIGPIPE, as a tool that the signal ends


class TerminatedError(KeyboardInterrupt):
    """A signal, given by its number, that asks a process to end. It is handled as a KeyboardInterrupt is."""


def report_interrupt(interrupt: KeyboardInterrupt, resume: str = "") -> int:
    """End the worker processes, report an interruption in one line on stderr, and return the exit status.

    The status is 130 after Ctrl-C, and 143 after SIGTERM.
    """
    import multiprocessing

    for process in multiprocessing.active_children():  # those of joblib have no kill()
        if process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    number = interrupt.args[0] if isinstance(interrupt, TerminatedError) else signal.SIGINT
    name = "Interrupted." if number == signal.SIGINT else f"Terminated by {signal.Signals(number).name}."
    typer.secho(f"{name} {resume}".rstrip(), err=True, fg="yellow")
    return SIGNAL_STATUS + number


@contextmanager
def catch_signals() -> Iterator[None]:
    """Inside the block, SIGTERM and SIGHUP raise :class:`TerminatedError`; a second one ends the process at once.

    Signals that are ignored, for example by ``nohup``, stay ignored.
    """
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _raise_terminated)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


def _raise_terminated(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise TerminatedError(number)


def open_closed_streams() -> None:
    """Connect each standard stream that is closed, as by ``>&-``, to nowhere: else the next file gets its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def flush_output() -> bool:
    """Flush the standard streams, and return whether the reader of one is gone.

    Such a stream is redirected to nowhere, so that the interpreter can flush it at the end without an error.
    """
    broken = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            broken = True
    return broken


def replace_unknown_characters() -> None:
    """Print a question mark for each character that the encoding of a standard stream lacks, instead of failing.

    Where the output of a command is redirected on Windows, its encoding has no Greek letters.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def check_output_file(path: Path, option: str) -> None:
    """Raise an OSError that names the option if a file cannot be written; nothing is left on the disk.

    A file that exists is accepted if it is an ordinary one: it will be replaced.
    """
    folder = path.absolute().parent
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file.")
        if path.exists() and not path.is_file():
            raise OSError(f"{path} is not an ordinary file and cannot be replaced.")
        if not folder.is_dir():
            raise NotADirectoryError(f"the folder {folder} does not exist.")
        probe = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            probe.write_bytes(b"\0")  # fails on full and read-only disks also for the superuser
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror}." if error.strerror else str(error)
        raise type(error)(f"{option}: {reason}") from error


class PipeConsole(Console):
    """A console that raises a BrokenPipeError if its reader is gone, instead of exiting with status 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error again."""
        raise  # called by rich while the error is handled


class CommandGroup(TyperGroup):
    """Commands whose exit status after a signal is 128 plus its number, as in shells.

    If the reader of the output is gone, a command ends silently, as if by SIGPIPE. Characters that the encoding of the
    output lacks are printed as question marks.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse the arguments and run a command."""
        open_closed_streams()
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
