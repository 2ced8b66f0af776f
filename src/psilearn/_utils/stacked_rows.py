"""Rows of several collections as one collection, without copying them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._utils.samples import Index, Samples, concat, n_samples, rows_by_part, take


class StackedRows:
    """Consecutive rows of arrays or CSR matrices of one width, such as mapped files; slices within a part are views."""

    def __init__(self, parts: Sequence[Samples]) -> None:
        self.parts = list(parts)
        self.starts = np.concatenate([[0], np.cumsum([n_samples(part) for part in self.parts])]).astype(np.intp)
        self.shape: tuple[int, ...] = (int(self.starts[-1]), *self.parts[0].shape[1:])
        self.ndim = len(self.shape)
        self.dtype = self.parts[0].dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._slice(start, stop) if step == 1 else self._take(np.arange(start, stop, step))
        if np.ndim(index) == 0:
            row = range(len(self))[index]
            part = int(np.searchsorted(self.starts, row, side="right")) - 1
            return self.parts[part][row - self.starts[part]]
        return self._take(np.arange(len(self))[index])

    def __iter__(self) -> Iterator[Any]:
        for part in self.parts:
            yield from part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = concat(self.parts)
        return np.asarray(whole.toarray() if sparse.issparse(whole) else whole, dtype=dtype)

    def _slice(self, start: int, stop: int) -> Samples:
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        rows: list[Samples] = []
        for part, begin in zip(self.parts[first:], self.starts[first:], strict=False):
            if begin >= stop and rows:
                break
            rows.append(part[max(0, start - begin) : max(0, stop - begin)])
        return concat(rows) if rows else self.parts[0][:0]

    def _take(self, index: Index) -> Samples:
        if not len(index):
            return self.parts[0][:0]
        local, places = rows_by_part(index, self.starts)
        return take(concat([take(self.parts[i], rows) for i, rows in local.items()]), places)
