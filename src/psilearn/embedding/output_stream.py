"""Unlabeled outputs that come in batches: from memory, from a file, or from an iterator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import NUMPY, Compute, explain_missing
from psilearn._distributed import ChunkedRows, as_chunks, is_dask
from psilearn._utils.reading import convert_read_errors
from psilearn._utils.samples import Samples, concat, is_empty, n_samples, take
from psilearn.kernels import Kernel

MAX_BATCH_ROWS = 8192  # outputs that are read or processed at a time


class OutputStream:
    """Outputs without inputs, read and validated batch by batch.

    Parameters
    ----------
    source : collection, path or iterable
        The argument ``unlabeled`` of ``fit``: a collection (array, memory-mapped array, CSR matrix, sequence); a Dask
        array, data frame or bag, whose chunks stay where Dask computes them; a path
        to a ``.npy`` file (memory-mapped) or a ``.parquet`` file (numeric columns, one column of lists, or one column
        of objects; needs pyarrow); or any other iterable, of batches that are collections.
    kernel : Kernel
        The output kernel, which validates each batch.
    like : array, CSR matrix or sequence of outputs
        The labeled outputs, of the same kind.
    name : str, default="unlabeled"
        What errors call ``source``.
    like_name : str, default="y"
        What errors call ``like``.

    Attributes
    ----------
    in_memory : collection or None
        The outputs, if they are in memory and can become candidates.

    See Also
    --------
    psilearn.OEL.fit : Takes unlabeled outputs in all of these forms.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.embedding import OutputStream
    >>> from psilearn.kernels import Linear
    >>> batches = iter([np.ones((2, 3)), np.zeros((1, 3))])
    >>> OutputStream(batches, Linear(), np.ones((1, 3))).collect().shape
    (3, 3)
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
        self._first_batches: list[Samples] = []
        is_on_disk = isinstance(source, np.memmap | str | PathLike)
        if is_dask(source):
            source = as_chunks(source, name)
        if isinstance(source, str | PathLike):
            source = self._open(Path(source))
        if hasattr(source, "shape") or hasattr(source, "__len__"):
            self._collection = self._checked(source, name)
        elif self._parquet is None:
            self._rest = self._iterate(source)
        self.chunks = self._collection if isinstance(self._collection, ChunkedRows) else None
        self.in_memory = None if is_on_disk or self.chunks is not None else self._collection

    def _open(self, path: Path) -> Any:
        """Return a memory-mapped .npy file, or None after noting a .parquet file."""
        if not path.is_file():
            raise FileNotFoundError(f"{self.name} = {str(path)!r}: there is no such file.")
        if path.suffix == ".parquet":
            self._parquet = path
            return None
        if path.suffix != ".npy":
            raise ValueError(f"{self.name} = {str(path)!r} must be a .npy or a .parquet file, not {path.suffix!r}.")
        try:
            with convert_read_errors(path, "a .npy file of numbers"):
                return np.lib.format.open_memmap(path, mode="r")
        except (ValueError, OSError) as error:
            raise ValueError(f"{self.name}: {error}") from error

    def batches(self, bytes_per_output: int, compute: Compute = NUMPY) -> Iterator[Samples]:
        """Yield all outputs in batches that fit into memory; an iterator is consumed.

        Parameters
        ----------
        bytes_per_output : int
            The memory that the work on a batch needs per output.
        compute : Compute, default=NUMPY
            The device, whose memory is meant.

        Yields
        ------
        array, CSR matrix or sequence
            A batch of outputs.

        See Also
        --------
        OutputStream.collect : All outputs as one collection.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import OutputStream
        >>> from psilearn.kernels import Linear
        >>> [len(batch) for batch in OutputStream(np.ones((9000, 1)), Linear(), np.ones((1, 1))).batches(8)]
        [8192, 808]
        """
        for batch in self._batches():
            for rows in compute.iter_blocks(n_samples(batch), bytes_per_output, MAX_BATCH_ROWS):
                yield take(batch, rows)

    def collect(self) -> Samples | None:
        """Return all outputs as one collection.

        Returns
        -------
        array, CSR matrix, sequence or None
            The outputs, or None if there are none.

        See Also
        --------
        OutputStream.batches : The outputs batch by batch.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import OutputStream
        >>> from psilearn.kernels import Linear
        >>> OutputStream(np.ones((2, 1)), Linear(), np.ones((1, 1))).collect().shape
        (2, 1)
        """
        if self._collection is not None:
            return self._collection
        parts = list(self._batches())
        return concat(parts) if parts else None

    def sample(self, size: int, rng: np.random.RandomState) -> Samples | None:
        """Return a random sample; from an iterator, which can be read only once, the first outputs.

        Parameters
        ----------
        size : int
            The size of the sample.
        rng : RandomState
            The random number generator.

        Returns
        -------
        array, CSR matrix, sequence or None
            At most ``size`` outputs, or None if there are none.

        See Also
        --------
        psilearn.Landmarks : Landmarks are chosen from such a sample.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import OutputStream
        >>> from psilearn.kernels import Linear
        >>> stream = OutputStream(np.ones((9, 1)), Linear(), np.ones((1, 1)))
        >>> stream.sample(3, np.random.RandomState(0)).shape
        (3, 1)
        """
        if self._collection is not None:
            total = n_samples(self._collection)
            chosen = np.sort(rng.choice(total, size, replace=False)) if total > size else slice(None)
            return take(self._collection, chosen)
        if self._parquet is not None:
            return self._reservoir_sample(size, rng)
        while sum(map(n_samples, self._first_batches)) < size:
            batch = next(self._rest, None)
            if batch is None:
                break
            self._first_batches.append(batch)
        return take(concat(self._first_batches), slice(0, size)) if self._first_batches else None

    def _reservoir_sample(self, size: int, rng: np.random.RandomState) -> Samples | None:
        """Keep each output of a file with the same probability: those with the ``size`` smallest random numbers."""
        kept: Samples | None = None
        keys = np.empty(0)
        for batch in self._batches():
            keys = np.concatenate([keys, rng.random_sample(n_samples(batch))])
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
            first, self._first_batches = self._first_batches, []
            yield from first
            yield from self._rest

    def _iterate(self, source: Any) -> Iterator[Samples]:
        try:
            batches = iter(source)
        except TypeError:
            raise TypeError(
                f"{self.name} must be a collection of outputs, a path or an iterable of batches; got "
                f"{type(source).__name__}."
            ) from None
        is_empty_stream = True
        for i, batch in enumerate(batches):
            if not is_empty(batch):
                is_empty_stream = False
                yield self._checked(batch, f"batch {i} of {self.name}")
        if is_empty_stream:
            message = f"{self.name} contains no outputs. (An iterator can be read only once.)"
            warnings.warn(message, UserWarning, stacklevel=2)

    def _checked(self, batch: Samples, name: str) -> Samples:
        if not isinstance(batch, ChunkedRows):
            return _check_batch(batch, self.kernel, self.like, name, self.like_name)
        like = take(self.like, slice(0, 1))
        check = partial(_check_chunk, kernel=self.kernel, like=like, name=name, like_name=self.like_name)
        return batch.map(check)


