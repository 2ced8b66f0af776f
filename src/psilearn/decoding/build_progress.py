"""The progress of tables that are written row by row into a folder, so that an interrupted build can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from psilearn._utils.folder_files import read_json, write_json

PROGRESS = "progress.json"
SECONDS = 5.0  # between two notes of the progress


class TableShape(NamedTuple):
    """The name of a table, its shape and its dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """The size on disk, without the header."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


class BuildProgress:
    """How many rows of all tables are complete, noted in a file of the folder."""

    def __init__(self, path: Path, identity: Mapping[str, str], tables: Sequence[TableShape]) -> None:
        self.n_done = 0
        self._path = path
        self._tables = tables
        self._work = {**identity, **{table.name: [list(table.shape), table.dtype.str] for table in tables}}
        self._last = monotonic()

    def read(self) -> int:
        """Return the number of complete rows of an interrupted build; 0 if it was another build or none."""
        self.n_done = 0
        with suppress(Exception):  # any damage: the build starts again
            content = read_json(self._path / PROGRESS)
            n_done = content["rows"]
            is_same = content["work"] == self._work and type(n_done) is int
            if is_same and 0 < n_done <= self._tables[0].shape[0] and all(map(self._exists, self._tables)):
                self.n_done = n_done
        return self.n_done

    def write_at_times(self, mapped: Sequence[np.memmap[Any, Any]]) -> None:
        """Note the progress if that was done some seconds ago."""
        if monotonic() - self._last >= SECONDS:
            self._write(mapped)

    @contextmanager
    def keep(self, mapped: Sequence[np.memmap[Any, Any]]) -> Iterator[None]:
        """Note the progress if the block ends by an error or a signal."""
        try:
            yield
        except BaseException:
            with suppress(OSError):  # such as that of a full disk: the first error matters
                self._write(mapped)
            raise

    def remove(self) -> None:
        """Remove the note, when the build is complete."""
        (self._path / PROGRESS).unlink(missing_ok=True)

    def _write(self, mapped: Sequence[np.memmap[Any, Any]]) -> None:
        """Note the rows that are complete, after they are on the disk."""
        for table in mapped:
            table.flush()
        write_json(self._path / PROGRESS, {"work": self._work, "rows": self.n_done})
        self._last = monotonic()

    def _exists(self, table: TableShape) -> bool:
        array = np.lib.format.open_memmap(self._path / table.name, mode="r")
        return bool(array.shape == table.shape and array.dtype == table.dtype)
