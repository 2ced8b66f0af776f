"""Outputs that are label sets: 0/1 columns, or one column of tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from psilearn.app.tables.output_cells import check_names, get_output_numbers, sort_key, to_dense
from psilearn.app.tables.table import Table, row_error
from psilearn.kernels import Dice, Kernel

TRUTH_WORDS = (("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))


@dataclass(frozen=True)
class LabelColumns:
    """One column per label, 0 or 1, or two words such as no and yes."""

    kind: ClassVar[str] = "labels"
    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]  # of each column: the word for 0 and that for 1

    @classmethod
    def fit(cls, table: Table, names: Sequence[str]) -> LabelColumns:
        """Find the two words of each column."""
        return cls(tuple(names), tuple(_truth_words(table, name) for name in names))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the outputs."""
        return self.names

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.names)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""
        return ()

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""
        return self

    def encode(self, table: Table) -> Any:
        """Return the labels (n, L) as int8, CSR if the numbers of the table are."""
        is_numbers = not any(name in table.texts for name in self.names)
        if is_numbers and all(words == ("0", "1") for words in self.words):
            matrix = get_output_numbers(table, self.names)
            values = matrix.data if sparse.issparse(matrix) else matrix
            if not ((values == 0) | (values == 1)).all():
                self._raise_for_value(table)
            return matrix.astype(np.int8)
        columns = [self._encode_words(table, *pair) for pair in zip(self.names, self.words, strict=True)]
        return np.array(columns, dtype=np.int8).T

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of words per label."""
        rows = to_dense(Y).astype(np.intp)
        return {
            name: [words[value] for value in rows[:, j].tolist()]
            for j, (name, words) in enumerate(zip(self.names, self.words, strict=True))
        }

    def default_kernel(self) -> Kernel:
        """Return the kernel of the F1 score."""
        return Dice()

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"{len(self.names)} labels in columns"

    def check(self) -> None:
        """Raise a ValueError if a label does not have two words."""
        check_names(self.names)
        if len(self.names) != len(self.words) or not all(len(set(words)) == len(words) == 2 for words in self.words):
            raise ValueError("each label needs a word for 0 and a word for 1")

    def _encode_words(self, table: Table, name: str, words: tuple[str, ...]) -> list[int]:
        places = {word.lower(): place for place, word in enumerate(words)}
        cells = [cell.lower() for cell in table.get_texts(name)]
        wrong = next((row for row, cell in enumerate(cells) if cell not in places), None)
        if wrong is not None:
            message = f"the label {name!r} is {table.get_texts(name)[wrong][:60]!r}; labels are {' or '.join(words)}."
            raise row_error(table, wrong, message)
        return [places[cell] for cell in cells]

    def _raise_for_value(self, table: Table) -> None:
        for name, words in zip(self.names, self.words, strict=True):
            self._encode_words(table, name, words)


@dataclass(frozen=True)
class TagColumn:
    """One column of tags, separated by a text; an empty cell has no tags."""

    kind: ClassVar[str] = "tags"
    name: str
    separator: str
    tags: tuple[str, ...]

    @classmethod
    def fit(cls, table: Table, name: str, separator: str) -> TagColumn:
        """Collect the tags: numbers first and by value, then texts."""
        form = cls(name, separator, ())
        known = {tag for cell in table.get_texts(name) for tag in form.split(cell)}
        if not known:
            raise ValueError(f"{table.path}: the column {name!r} has no tags.")
        return cls(name, separator, tuple(sorted(known, key=sort_key)))

    def split(self, cell: str) -> list[str]:
        """Return the tags of a cell."""
        return [tag for part in cell.split(self.separator) if (tag := part.strip())]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the outputs."""
        return (self.name,)

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.tags)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""
        return (self.name,)

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""
        other = TagColumn.fit(table, self.name, self.separator)
        return type(self)(self.name, self.separator, tuple(sorted({*self.tags, *other.tags}, key=sort_key)))

    def encode(self, table: Table) -> Any:
        """Return the label sets as a CSR matrix of int8; tags that were not seen in training are further columns."""
        places = {tag: column for column, tag in enumerate(self.tags)}
        rows = [
            [places.setdefault(tag, len(places)) for tag in self.split(cell)] for cell in table.get_texts(self.name)
        ]
        indices = [column for row in rows for column in sorted(set(row))]
        indptr = np.cumsum([0, *(len(set(row)) for row in rows)])
        return sparse.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), (len(rows), len(places)))

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of joined tags."""
        rows = sparse.csr_matrix(Y)
        rows.sort_indices()
        starts = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return {self.name: [self.separator.join(self.tags[j] for j in rows.indices[a:b]) for a, b in starts]}

    def default_kernel(self) -> Kernel:
        """Return the kernel of the F1 score."""
        return Dice()

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"{len(self.tags)} tags in the column {self.name!r}"

    def check(self) -> None:
        """Raise a ValueError if tags are repeated or the separator is empty."""
        check_names(self.tags)
        if not self.separator:
            raise ValueError("the separator of tags is empty")


def is_truth_column(table: Table, name: str) -> bool:
    """Return whether the cells of a column are 0 and 1, or two words such as no and yes."""
    if name in table.texts:
        words = {cell.lower() for cell in set(table.texts[name])}
        return any(words <= set(pair) for pair in TRUTH_WORDS[1:])
    values = table.numbers[:, [table.number_names.index(name)]]
    values = values.data if sparse.issparse(values) else values
    return bool(((values == 0) | (values == 1)).all())


def _truth_words(table: Table, name: str) -> tuple[str, ...]:
    """Return the words for 0 and 1 as the column spells them."""
    if name not in table.texts:
        return TRUTH_WORDS[0]
    spelled = {cell.lower(): cell for cell in table.texts[name]}
    cells = [cell.lower() for cell in table.texts[name]]
    pair = max(TRUTH_WORDS, key=lambda pair: sum(cell in pair for cell in cells))
    is_title = any(word.istitle() for word in spelled.values())
    return tuple(spelled.get(word, word.title() if is_title else word) for word in pair)
