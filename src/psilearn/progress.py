"""Progress of what takes longer than a moment, shown where ``verbose`` asks for it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

Item = TypeVar("Item")

_VERBOSE: ContextVar[bool] = ContextVar("psilearn_verbose", default=False)
PATIENCE = 1.0  # seconds before a bar appears


@contextmanager
def reporting(verbose: bool | int) -> Iterator[None]:
    """Let :func:`track` draw bars inside the ``with`` block, where ``verbose`` is true."""
    token = _VERBOSE.set(bool(verbose))
    try:
        yield
    finally:
        _VERBOSE.reset(token)


def track(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items; inside :func:`reporting` draw a bar on stderr as soon as they take more than a second."""
    if not _VERBOSE.get():
        yield from items
        return
    from rich import progress
    from rich.console import Console

    columns = (progress.MofNCompleteColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    bar = progress.Progress(progress.TextColumn(what), progress.BarColumn(), *columns, console=Console(stderr=True))
    task = bar.add_task(what, total=total)
    start, started = monotonic(), False
    try:
        for item in items:
            yield item
            bar.advance(task)
            if not started and monotonic() - start > PATIENCE:
                bar.start()
                started = True
    finally:
        if started:
            bar.stop()
