"""A Dask collection as a collection of objects: chunks of whole rows, with rows gathered by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._distributed.chunk_layout import BlockSummary, ChunkLayout, common_layout, summarize_block
from psilearn._utils.samples import Index, Samples, check_collection, concat, rows_by_part, take

Step = Callable[[Any, int], Any]  # what is done with a chunk, given with its number, before it is used
TO_ARRAY = {"array": "", "unknown sizes": ".compute_chunk_sizes()", "frame": ".to_dask_array(lengths=True)"}


def is_dask(A: Any) -> bool:
    """Return whether an object is a Dask collection; Dask is not imported for it."""
    return hasattr(type(A), "__dask_graph__")


@dataclass(frozen=True, eq=False, repr=False)
class ChunkedRows:
    """Objects in chunks that Dask computes when a task needs them.

    ``steps`` are applied to a chunk inside each task that uses it, so that validation needs no pass over the data.
    """

    blocks: tuple[Any, ...]  # delayed collections, none of them empty
    sizes: tuple[int, ...]
    numbers: tuple[int, ...]  # of the chunks in the collection of the user, which may have empty chunks
    layout: ChunkLayout
    kind: str = "array"  # "array", "unknown sizes" (an array), "frame" or "bag"
    steps: tuple[Step, ...] = ()

    @property
    def width(self) -> int | None:
        """The number of columns; None if the objects are not rows."""
        return self.layout.width

    @property
    def dtype(self) -> Any:
        """The dtype of all chunks; None if it is not known."""
        return self.layout.dtype

    @property
    def header(self) -> Any:
        """An empty data frame with the columns, if the chunks are data frames."""
        return self.layout.header

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,) or (n, columns)."""
        n = sum(self.sizes)
        return (n,) if self.width is None else (n, self.width)

    @property
    def ndim(self) -> int:
        """1, or 2 for rows."""
        return len(self.shape)

    def __len__(self) -> int:
        return sum(self.sizes)

    def __repr__(self) -> str:
        return f"ChunkedRows(shape={self.shape}, {len(self.blocks)} chunks)"

    @cached_property
    def starts(self) -> Index:
        """The number of the first row of each chunk."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    def map(self, step: Step) -> ChunkedRows:
        """Return the collection with one more step before a chunk is used."""
        return replace(self, steps=(*self.steps, step))

    def without_blocks(self) -> ChunkedRows:
        """Return the layout and the steps alone, for the tasks."""
        return replace(self, blocks=(), sizes=(), numbers=())

    def prepare(self, block: Any, number: int, size: int) -> Samples:
        """Return a chunk, given with its number and declared size, after all steps; called inside of tasks."""
        block = self.layout.conform(block, number, size)
        for step in self.steps:
            block = step(block, number)
        return block

    def __getitem__(self, index: Index | slice) -> Samples:
        """Gather rows in memory: each chunk returns its own, and no other row leaves its worker."""
        from psilearn._distributed.chunk_tasks import map_chunks

        rows = np.arange(*index.indices(len(self))) if isinstance(index, slice) else np.asarray(index, dtype=np.intp)
        local, places = rows_by_part(rows, self.starts)
        gathered = concat(map_chunks(take, self, selection=local))
        return gathered if np.array_equal(places, np.arange(len(places))) else take(gathered, places)


def as_chunks(A: Any, name: str) -> ChunkedRows:
    """Return the row chunks of a Dask array, data frame or bag; unknown sizes of chunks are computed.

    Parameters
    ----------
    A : dask.array.Array, dask.dataframe.DataFrame, dask.bag.Bag or ChunkedRows
        The collection.
    name : str
        What errors call it.

    Returns
    -------
    ChunkedRows
        The same objects, without empty chunks.
    """
    if isinstance(A, ChunkedRows):
        return A
    if not hasattr(type(A), "to_delayed"):
        raise TypeError(
            f"{name} must be a dask.array, a dask.dataframe or a dask.bag; got {type(A).__module__}.{type(A).__name__}."
        )
    if hasattr(A, "chunks"):
        return _chunks_of_array(A, name)
    if not hasattr(A, "columns"):
        return _drop_empty(A.to_delayed(), None, None, name, "bag")
    if A.ndim == 1:
        return _drop_empty(A.to_delayed(), None, ChunkLayout(name, None, A.dtype, "dense"), name, "frame")
    layout = ChunkLayout(name, len(A.columns), None, "frame", A._meta)
    return _drop_empty(A.to_delayed(), None, layout, name, "frame")


def _chunks_of_array(A: Any, name: str) -> ChunkedRows:
    if A.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, one row per object; got shape {A.shape}.")
    if A.ndim == 2 and A.numblocks[1] != 1:
        raise ValueError(
            f"{name} has {A.numblocks[1]} chunks of columns; each chunk must hold whole rows. Type: {name} = "
            f"{name}.rechunk({{1: -1}})"
        )
    sizes = None if any(isnan(size) for size in A.chunks[0]) else [int(size) for size in A.chunks[0]]
    form = "csr" if sparse.issparse(A._meta) else "dense"
    layout = ChunkLayout(name, int(A.shape[1]) if A.ndim == 2 else None, A.dtype, form)
    return _drop_empty(A.to_delayed().ravel(), sizes, layout, name, "unknown sizes" if sizes is None else "array")


def _drop_empty(blocks: Any, sizes: list[int] | None, layout: ChunkLayout | None, name: str, kind: str) -> ChunkedRows:
    """Return the chunks that have rows; raise if there is none. Sizes and a layout that are None are computed."""
    summaries = _summarize(blocks) if sizes is None else [BlockSummary(size, "objects") for size in sizes]
    kept = [number for number, summary in enumerate(summaries) if summary.n]
    if not kept:
        raise ValueError(f"{name} is empty: at least one object is needed.")
    if layout is None:
        layout = common_layout([summaries[number] for number in kept], name)
    return ChunkedRows(
        tuple(blocks[number] for number in kept),
        tuple(summaries[number].n for number in kept),
        tuple(kept),
        layout,
        kind,
    )


def _summarize(blocks: Any) -> list[BlockSummary]:
    from dask.delayed import delayed

    from psilearn._distributed.scheduling import run_tasks

    return run_tasks([delayed(summarize_block)(block) for block in blocks])


def check_aligned(A: ChunkedRows, name: str, B: ChunkedRows, other: str) -> None:
    """Raise unless two collections have the same row chunks; the error states the line that aligns them."""
    if A.sizes == B.sizes:
        return
    _check_lengths(len(A), name, len(B), other)
    raise ValueError(
        f"{name} and {other} must have the same row chunks: {name} has {_describe(A.sizes)}, {other} has "
        f"{_describe(B.sizes)}. {_aligning_line(A, name, B, other)}"
    )


def line_from_memory(A: ChunkedRows, name: str, B: Any, other: str) -> str:
    """Return the line that makes a collection in memory a Dask array with the row chunks of another collection."""
    _check_lengths(len(A), name, check_collection(B, other), other)
    values = f"{other}.to_numpy()" if hasattr(B, "iloc") else other
    try:
        n_dimensions = B.ndim if hasattr(B, "ndim") else np.ndim(B)
    except ValueError:  # items of unequal lengths
        n_dimensions, values = 1, f"numpy.array({other}, dtype=object)"
    chunks = f"({_sizes(A, name)}, -1)" if n_dimensions == 2 else f"({_sizes(A, name)},)"
    return f"{other} = dask.array.from_array({values}, chunks={chunks})"


def _check_lengths(n: int, name: str, n_other: int, other: str) -> None:
    if n != n_other:
        raise ValueError(f"{name} and {other} must have one row per example: {name} has {n}, {other} {n_other}.")


def _aligning_line(A: ChunkedRows, name: str, B: ChunkedRows, other: str) -> str:
    """Return the advice to rechunk B; a bag cannot be rechunked, so that A is."""
    if A.kind == B.kind == "bag":
        return "Make both bags with the same partitions, such as dask.bag.from_sequence(items, partition_size=1000)."
    if B.kind == "bag":
        A, name, B, other = B, other, A, name
    return f"Type: {other} = {other}{TO_ARRAY[B.kind]}.rechunk({{0: {_sizes(A, name)}}})"


def _sizes(A: ChunkedRows, name: str) -> str:
    """Return an expression of the sizes of the chunks: those of an array, or the computed numbers."""
    has_empty = len(A.numbers) != max(A.numbers) + 1
    return f"{name}.chunks[0]" if A.kind == "array" and not has_empty else repr(A.sizes)


def _describe(sizes: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, sizes[:4]))
    return f"{len(sizes)} chunks of {shown}{', …' if len(sizes) > 4 else ''} rows"
