"""What all chunks of a collection have in common: each chunk is compared with it in the task that uses the chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._utils.samples import Samples, n_columns, n_samples


class BlockSummary(NamedTuple):
    """The size and the form of one chunk."""

    n: int
    form: str  # "dense", "csr", "list", or "objects" if its items are not numbers or rows of numbers
    width: int | None = None
    dtype: Any = None


@dataclass(frozen=True, eq=False)
class ChunkLayout:
    """The width, dtype and form that a collection declares for its chunks.

    Dask does not compare chunks with what is declared. A chunk with other rows would pair inputs with wrong outputs,
    and equal rows of different dtypes would count as different.
    """

    name: str  # what errors call the collection
    width: int | None = None  # None if the objects are not rows
    dtype: Any = None  # None if there is none in common
    form: str = "objects"  # "dense", "csr", "frame", "list" or "objects"
    header: Any = None  # an empty data frame with the columns, if the chunks are data frames

    def conform(self, block: Any, number: int, size: int) -> Samples:
        """Return a chunk in the declared dtype and form; raise if it has other rows or columns."""
        name = f"chunk {number} of {self.name}"
        if n_samples(block) != size:
            advice = f"After dropping rows, type: {self.name} = {self.name}.compute_chunk_sizes()"
            if self.form not in ("dense", "csr"):
                advice = "It must have the same rows each time it is computed."
            raise ValueError(f"{name} has {n_samples(block)} rows, but {size} are declared. {advice}")
        if self.form == "frame":
            return self._conform_frame(block, name)
        return block if self.form == "objects" or self.dtype is None else self._conform_rows(block, name)

    def _conform_rows(self, block: Any, name: str) -> Any:
        """Return rows or numbers in the declared dtype and form."""
        if self.form == "list":
            return _to_array(block, self.dtype, name).tolist()
        if sparse.issparse(block) and self.form == "dense":
            raise ValueError(
                f"{name} is a sparse matrix, but dense chunks are declared. Type: {self.name} = "
                f"{self.name}.map_blocks(scipy.sparse.csr_matrix, meta=scipy.sparse.csr_matrix((0, {self.width})))"
            )
        rows = _cast(block if hasattr(block, "dtype") else np.asarray(block), self.dtype, name, self.name)
        self._check_width(rows, name)
        if self.form != "csr":
            return rows
        return rows.tocsr() if sparse.issparse(rows) else sparse.csr_matrix(rows)

    def _check_width(self, rows: Any, name: str) -> None:
        if rows.ndim != (1 if self.width is None else 2) or n_columns(rows) != self.width:
            declared = "numbers in one dimension" if self.width is None else f"{self.width} columns"
            raise ValueError(f"{name} has shape {tuple(rows.shape)}, but {declared} are declared.")

    def _conform_frame(self, block: Any, name: str) -> Any:
        """Return a data frame with the declared columns and their dtypes."""
        if list(block.columns) != list(self.header.columns):
            raise ValueError(f"{name} has columns {list(block.columns)}, declared are {list(self.header.columns)}.")
        casts = {
            column: declared
            for column, declared, found in zip(block.columns, self.header.dtypes, block.dtypes, strict=True)
            if _is_number(declared) and declared != found
        }
        for column, declared in casts.items():
            _check_cast(block[column].dtype, declared, f"column {column!r} of {name}", self.name)
        return block.astype(casts) if casts else block


def summarize_block(block: Any) -> BlockSummary:
    """Return the size and the form of a chunk whose collection declares none."""
    n = n_samples(block)
    if sparse.issparse(block) or isinstance(block, np.ndarray):
        is_plain = block.dtype.kind in "bifu" and block.ndim in (1, 2)
        form = ("csr" if sparse.issparse(block) else "dense") if is_plain else "objects"
        return BlockSummary(n, form, n_columns(block), block.dtype)
    if n == 0 or not isinstance(block, list) or not isinstance(block[0], int | float | list | tuple | np.ndarray):
        return BlockSummary(n, "objects")
    try:
        rows = np.asarray(block)
    except (ValueError, OverflowError):  # rows of unequal lengths
        return BlockSummary(n, "objects")
    is_plain = rows.dtype.kind in "bifu" and rows.ndim in (1, 2)
    return BlockSummary(n, "list", n_columns(rows), rows.dtype) if is_plain else BlockSummary(n, "objects")


def common_layout(blocks: Sequence[BlockSummary], name: str) -> ChunkLayout:
    """Return the layout to which the chunks of a bag are cast: none if they have one already or are objects."""
    forms = {block.form for block in blocks}
    widths = {block.width for block in blocks}
    if "objects" in forms or (forms == {"list"} and len(widths) > 1):
        return ChunkLayout(name)
    if len(widths) > 1:
        raise ValueError(f"The chunks of {name} have different widths: {sorted(map(str, widths))} columns.")
    if forms == {"list"} and len({block.dtype for block in blocks}) == 1:
        return ChunkLayout(name)
    form = next(form for form in ("csr", "dense", "list") if form in forms)
    return ChunkLayout(name, widths.pop(), np.result_type(*(block.dtype for block in blocks)), form)


def _to_array(block: Any, dtype: Any, name: str) -> Any:
    try:
        return np.asarray(block, dtype=dtype)
    except ValueError as error:
        raise ValueError(f"{name} cannot be converted to {dtype}: {error}") from error


def _is_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "bifu"


def _cast(rows: Any, dtype: Any, name: str, collection: str) -> Any:
    if rows.dtype == dtype or not (isinstance(rows.dtype, np.dtype) and isinstance(dtype, np.dtype)):
        return rows
    _check_cast(rows.dtype, dtype, name, collection)
    return rows.astype(dtype)


def _check_cast(found: Any, declared: Any, name: str, collection: str) -> None:
    """Raise if values of a dtype do not fit into the declared one."""
    casting: Literal["same_kind", "safe"] = (
        "same_kind" if _is_number(declared) else "safe"
    )  # a shorter string would be cut off
    if not isinstance(found, np.dtype) or not np.can_cast(found, declared, casting):
        raise ValueError(
            f"{name} has dtype {found}, but {declared} is declared. Declare what the function of the chunks returns, "
            f"such as {collection}.map_blocks(function, dtype={str(found)!r})."
        )
