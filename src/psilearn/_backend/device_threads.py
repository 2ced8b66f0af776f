"""Independent computations on a GPU at the same time, each in a thread with a stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from queue import LifoQueue
from typing import Any, TypeVar

from sklearn import config_context, get_config

from psilearn._backend.torch_precision import join_team

N_STREAMS = 8
Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_streams(work: Callable[[Item], Result], items: Iterable[Item], device: Any) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, in order, computed in several streams of a GPU.

    Small matrices leave most of a GPU idle, and their eigenvectors take as long as the chain of their steps: several of
    them at a time take little longer than one. The caller must be inside of ``Compute.active()``. Items may share
    tensors that exist before the call, but must not compute anything that another item uses.
    """
    import torch

    index = torch.cuda.current_device() if device.index is None else device.index
    free = _free_streams(index)
    ready = torch.cuda.current_stream(index).record_event()  # what the current thread computed before

    def run(item: Item, config: dict[str, Any]) -> Result:
        stream = free.get()
        try:
            # scikit-learn keeps its settings per thread
            with join_team(), config_context(**config), torch.cuda.stream(stream):
                stream.wait_event(ready)
                try:
                    return work(item)
                finally:
                    stream.synchronize()  # memory of the caller may be freed after an error
        finally:
            free.put(stream)

    with ThreadPoolExecutor(N_STREAMS) as pool:
        pending = [pool.submit(copy_context().run, run, item, get_config()) for item in items]
        try:
            for result in pending:
                yield result.result()
        finally:
            for result in pending:
                result.cancel()


@cache
def _free_streams(index: int) -> LifoQueue[Any]:
    """Return the few streams of a GPU, the last used one first.

    torch keeps a workspace of 32 MiB for each that has multiplied matrices.
    """
    import torch

    # Let torch load its solvers, which fails if several threads call the first of them at the same time.
    torch.linalg.cholesky(torch.ones((1, 1), device=f"cuda:{index}"))
    free: LifoQueue[Any] = LifoQueue()
    for _ in range(N_STREAMS):
        free.put(torch.cuda.Stream(index))
    return free
