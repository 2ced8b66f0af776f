"""Outputs that are classes: one of several words per column."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from psilearn.app.tables.output_cells import check_names, sort_key, to_dense
from psilearn.app.tables.table import Table, is_number, row_error
from psilearn.kernels import Dice, Kernel


@dataclass(frozen=True)
class ClassColumns:
    """Columns of classes, one of several words each, which become 0/1 columns side by side."""

    kind: ClassVar[str] = "classes"
    names: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]  # of each column

    @classmethod
    def fit(cls, table: Table, names: Sequence[str]) -> ClassColumns:
        """Collect the classes: numbers first and by value, then texts."""
        for name in names:
            cells = table.get_texts(name)
            if "" in cells:
                raise row_error(table, cells.index(""), f"the class {name!r} is missing; fill it in or delete the row.")
        classes = tuple(tuple(sorted(set(table.get_texts(name)), key=sort_key)) for name in names)
        return cls(tuple(names), classes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the outputs."""
        return self.names

    @property
    def starts(self) -> list[int]:
        """The first 0/1 column of each column, and their number."""
        return [0, *np.cumsum([len(classes) for classes in self.classes]).tolist()]

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return self.starts[-1]

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""
        return tuple(n for n, c in zip(self.names, self.classes, strict=True) if not all(map(is_number, c)))

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""
        other = ClassColumns.fit(table, self.names).classes
        pairs = zip(self.classes, other, strict=True)
        return type(self)(self.names, tuple(tuple(sorted({*a, *b}, key=sort_key)) for a, b in pairs))

    def encode(self, table: Table) -> Any:
        """Return 0/1 rows (n, number of all classes); a class that was not seen in training is a row of zeros."""
        Y = np.zeros((len(table), self.starts[-1]), dtype=np.int8)
        for start, name, classes in zip(self.starts[:-1], self.names, self.classes, strict=True):
            places = {word: start + place for place, word in enumerate(classes)}
            for row, cell in enumerate(table.get_texts(name)):
                if cell in places:
                    Y[row, places[cell]] = 1
        return Y

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of words per column of the outputs."""
        rows, ends = to_dense(Y), self.starts
        blocks = [rows[:, start:end] for start, end in itertools.pairwise(ends)]
        return {
            name: [classes[place] for place in block.argmax(axis=1).tolist()]
            for name, classes, block in zip(self.names, self.classes, blocks, strict=True)
        }

    def default_kernel(self) -> Kernel:
        """Return the kernel that counts equal classes."""
        return Dice()

    def describe(self) -> str:
        """Return a few words about the outputs."""
        sizes = ", ".join(f"{name!r} with {len(c)} classes" for name, c in zip(self.names, self.classes, strict=True))
        return sizes if len(self.names) <= 3 else f"{len(self.names)} columns of classes"

    def check(self) -> None:
        """Raise a ValueError if columns or classes are repeated."""
        check_names(self.names)
        for classes in self.classes:
            check_names(classes)
        if len(self.names) != len(self.classes):
            raise ValueError("each column needs its classes")
