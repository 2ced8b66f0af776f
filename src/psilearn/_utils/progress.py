"""Progress of what takes longer than a moment, shown on stderr where ``verbose`` asks for it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeVar

Item = TypeVar("Item")

_VERBOSE: ContextVar[bool] = ContextVar("psilearn_verbose", default=False)
_DRAWING: ContextVar[bool] = ContextVar("psilearn_drawing", default=False)
PATIENCE = 1.0  # seconds before a step is mentioned


@contextmanager
def reporting(verbose: bool | int) -> Iterator[None]:
    """Let :func:`track` and :func:`stage` report inside the ``with`` block, where ``verbose`` is true."""
    token = _VERBOSE.set(bool(verbose))
    try:
        yield
    finally:
        _VERBOSE.reset(token)


def track(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items; inside :func:`reporting` draw a bar as soon as they take more than a second.

    What is tracked inside the steps of another bar is not drawn.
    """
    if not _VERBOSE.get() or _DRAWING.get():
        yield from items
        return
    from rich import progress

    columns = (progress.MofNCompleteColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    bar = progress.Progress(progress.TextColumn(what), progress.BarColumn(), *columns, console=_console())
    task = bar.add_task(what, total=total)
    start, started = monotonic(), False
    _DRAWING.set(True)
    try:
        for item in items:
            yield item
            bar.advance(task)
            if not started and monotonic() - start > PATIENCE:
                bar.start()
                started = True
    finally:
        _DRAWING.set(False)
        if started:
            bar.stop()


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Inside :func:`reporting` say what is being done, and afterwards how long it took if that was over a second."""
    if not _VERBOSE.get():
        yield
        return
    console, start = _console(), monotonic()
    with console.status(what):
        yield
    if monotonic() - start > PATIENCE:
        console.print(f"{what}: {monotonic() - start:.1f} s")


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
