"""Show the progress of long computations on stderr when ``verbose`` is set, and report their steps to profilers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")
Observer = Callable[[str], AbstractContextManager[None]]

_VERBOSE: ContextVar[bool] = ContextVar("psilearn_verbose", default=False)
_DRAWING: ContextVar[bool] = ContextVar("psilearn_drawing", default=False)
_OBSERVER: ContextVar[Observer | None] = ContextVar("psilearn_observer", default=None)
MIN_SECONDS = 1.0  # shorter steps are not shown


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
    """Yield the items; inside :func:`show_progress`, draw a progress bar once they take longer than a second.

    A progress bar inside the steps of another one is not drawn.
    """
    if not _VERBOSE.get() or _DRAWING.get():
        yield from items
        return
    from rich import progress

    columns = (progress.MofNCompleteColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    bar = progress.Progress(progress.TextColumn(description), progress.BarColumn(), *columns, console=_console())
    task = bar.add_task(description, total=total)
    start, started = monotonic(), False
    _DRAWING.set(True)
    try:
        for item in items:
            yield item
            bar.advance(task)
            if not started and monotonic() - start > MIN_SECONDS:
                bar.start()
                started = True
    finally:
        _DRAWING.set(False)
        if started:
            bar.stop()


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
    console, start = _console(), monotonic()
    with console.status(description):
        yield
    if monotonic() - start > MIN_SECONDS:
        console.print(f"{description}: {monotonic() - start:.1f} s")


def _console() -> Console:
    """Return a console that writes to stderr."""
    from psilearn.app.console import PipeConsole

    return PipeConsole(stderr=True)
