"""Unlabeled outputs that come in batches: from memory, from a file, or from an iterator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import computing_blocks
from psilearn._utils.samples import Samples, concat, is_empty, n_samples, take
from psilearn.kernels.blocks import checked
from psilearn.kernels.kernel import Kernel

BLOCK_ROWS = 8192  # outputs that are taken together at the most


class OutputStream:
    """Outputs of which the input is not known, read batch by batch and checked as they come.

    Parameters
    ----------
    source : what a user gave as ``unlabeled``
        * a collection (array, memory-mapped array, CSR matrix, sequence);
        * a path: ``.npy`` (memory-mapped) or ``.parquet`` (numeric columns, one column of lists, or one column of
          objects; needs pyarrow);
        * any other iterable: of batches, each a collection.
    kernel : Kernel
        checks each batch.
    like : collection
        the labeled outputs, of the same width.
    name, like_name : str
        what to call ``source`` and ``like`` in messages.
    """

    def __init__(
        self, source: Any, kernel: Kernel, like: Samples, name: str = "unlabeled", like_name: str = "y"
    ) -> None:
        self.kernel = kernel
        self.like = like
        self.name = name
        self.like_name = like_name
        self._collection: Samples | None = None
        self._parquet: Path | None = None
        self._head: list[Samples] = []
        on_disk = isinstance(source, np.memmap)
        if isinstance(source, str | PathLike):
            path = Path(source)
            source, on_disk = None, True
            if not path.is_file():
                raise FileNotFoundError(f"{name} = {str(path)!r}: there is no such file.")
            if path.suffix == ".npy":
                try:
                    source = np.load(path, mmap_mode="r", allow_pickle=False)
                except (ValueError, EOFError, OSError) as error:
                    raise ValueError(f"{name} = {str(path)!r} is not a .npy file of numbers: {error}") from error
            elif path.suffix == ".parquet":
                self._parquet = path
            else:
                raise ValueError(f"{name} = {str(path)!r} must be a .npy or a .parquet file, not {path.suffix!r}.")
        if hasattr(source, "shape") or hasattr(source, "__len__"):
            self._collection = self._checked(source, name)
        elif self._parquet is None:
            self._rest = self._iterate(source)
        self.in_memory = None if on_disk else self._collection  # what can join the candidates

    def batches(self, bytes_per_output: int) -> Iterator[Samples]:
        """Yield all outputs in batches that fit where the work is done; an iterator is used up by it."""
        for batch in self._batches():
            for rows in computing_blocks(n_samples(batch), bytes_per_output, BLOCK_ROWS):
                yield take(batch, rows)

    def collect(self) -> Samples | None:
        """Return all outputs as one collection; None where there are none."""
        if self._collection is not None:
            return self._collection
        parts = list(self._batches())
        return concat(parts) if parts else None

    def sample(self, size: int, rng: np.random.RandomState) -> Samples | None:
        """Return a random sample; of an iterator, which can be read once only, the outputs that come first."""
        if self._collection is not None:
            total = n_samples(self._collection)
            some = np.sort(rng.choice(total, size, replace=False)) if total > size else slice(None)
            return take(self._collection, some)
        if self._parquet is not None:
            return self._reservoir(size, rng)
        while sum(map(n_samples, self._head)) < size:
            batch = next(self._rest, None)
            if batch is None:
                break
            self._head.append(batch)
        return take(concat(self._head), slice(0, size)) if self._head else None

    def _reservoir(self, size: int, rng: np.random.RandomState) -> Samples | None:
        """Keep each output of a file with the same probability: those with the ``size`` smallest random numbers."""
        kept: Samples | None = None
        keys = np.empty(0)
        for batch in self._batches():
            new = rng.random_sample(n_samples(batch))
            keys = np.concatenate([keys, new])
            kept = batch if kept is None else concat([kept, batch])
            if len(keys) > size:
                chosen = np.argpartition(keys, size - 1)[:size]
                keys, kept = keys[chosen], take(kept, chosen)
        return kept

    def _batches(self) -> Iterator[Samples]:
        if self._collection is not None:
            yield self._collection
        elif self._parquet is not None:
            yield from self._iterate(read_parquet(self._parquet))
        else:
            head, self._head = self._head, []
            yield from head
            yield from self._rest

    def _iterate(self, source: Any) -> Iterator[Samples]:
        try:
            batches = iter(source)
        except TypeError:
            raise TypeError(
                f"{self.name} must be a collection of outputs, a path or an iterable of batches; got "
                f"{type(source).__name__}."
            ) from None
        found = False
        for i, batch in enumerate(batches):
            if not is_empty(batch):
                found = True
                yield self._checked(batch, f"batch {i} of {self.name}")
        if not found:
            warnings.warn(f"{self.name} gave no outputs. (An iterator can be read once.)", UserWarning, stacklevel=2)

    def _checked(self, batch: Samples, name: str) -> Samples:
        batch = checked(self.kernel, batch, name)
        self.kernel.check_alike(batch, name, self.like, self.like_name)
        if sparse.issparse(batch) and isinstance(self.like, np.ndarray):
            batch = batch.toarray()  # predictions come in the form of y
        return batch


def counted(batches: Iterable[Samples]) -> Iterator[tuple[slice, Samples]]:
    """Yield batches with the places of their outputs in the whole stream."""
    start = 0
    for batch in batches:
        yield slice(start, start + n_samples(batch)), batch
        start += n_samples(batch)


def read_parquet(path: Path) -> Iterator[Samples]:
    """Yield the rows of a Parquet file in batches: 2-D arrays of its columns, or lists of objects."""
    try:
        from pyarrow import ArrowException, parquet, types
    except ImportError as error:
        raise ImportError("Reading a .parquet file needs pyarrow: pip install 'psilearn[parquet]'.") from error
    try:
        batches = parquet.ParquetFile(path).iter_batches(batch_size=BLOCK_ROWS)
        for i, batch in enumerate(batches):
            columns = batch.columns
            if any(column.null_count for column in columns):
                raise ValueError(f"{str(path)!r} misses values in rows from {i * BLOCK_ROWS} on: fill or drop them.")
            if len(columns) > 1:
                yield np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
            elif types.is_list(columns[0].type) or types.is_fixed_size_list(columns[0].type):
                rows = columns[0].to_pylist()
                if len(set(map(len, rows))) > 1:
                    raise ValueError(f"{str(path)!r} has lists of unequal lengths in rows from {i * BLOCK_ROWS} on.")
                yield np.array(rows)
            else:
                yield columns[0].to_pylist()
    except ArrowException as error:
        raise ValueError(f"{str(path)!r} is not a Parquet file that can be read: {error}") from error
