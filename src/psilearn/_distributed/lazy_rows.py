"""Dask arrays whose chunks are functions of the chunks of another collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psilearn._distributed.chunk_tasks import chunk_tasks
from psilearn._distributed.chunked_rows import ChunkedRows


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
