"""Collections in row chunks on Dask: functions of chunks, sums in a fixed order, and rows gathered by number.

A :class:`ChunkedRows` is a collection as the rest of the library knows it: it has a length, and ``take`` gathers rows.
Code that works on blocks calls :func:`map_chunks`, :func:`concat_chunks` or :func:`sum_chunks`, which call its function
once for a collection in memory and once per chunk for a chunked one. Dask is imported only when it is used.
"""

from psilearn._distributed.chunk_tasks import (
    as_rows,
    concat_chunks,
    lazy_rows,
    map_chunks,
    map_items,
    reduce_chunks,
    sum_chunks,
)
from psilearn._distributed.chunked_rows import ChunkedRows, as_chunks, check_aligned, is_dask, line_from_memory
from psilearn._distributed.scheduling import ClusterLostError, runs_on_cluster

__all__ = [
    "ChunkedRows",
    "ClusterLostError",
    "as_chunks",
    "as_rows",
    "check_aligned",
    "concat_chunks",
    "is_dask",
    "lazy_rows",
    "line_from_memory",
    "map_chunks",
    "map_items",
    "reduce_chunks",
    "runs_on_cluster",
    "sum_chunks",
]
