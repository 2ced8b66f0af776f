"""Independent computations on a GPU at the same time, each in a thread with a stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, partial
from queue import LifoQueue
from typing import Any, Self, TypeVar

from sklearn import config_context, get_config

from psilearn._backend.compute import Compute
from psilearn._backend.torch_precision import join_team

N_STREAMS = 8
N_SIDE_STREAMS = 3
Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_streams(work: Callable[[Item], Result], items: Iterable[Item], device: Any) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, in order, computed in several streams of a GPU.

    Small matrices leave most of a GPU idle, and their eigenvectors take as long as the chain of their steps: several of
    them at a time take little longer than one. The caller must be inside of ``Compute.active()``. Items may share
    tensors that exist before the call, but must not compute anything that another item uses.
    """
    with _Streams(device, N_STREAMS) as streams:
        pending = [streams.submit(partial(work, item)) for item in items]
        try:
            for result in pending:
                yield result.result()
        finally:
            for result in pending:
                result.cancel()


@contextmanager
def side_streams(device: Any, n: int = 1) -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Compute in n other threads, each in a stream of its own, while the block runs; yields a function to submit work.

    Functions start in the order in which they are submitted. Leaving the block waits for them and raises the first of
    their errors, even if the block has raised one; an interrupt waits only for the functions that run. The caller must
    be inside of ``Compute.active()``.
    """
    with join_team(), _Streams(device, n, priority=-1) as streams:
        pending: list[Future[Any]] = []

        def submit(work: Callable[[], Any]) -> Future[Any]:
            pending[:] = [result for result in pending if not _is_over(result)]
            pending.append(streams.submit(work))
            return pending[-1]

        try:
            yield submit
        except Exception:
            _raise_first(pending)
            raise
        except BaseException:
            for result in pending:
                result.cancel()
            raise
        else:
            _raise_first(pending)
        finally:
            pending.clear()  # an error keeps this frame


@contextmanager
def beside(compute: Compute) -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Yield a function that submits work to another thread and stream of a GPU; without a GPU the work is done at once.

    As :func:`side_streams`.
    """
    if compute.on_gpu:
        with side_streams(compute.device) as submit:
            yield submit
    else:
        yield _done


def _done(work: Callable[[], Any]) -> Future[Any]:
    """Return the result of work that is done now."""
    result: Future[Any] = Future()
    result.set_result(work())
    return result


def _raise_first(pending: list[Future[Any]]) -> None:
    """Wait for submitted functions, and raise the error of the first one that failed.

    Results are removed: a result that is named in a frame of its own error would keep the memory of the frames.
    """
    while pending:
        if pending[0].cancelled():
            pending.pop(0)
        else:
            pending.pop(0).result()


def _is_over(result: Future[Any]) -> bool:
    """Return whether a function was cancelled, or returned without an error."""
    return result.done() and (result.cancelled() or result.exception() is None)


class _Streams:
    """Threads that compute for the current one, each call in a stream of its own; torch on the CPU has no streams."""

    def __init__(self, device: Any, n: int, priority: int = 0) -> None:
        self.device, self.priority = device, priority
        self.pool = ThreadPoolExecutor(n)

    def __enter__(self) -> Self:
        if self.device.type == "cuda":
            import torch

            self.index = torch.cuda.current_device() if self.device.index is None else self.device.index
            _load_solvers(self.index)
            self.ready = torch.cuda.current_stream(self.index).record_event()
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Start ``work()`` as soon as a thread is free; it sees what the current thread computed before the threads."""
        return self.pool.submit(copy_context().run, self._run, work, get_config())

    def _run(self, work: Callable[[], Result], config: dict[str, Any]) -> Result:
        with join_team(), config_context(**config):  # scikit-learn has settings of each thread
            if self.device.type != "cuda":
                return work()
            free = _free_streams(self.index, self.priority)
            stream = free.get()
            try:
                return self._run_in(stream, work)
            finally:
                free.put(stream)

    def _run_in(self, stream: Any, work: Callable[[], Result]) -> Result:
        import torch

        with torch.cuda.stream(stream):
            stream.wait_event(self.ready)
            try:
                return work()
            finally:
                stream.synchronize()  # memory of the caller may be freed after an error


@cache
def _free_streams(index: int, priority: int) -> LifoQueue[Any]:
    """Return the few streams of a GPU, the last used one first.

    torch keeps a workspace of 32 MiB for each that has multiplied matrices.
    """
    import torch

    free: LifoQueue[Any] = LifoQueue()
    for _ in range(N_SIDE_STREAMS if priority else N_STREAMS):
        free.put(torch.cuda.Stream(index, priority=priority))
    return free


@cache
def _load_solvers(index: int) -> None:
    """Let torch load its solvers, which fails if several threads call the first of them at the same time."""
    import torch

    torch.linalg.cholesky(torch.ones((1, 1), device=f"cuda:{index}"))
