"""Work on a device: blocks of rows, copied ahead and halved if memory runs out; small problems in several streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from queue import LifoQueue
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn import config_context, get_config

from psilearn._backend.compute import Compute
from psilearn._backend.device_arrays import has_torch_dtype, to_device
from psilearn._backend.torch_precision import join_team

Block = tuple[slice, Any]  # consecutive rows, and the objects at these rows
Item = TypeVar("Item")
Result = TypeVar("Result")
N_STREAMS = 8  # of a GPU, in which small problems are computed


def row_blocks(A: Any, rows: Iterable[slice]) -> Iterator[Block]:
    """Yield slices of a collection together with the objects there."""
    for part in rows:
        can_share = sparse.issparse(A) and A.format == "csr" and A.has_canonical_format
        yield part, _slice_csr(A, part) if can_share else A[part]


def _slice_csr(A: Any, rows: slice) -> Any:
    """Return consecutive CSR rows that share their entries with A; SciPy would copy them.

    A must be in canonical format: sorting entries or summing duplicates of the rows would change those of A.
    """
    start, stop, _ = rows.indices(A.shape[0])
    entries = slice(A.indptr[start], A.indptr[stop])
    part = type(A)((stop - start, A.shape[1]), dtype=A.dtype)  # the constructor copies entries of larger arrays
    part.data, part.indices = A.data[entries], A.indices[entries]
    part.indptr = A.indptr[start : stop + 1] - A.indptr[start]
    part.has_canonical_format = True
    return part


def stream(
    blocks: Iterable[Block], work: Callable[[Any], Result], compute: Compute, copy_ahead: bool
) -> Iterator[tuple[slice, Result]]:
    """Yield rows and ``work(block)`` for each block.

    With ``copy_ahead``, dense rows are copied to the device before ``work`` is called: the next block is copied through
    pinned memory, from arrays and memory-mapped files, while the work on the current one continues. A block that does
    not fit into the memory of the device is halved as often as needed and yields several results, so ``work`` must not
    have side effects.
    """
    if compute.device is None:
        for rows, block in blocks:
            yield rows, work(block)
        return
    for rows, block in _copy_ahead(blocks, compute) if copy_ahead else blocks:

        def work_on(part: slice, block: Any = block) -> Result:
            return work(block[part])

        for part, result in halve_if_needed(slice(0, rows.stop - rows.start), work_on, compute):
            yield slice(rows.start + part.start, rows.start + part.stop), result


def halve_if_needed(rows: slice, work: Callable[[slice], Result], compute: Compute) -> Iterator[tuple[slice, Result]]:
    """Yield rows and ``work(rows)``; if the memory of the device runs out, the same for each half of the rows."""
    if compute.device is None:
        yield rows, work(rows)
        return
    import torch

    pending = [rows]
    while pending:
        part = pending.pop()
        size = part.stop - part.start
        try:
            result = work(part)
        except torch.cuda.OutOfMemoryError as error:
            if size <= 1:
                message = f"{compute.device} has no memory for a single row: {str(error).splitlines()[0]}"
                raise MemoryError(message) from error
        else:
            yield part, result
            continue
        compute.free_cached_memory()  # the memory of the failed attempt was released with the exception
        middle = part.start + size // 2
        pending += [slice(middle, part.stop), slice(part.start, middle)]


def _copy_ahead(blocks: Iterable[Block], compute: Compute) -> Iterator[Block]:
    """Yield the blocks with dense rows on the device, each copied while the work on the one before continues."""
    if not compute.on_gpu:
        for rows, block in blocks:
            yield rows, to_device(block, compute.device) if _is_copyable(block) else block
        return
    copier = _GpuCopier(compute.device)
    with ThreadPoolExecutor(1) as pool:
        pending = None
        for rows, block in blocks:
            submitted = pool.submit(copier.copy, rows, block)
            if pending is not None:
                yield copier.wait_for(*pending.result())
            pending = submitted
        if pending is not None:
            yield copier.wait_for(*pending.result())


class _GpuCopier:
    """Copies blocks to a GPU through pinned memory, on a stream of its own."""

    def __init__(self, device: Any) -> None:
        import torch

        self.device = device
        self.copy_stream = torch.cuda.Stream(device)
        self.compute_stream = torch.cuda.current_stream(device)

    def copy(self, rows: slice, block: Any) -> tuple[slice, Any, Any]:
        """Start the copy of a block; return it with the event of its arrival, or as it is if it cannot be copied."""
        import torch

        if not _is_copyable(block):
            return rows, block, None
        try:
            empty = torch.from_numpy(np.empty(0, block.dtype))
            pinned = torch.empty(block.shape, dtype=empty.dtype, device="cpu", pin_memory=True)
            np.copyto(pinned.numpy(), block)
            with torch.cuda.stream(self.copy_stream):
                return rows, pinned.to(self.device, non_blocking=True), self.copy_stream.record_event()
        except RuntimeError:  # not enough memory on either side: the work itself moves the rows, in halves if needed
            return rows, block, None

    def wait_for(self, rows: slice, block: Any, event: Any) -> Block:
        """Let the computation wait for the copy of a block."""
        if event is not None:
            self.compute_stream.wait_event(event)
            block.record_stream(self.compute_stream)
        return rows, block


def _is_copyable(block: Any) -> bool:
    """Return whether a block is an array that torch can hold as it is."""
    return isinstance(block, np.ndarray) and has_torch_dtype(block)


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
