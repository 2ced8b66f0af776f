"""Micro-batching: inputs of concurrent requests are predicted together as one block."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

Compute = Callable[[Sequence[Any]], list[Any]]


class QueueFullError(Exception):
    """Too many inputs wait for a prediction."""


@dataclass(frozen=True)
class _Request:
    key: Hashable
    compute: Compute
    values: Sequence[Any]
    answer: asyncio.Future[list[Any]]


class MicroBatcher:
    """Computes blocks of inputs in one thread, in the order of the requests.

    A request that finds the thread idle is computed at once, alone. Requests that arrive during the computation wait,
    and those with the same key then form the next block, so there is no artificial delay. If a block raises an error,
    its requests are computed again one by one, and each gets its own result or error.
    """

    def __init__(self, *, block_rows: int, queue_rows: int) -> None:
        self.block_rows = block_rows
        self.queue_rows = queue_rows
        self.n_waiting = 0  # inputs
        self.n_blocks = 0
        self.n_rows = 0
        self._waiting: deque[_Request] = deque()
        self._thread = ThreadPoolExecutor(1, "psilearn-predict")
        self._task: asyncio.Task[None] | None = None

    async def submit(self, key: Hashable, compute: Compute, values: Sequence[Any]) -> list[Any]:
        """Return one result per value; raise QueueFullError if too many wait already."""
        if self._waiting and self.n_waiting + len(values) > self.queue_rows:
            raise QueueFullError
        request = _Request(key, compute, values, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self.n_waiting += len(values)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._compute_blocks())
        return await request.answer

    def close(self) -> None:
        """End the thread; the block that it computes is finished first."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _compute_blocks(self) -> None:
        while self._waiting:
            block = self._take_block()
            if not block:
                continue
            results = await asyncio.get_running_loop().run_in_executor(self._thread, _compute_block, block)
            for request, result in zip(block, results, strict=True):
                _deliver(request.answer, result)

    def _take_block(self) -> list[_Request]:
        """Remove the first request and those with its key from the queue, up to the size of a block."""
        block: list[_Request] = []
        rows = 0
        rest: deque[_Request] = deque()
        while self._waiting:
            request = self._waiting.popleft()
            if request.answer.done():  # the client is gone, or waited too long
                self.n_waiting -= len(request.values)
            elif not block or (request.key == block[0].key and rows + len(request.values) <= self.block_rows):
                block.append(request)
                rows += len(request.values)
            else:
                rest.append(request)
        self._waiting = rest
        self.n_waiting -= rows
        self.n_blocks += bool(block)
        self.n_rows += rows
        return block


def _deliver(answer: asyncio.Future[list[Any]], result: list[Any] | Exception) -> None:
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)


def _compute_block(block: list[_Request]) -> list[list[Any] | Exception]:
    """Return the results of each request of a block, or its error."""
    try:
        results = block[0].compute([value for request in block for value in request.values])
    except Exception as error:
        if len(block) == 1:
            return [error]
        return [result for request in block for result in _compute_block([request])]
    starts = [0]
    for request in block:
        starts.append(starts[-1] + len(request.values))
    return [results[start:stop] for start, stop in itertools.pairwise(starts)]