def _check_batch(batch: Samples, kernel: Kernel, like: Samples, name: str, like_name: str) -> Samples:
    """Return outputs that were validated by the kernel, and are of the same kind as others."""
    batch = kernel.check(batch, name)
    kernel.check_same_kind(batch, name, like, like_name)
    if sparse.issparse(batch) and isinstance(like, np.ndarray):
        batch = batch.toarray()  # predictions have the form of y
    return batch


def _check_chunk(chunk: Samples, number: int, kernel: Kernel, like: Samples, name: str, like_name: str) -> Samples:
    return _check_batch(chunk, kernel, like, f"chunk {number} of {name}", like_name)


def number_batches(batches: Iterable[Samples]) -> Iterator[tuple[slice, Samples]]:
    """Yield batches with the positions of their outputs in the whole stream."""
    start = 0
    for batch in batches:
        yield slice(start, start + n_samples(batch)), batch
        start += n_samples(batch)


def read_parquet(path: Path) -> Iterator[Samples]:
    """Yield the rows of a Parquet file in batches: 2-D arrays of its columns, or lists of objects."""
    with explain_missing("Reading a .parquet file needs pyarrow: pip install 'psilearn[app]'."):
        from pyarrow import parquet, types
    with convert_read_errors(path, "a Parquet file"):
        for i, batch in enumerate(parquet.ParquetFile(path).iter_batches(batch_size=MAX_BATCH_ROWS)):
            batch.validate(full=True)  # offsets out of range would read other memory
            columns, first_row = batch.columns, i * MAX_BATCH_ROWS
            if any(column.null_count for column in columns):
                raise ValueError(f"{str(path)!r} has missing values in rows from {first_row} on: fill or drop them.")
            if len(columns) > 1:
                yield np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
            elif types.is_list(columns[0].type) or types.is_fixed_size_list(columns[0].type):
                rows = columns[0].to_pylist()
                if len(set(map(len, rows))) > 1:
                    raise ValueError(f"{str(path)!r} has lists of unequal lengths in rows from {first_row} on.")
                yield np.array(rows)
            else:
                yield columns[0].to_pylist()
