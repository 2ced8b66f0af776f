"""One task per chunk: lists of results, concatenated rows, and sums in an order that depends on the chunks alone.

A task is a pure function of its chunk and of one shared object, which holds the function, its common arguments (such as
landmarks) and the block budget. The shared object is a part of the graph and not data that lies on some worker, so that
Dask can run any task again after a worker was lost, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn import config_context

from psilearn._distributed.chunked_rows import ChunkedRows
from psilearn._distributed.scheduling import block_budget, run_tasks, single_blas_thread

BRANCHES = 4  # results that one task of a reduction merges


@dataclass(frozen=True)
class ChunkJob:
    """What the tasks of all chunks share."""

    function: Callable[..., Any]
    templates: tuple[ChunkedRows, ...]  # without blocks: their steps
    common: tuple[Any, ...]
    budget: int  # bytes of a block


def run_chunk(job: ChunkJob, places: tuple[tuple[int, int], ...], own: tuple[Any, ...], *blocks: Any) -> Any:
    """Call the function of a job with the chunks, the arguments of this chunk and the common ones.

    ``places`` are the number and the declared size of the chunk in each collection.
    """
    with single_blas_thread(), config_context(working_memory=job.budget / 2**20):
        chunks = [rows.prepare(block, *place) for rows, block, place in zip(job.templates, blocks, places, strict=True)]
        return job.function(*chunks, *own, *job.common)


def map_chunks(
    function: Callable[..., Any],
    A: Any,
    *aligned: Any,
    common: tuple[Any, ...] = (),
    selection: Mapping[int, Any] | None = None,
) -> list[Any]:
    """Return ``function(chunk, *aligned_chunks, *common)`` for each chunk, in the order of the chunks.

    A collection in memory is one chunk. With a ``selection``, only the chunks with these numbers are used, and the
    function gets the value of the selection before the common arguments.
    """
    if not isinstance(A, ChunkedRows):
        return [function(A, *aligned, *common)]
    return run_tasks(chunk_tasks(function, (A, *aligned), common, selection))


def concat_chunks(function: Callable[..., Any], A: Any, *, common: tuple[Any, ...] = ()) -> Any:
    """Return the rows that a function returns for each chunk as one NumPy array."""
    parts = map_chunks(function, A, common=common)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def sum_chunks(
    function: Callable[..., tuple[Any, ...]], A: ChunkedRows, *aligned: ChunkedRows, common: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """Return the sums over the chunks of a tuple of arrays and numbers, added in a tree over the chunk numbers."""
    return reduce_chunks(function, add_results, A, *aligned, common=common)


def reduce_chunks(
    function: Callable[..., Any],
    merge: Callable[[Sequence[Any]], Any],
    A: ChunkedRows,
    *aligned: ChunkedRows,
    common: tuple[Any, ...] = (),
) -> Any:
    """Merge the results of neighboring chunks, ``BRANCHES`` at a time, until one is left.

    ``merge`` must not change its arguments: after the loss of a worker Dask may use them again.
    """
    from dask.delayed import delayed

    level = chunk_tasks(function, (A, *aligned), common)
    merged = delayed(merge, pure=False)
    while len(level) > 1:
        groups = [level[i : i + BRANCHES] for i in range(0, len(level), BRANCHES)]
        level = [merged(group) if len(group) > 1 else group[0] for group in groups]
    return run_tasks(level)[0]


def chunk_tasks(
    function: Callable[..., Any],
    collections: tuple[ChunkedRows, ...],
    common: tuple[Any, ...] = (),
    selection: Mapping[int, Any] | None = None,
) -> list[Any]:
    """Return one delayed call of the function per chunk, or per selected chunk."""
    from dask.delayed import delayed

    templates = tuple(rows.without_blocks() for rows in collections)
    job = delayed(ChunkJob(function, templates, common, block_budget()), traverse=False)
    run = delayed(run_chunk, pure=False)
    name = f"psilearn-{_name_of(function)}-{uuid4().hex}"
    tasks = []
    for number in range(len(collections[0].blocks)) if selection is None else selection:
        own = () if selection is None else (selection[number],)
        blocks = [rows.blocks[number] for rows in collections]
        places = tuple((rows.numbers[number], rows.sizes[number]) for rows in collections)
        tasks.append(run(job, places, own, *blocks, dask_key_name=(name, number)))
    return tasks


def map_items(function: Callable[..., Any], shared: Any, items: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return ``function(shared, *item)`` for each item, one task per item; the shared object is sent once."""
    from dask.delayed import delayed

    run = delayed(function, pure=False)
    common = delayed(shared, traverse=False)
    return run_tasks([run(common, *(delayed(part, traverse=False) for part in item)) for item in items])


def add_results(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add tuples of arrays and numbers entry by entry, from the first to the last."""
    total = [np.array(value, order="K") if isinstance(value, np.ndarray) else value for value in parts[0]]
    for part in parts[1:]:
        for i, value in enumerate(part):
            total[i] += value
    return tuple(total)


def _name_of(function: Callable[..., Any]) -> str:
    function = function.func if isinstance(function, partial) else function
    return getattr(function, "__name__", type(function).__name__).strip("_")


def lazy_rows(
    function: Callable[..., Any], A: ChunkedRows, likes: tuple[Any, ...], common: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """Return one Dask array per item of the tuple that a function returns for a chunk; nothing is computed.

    ``likes`` are arrays or CSR matrices with the width, dtype and form of each item.
    """
    import dask.array as da

    tasks = chunk_tasks(function, (A,), common)
    arrays = []
    for i, like in enumerate(likes):
        blocks = [
            da.from_delayed(task[i], shape=(size, *like.shape[1:]), dtype=like.dtype, meta=like[:0])
            for task, size in zip(tasks, A.sizes, strict=True)
        ]
        arrays.append(da.concatenate(blocks))
    return tuple(arrays)


def as_rows(outputs: Any) -> Any:
    """Return a sequence of objects as a 1-D array of objects, and arrays and CSR matrices as they are."""
    if hasattr(outputs, "shape"):
        return outputs
    rows = np.empty(len(outputs), dtype=object)
    rows[:] = outputs
    return rows
