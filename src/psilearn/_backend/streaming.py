"""Data that pass through a device in blocks: copied ahead of the work, and halved where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from psilearn._backend.compute import working_device
from psilearn._backend.device_arrays import NATIVE, put

Part = tuple[slice, Any]  # consecutive rows, and the objects that stand there


def cut(A: Any, blocks: Iterable[slice]) -> Iterator[Part]:
    """Yield blocks of rows of a collection."""
    for rows in blocks:
        yield rows, A[rows]


def stream(parts: Iterable[Part], work: Callable[[Any], Any], moved: bool) -> Iterator[tuple[slice, Any]]:
    """Yield rows and ``work(block)`` of each part.

    On a device, dense rows are there before the work sees them where they are to be ``moved``: the next block is copied
    through pinned memory, from arrays and from mapped files, while the work on this one goes on. A block for which the
    memory of the device does not suffice is halved, as often as needed, and comes as several: so the work itself must
    change nothing.
    """
    device = working_device()
    if device is None:
        for rows, block in parts:
            yield rows, work(block)
        return
    for rows, block in _ahead(parts, device) if moved else parts:
        inside = halving(slice(0, rows.stop - rows.start), lambda part, block=block: work(block[part]))  # type: ignore[misc]
        for part, result in inside:
            yield slice(rows.start + part.start, rows.start + part.stop), result


def halving(rows: slice, work: Callable[[slice], Any]) -> Iterator[tuple[slice, Any]]:
    """Yield rows and ``work(rows)``; where the memory of a device runs out, the same for each half of the rows."""
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        size = part.stop - part.start
        suffices, result = _attempt(work, part, last=size <= 1)
        if suffices:
            yield part, result
        else:
            middle = part.start + size // 2
            waiting += [slice(middle, part.stop), slice(part.start, middle)]


def _attempt(work: Callable[[slice], Any], part: slice, last: bool) -> tuple[bool, Any]:
    device = working_device()
    if device is None:
        return True, work(part)
    import torch

    try:
        return True, work(part)
    except torch.cuda.OutOfMemoryError as error:
        if last:
            raise MemoryError(f"{device} has no memory for a single row: {str(error).splitlines()[0]}") from error
        # what the failed work held is let go of with the exception
    release(device)
    return False, None


def release(device: Any) -> None:
    """Give memory of the device that is free, but kept by torch for later, back to the system."""
    if device is not None and device.type == "cuda":
        import torch

        with torch.cuda.device(device):
            torch.cuda.empty_cache()


def _ahead(parts: Iterable[Part], device: Any) -> Iterator[Part]:
    """Yield the parts with dense rows on the device, each copied while the one before is worked on."""
    if device.type != "cuda":
        for rows, block in parts:
            yield rows, put(block, device) if _is_plain(block) else block
        return
    import torch

    copies, present = torch.cuda.Stream(device), torch.cuda.current_stream(device)

    def copy(rows: slice, block: Any) -> tuple[slice, Any, Any]:
        if not _is_plain(block):
            return rows, block, None
        try:
            like = torch.from_numpy(np.empty(0, block.dtype))
            pinned = torch.empty(block.shape, dtype=like.dtype, device="cpu", pin_memory=True)
            np.copyto(pinned.numpy(), block)
            with torch.cuda.stream(copies):
                return rows, pinned.to(device, non_blocking=True), copies.record_event()
        except RuntimeError:  # no memory for it, here or there: the work moves it, in halves if need be
            return rows, block, None

    def arrived(rows: slice, block: Any, event: Any) -> Part:
        if event is not None:
            present.wait_event(event)
            block.record_stream(present)
        return rows, block

    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for rows, block in parts:
            following = pool.submit(copy, rows, block)
            if waiting is not None:
                yield arrived(*waiting.result())
            waiting = following
        if waiting is not None:
            yield arrived(*waiting.result())


def _is_plain(block: Any) -> bool:
    """Return whether a block is an array of numbers as torch has them."""
    return isinstance(block, np.ndarray) and block.dtype.isnative and block.dtype.char in NATIVE
