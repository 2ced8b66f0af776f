"""Independent computations on a GPU at the same time, each in a thread with a stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

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

    _load_solvers(device)
    ready = torch.cuda.current_stream(device).record_event()

    def run(item: Item) -> Result:
        stream = torch.cuda.Stream(device)
        with join_team(), torch.cuda.stream(stream):
            stream.wait_event(ready)
            result = work(item)
            stream.synchronize()
        return result

    with ThreadPoolExecutor(N_STREAMS) as pool:
        pending = [pool.submit(copy_context().run, run, item) for item in items]
        try:
            for result in pending:
                yield result.result()
        finally:
            for result in pending:
                result.cancel()


@cache
def _load_solvers(device: Any) -> None:
    """Let torch load its solvers, which fails if several threads call the first of them at the same time."""
    import torch

    torch.linalg.cholesky(torch.ones((1, 1), device=device))
