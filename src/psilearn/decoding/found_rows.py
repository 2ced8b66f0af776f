"""Outputs that solvers find, numbered, so that scores of a search can refer to them by index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.samples import Index, distinct


class FoundRows:
    """The distinct rows that a solver has found so far, in the order in which they first appeared.

    A decoder without a list of candidates numbers its predictions with it. Memory: the distinct rows.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._rows: list[NDArray[Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, rows: NDArray[Any]) -> Index:
        """Return the number of each row (q, K), (q,); rows that are new get the next numbers."""
        first, inverse = distinct(rows)
        numbers = np.empty(len(first), dtype=np.intp)
        for i, row in enumerate(rows[first]):
            numbers[i] = self._numbers.setdefault(row.tobytes(), len(self._rows))
            if numbers[i] == len(self._rows):
                self._rows.append(row)
        return numbers[inverse]

    def take(self, numbers: Index) -> NDArray[Any]:
        """Return rows by their numbers, of shape (q, K)."""
        return np.stack([self._rows[i] for i in numbers])
