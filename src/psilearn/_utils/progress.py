"""Show the progress of long computations on stderr when ``verbose`` is set, and report their steps to profilers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

Item = TypeVar("Item")
Observer = Callable[[str], AbstractContextManager[None]]

_VERBOSE: ContextVar[bool] = ContextVar("psilearn_verbose", default=False)
_DRAWING: ContextVar[bool] = ContextVar("psilearn_drawing", default=False)
_OBSERVER: ContextVar[Observer | None] = ContextVar("psilearn_observer", default=None)
MIN_SECONDS = 1.0  # shorter steps are not shown, and counts not more often
WIDTH = 79  # of a terminal, to write over longer lines


def show_progress(verbose: bool | int) -> AbstractContextManager[None]:
    """Let :func:`track` and :func:`stage` show progress inside the ``with`` block if ``verbose`` is true."""
    is_verbose = bool(verbose)
    return nullcontext() if is_verbose == _VERBOSE.get() else _set_verbose(is_verbose)


@contextmanager
def _set_verbose(verbose: bool) -> Iterator[None]:
    token = _VERBOSE.set(verbose)
    try:
        yield
    finally:
        _VERBOSE.reset(token)


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items; inside :func:`show_progress`, show their count once they take longer than a second.

    The count of items inside the steps of another count is not shown.
    """
    if not _VERBOSE.get() or _DRAWING.get():
        yield from items
        return
    start = shown = monotonic()
    done = 0
    _DRAWING.set(True)
    try:
        for done, item in enumerate(items, 1):
            yield item
            if monotonic() - shown > MIN_SECONDS:
                shown = monotonic()
                _show_count(description, done, total, shown - start)
    finally:
        _DRAWING.set(False)
        if shown > start:
            _show_count(description, done, total, monotonic() - start, end="\n")


def _show_count(description: str, done: int, total: int | None, seconds: float, end: str = "") -> None:
    """Show a count; a file gets only the last one, whose line ends."""
    left = f", {seconds * (total - done) / done:.0f} s left" if total and done < total and not end else ""
    if end or sys.stderr.isatty():
        _show(f"{description}: {done}/{total or '?'} in {seconds:.1f} s{left}", end)


def _show(line: str, end: str) -> None:
    """Write over the line of a terminal, or append to a file."""
    is_terminal = sys.stderr.isatty()
    print(f"\r{line:<{WIDTH}}" if is_terminal else line, end=end, file=sys.stderr, flush=True)


def stage(description: str) -> AbstractContextManager[None]:
    """Inside :func:`show_progress`, show the current step, and afterwards its time if it exceeded a second."""
    return _shown_stage(description) if _VERBOSE.get() and _OBSERVER.get() is None else step(description)


def step(description: str) -> AbstractContextManager[None]:
    """Report a short step of a computation to the observer, if there is one; it is not shown."""
    observer = _OBSERVER.get()
    return nullcontext() if observer is None else observer(description)


@contextmanager
def observe_steps(observer: Observer) -> Iterator[None]:
    """Enter ``observer(description)`` around each :func:`stage` and :func:`step` inside the block, for profiles."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


@contextmanager
def _shown_stage(description: str) -> Iterator[None]:
    start, is_terminal = monotonic(), sys.stderr.isatty()
    if is_terminal:
        _show(description, end="")
    yield
    if monotonic() - start > MIN_SECONDS:
        _show(f"{description}: {monotonic() - start:.1f} s", end="\n")
    elif is_terminal:
        _show("", end="\r")
