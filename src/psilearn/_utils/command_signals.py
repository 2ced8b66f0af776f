"""Signals, closed pipes and encodings of the output of command-line commands; exit statuses as shells report them."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from psilearn._utils.worker_processes import end_workers

SIGNAL_STATUS = 128  # plus the number of the signal
PIPE_STATUS = SIGNAL_STATUS + 13  # SIGPIPE, as a tool that the signal ends


class TerminatedError(KeyboardInterrupt):
    """A signal that asks a process to end, other than Ctrl-C. It is handled as a KeyboardInterrupt is."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def report_interrupt(interrupt: KeyboardInterrupt, resume: str = "") -> int:
    """End the worker processes, report an interruption in one line on stderr, and return the exit status."""
    end_workers()
    typer.secho(f"{describe_interrupt(interrupt)} {resume}".rstrip(), err=True, fg="yellow")
    return interrupt_status(interrupt)


def interrupt_status(interrupt: KeyboardInterrupt) -> int:
    """Return the exit status of an interrupted command: 130 after Ctrl-C, 143 after SIGTERM."""
    return SIGNAL_STATUS + (interrupt.number if isinstance(interrupt, TerminatedError) else signal.SIGINT)


def describe_interrupt(interrupt: KeyboardInterrupt) -> str:
    """Return one sentence about an interruption."""
    if isinstance(interrupt, TerminatedError):
        return f"Terminated by {signal.Signals(interrupt.number).name}."
    return "Interrupted."


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
