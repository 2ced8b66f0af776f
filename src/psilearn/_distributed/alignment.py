"""Collections with the same row chunks, and the lines to type where they have others."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._distributed.chunked_rows import ChunkedRows
from psilearn._utils.samples import check_collection

TO_ARRAY = {"array": "", "unknown sizes": ".compute_chunk_sizes()", "frame": ".to_dask_array(lengths=True)"}


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
