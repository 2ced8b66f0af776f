"""Outputs from the columns of a table, and predictions as columns in the same form."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy import sparse

from psilearn.app.tables.input_columns import Description, Names, apply_scale, encode_one_hot, find_scale, to_dense
from psilearn.app.tables.table import Table, format_number, is_number, row_error
from psilearn.kernels import Dice, Gaussian, Kemeny, Kernel
from psilearn.rankings import from_orders, to_orders
from psilearn.utils import check_ranks

TRUTH_WORDS = (("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))


class Form(Description):
    """The form of the outputs: which columns they are, and how they become the outputs of an estimator.

    Each form encodes the outputs of a table as an estimator takes them, which may have values not seen in training,
    decodes predictions as columns of cells, and describes itself in a few words.
    """

    default_kernel: ClassVar[type[Kernel]] = Dice  # of the usual metric: F1, or the number of equal classes
    is_text: ClassVar[bool] = False  # whether its columns are texts even if all cells are numbers
    kind: str
    names: Names

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.names)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""
        return self.names if self.is_text else ()

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""
        return self


class LabelColumns(Form):
    """One column per label, 0 or 1, or two words such as no and yes."""

    kind: Literal["labels"] = "labels"
    words: tuple[tuple[str, ...], ...]  # of each column: the word for 0 and that for 1

    @classmethod
    def fit(cls, table: Table, names: Sequence[str]) -> LabelColumns:
        """Find the two words of each column."""
        return cls(names=tuple(names), words=tuple(_truth_words(table, name) for name in names))

    def encode(self, table: Table) -> Any:
        """Return the labels (n, L) as int8, CSR if the numbers of the table are."""
        is_numbers = not any(name in table.texts for name in self.names)
        if is_numbers and all(words == TRUTH_WORDS[0] for words in self.words):
            matrix = get_output_numbers(table, self.names)
            values = matrix.data if sparse.issparse(matrix) else matrix
            if ((values == 0) | (values == 1)).all():
                return matrix.astype(np.int8)
        columns = [self._encode_words(table, *pair) for pair in zip(self.names, self.words, strict=True)]
        return np.array(columns, dtype=np.int8).T

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of words per label."""
        columns = to_dense(Y).astype(np.intp).T.tolist()
        named = zip(self.names, self.words, columns, strict=True)
        return {name: [words[value] for value in column] for name, words, column in named}

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"{len(self.names)} labels in columns"

    @model_validator(mode="after")
    def check_words(self) -> Self:
        """Raise a ValueError if a label does not have two words."""
        if len(self.names) != len(self.words) or not all(len(set(words)) == len(words) == 2 for words in self.words):
            raise ValueError("each label needs a word for 0 and a word for 1")
        return self

    def _encode_words(self, table: Table, name: str, words: tuple[str, ...]) -> list[int]:
        places = {word.lower(): place for place, word in enumerate(words)}
        cells = [cell.lower() for cell in table.get_texts(name)]
        wrong = next((row for row, cell in enumerate(cells) if cell not in places), None)
        if wrong is not None:
            message = f"the label {name!r} is {table.get_texts(name)[wrong][:60]!r}; labels are {' or '.join(words)}."
            raise row_error(table, wrong, message)
        return [places[cell] for cell in cells]


class TagColumn(Form):
    """One column of tags, separated by a text; an empty cell has no tags."""

    is_text: ClassVar[bool] = True
    kind: Literal["tags"] = "tags"
    separator: Annotated[str, Field(min_length=1)]
    tags: Names

    @classmethod
    def fit(cls, table: Table, name: str, separator: str) -> TagColumn:
        """Collect the tags: numbers first and by value, then texts."""
        known = {tag for cell in table.get_texts(name) for tag in _split_tags(cell, separator)}
        if not known:
            raise ValueError(f"{table.path}: the column {name!r} has no tags.")
        return cls(names=(name,), separator=separator, tags=tuple(sorted(known, key=_sort_key)))

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.tags)

    def extend(self, table: Table) -> Self:
        """Return the form with tags that only another table has."""
        other = TagColumn.fit(table, self.names[0], self.separator)
        return self.model_copy(update={"tags": tuple(sorted({*self.tags, *other.tags}, key=_sort_key))})

    def encode(self, table: Table) -> Any:
        """Return the label sets as a CSR matrix of int8; tags that were not seen in training are further columns."""
        places = {tag: column for column, tag in enumerate(self.tags)}
        cells = [set(_split_tags(cell, self.separator)) for cell in table.get_texts(self.names[0])]
        rows = [sorted(places.setdefault(tag, len(places)) for tag in sorted(tags, key=_sort_key)) for tags in cells]
        indices = list(itertools.chain.from_iterable(rows))
        indptr = np.cumsum([0, *map(len, rows)])
        return sparse.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), (len(rows), len(places)))

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of joined tags."""
        rows = sparse.csr_matrix(Y)
        rows.sort_indices()
        sets = (rows.indices[a:b] for a, b in itertools.pairwise(rows.indptr))
        return {self.names[0]: [self.separator.join(self.tags[j] for j in found) for found in sets]}

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"{len(self.tags)} tags in the column {self.names[0]!r}"


class OrderColumn(Form):
    """One column of orders such as ``b>c>a``, the preferred item first."""

    default_kernel: ClassVar[type[Kernel]] = Kemeny  # of Kendall's τ
    is_text: ClassVar[bool] = True
    kind: Literal["orders"] = "orders"
    items: Names

    @classmethod
    def fit(cls, table: Table, name: str) -> OrderColumn:
        """Collect the items, which are those of the first row."""
        return cls(names=(name,), items=tuple(_ranks_of_orders(table, name, None)[1]))

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.items)

    def encode(self, table: Table) -> Any:
        """Return the ranks (n, K)."""
        return _ranks_of_orders(table, self.names[0], self.items)[0]

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of orders."""
        return {self.names[0]: to_orders(Y, self.items).tolist()}

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"rankings of {len(self.items)} items in the column {self.names[0]!r}"


class RankColumns(Form):
    """One column of ranks per item, 1 for the preferred item."""

    default_kernel: ClassVar[type[Kernel]] = Kemeny  # of Kendall's τ
    kind: Literal["ranks"] = "ranks"

    def encode(self, table: Table) -> Any:
        """Return the ranks (n, K)."""
        ranks = to_dense(get_output_numbers(table, self.names))
        for row in np.flatnonzero((np.sort(ranks, axis=1) != np.arange(1, ranks.shape[1] + 1)).any(axis=1))[:1]:
            try:
                check_ranks(ranks[row : row + 1], "the ranking", False)
            except ValueError as error:
                raise row_error(table, int(row), str(error).replace(" in row 0", "")) from error
        return ranks.astype(np.int64)

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of ranks per item."""
        columns = np.asarray(Y).astype(np.int64).T.tolist()
        return {name: list(map(str, column)) for name, column in zip(self.names, columns, strict=True)}

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"ranks of {len(self.names)} items"


class ClassColumns(Form):
    """Columns of classes, one of several words each, which become 0/1 columns side by side."""

    same_length: ClassVar[tuple[str, ...]] = ("names", "classes")
    kind: Literal["classes"] = "classes"
    classes: tuple[Names, ...]  # of each column

    @classmethod
    def fit(cls, table: Table, names: Sequence[str]) -> ClassColumns:
        """Collect the classes: numbers first and by value, then texts."""
        for name in names:
            cells = table.get_texts(name)
            if "" in cells:
                raise row_error(table, cells.index(""), f"the class {name!r} is missing; fill it in or delete the row.")
        classes = tuple(tuple(sorted(set(table.get_texts(name)), key=_sort_key)) for name in names)
        return cls(names=tuple(names), classes=classes)

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
        """Return the form with classes that only another table has."""
        pairs = zip(self.classes, ClassColumns.fit(table, self.names).classes, strict=True)
        return self.model_copy(update={"classes": tuple(tuple(sorted({*a, *b}, key=_sort_key)) for a, b in pairs)})

    def encode(self, table: Table) -> Any:
        """Return 0/1 rows (n, number of all classes); a class that was not seen in training is a row of zeros."""
        return encode_one_hot(table, self.names, self.classes).toarray().astype(np.int8)

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of words per column of the outputs."""
        rows = to_dense(Y)
        blocks = [rows[:, start:end] for start, end in itertools.pairwise(self.starts)]
        named = zip(self.names, self.classes, blocks, strict=True)
        return {name: [classes[place] for place in block.argmax(axis=1).tolist()] for name, classes, block in named}

    def describe(self) -> str:
        """Return a few words about the outputs."""
        sizes = ", ".join(
            f"{name!r} with {len(c)} class{'es' * (len(c) != 1)}"
            for name, c in zip(self.names, self.classes, strict=True)
        )
        return sizes if len(self.names) <= 3 else f"{len(self.names)} columns of classes"


class NumberOutputs(Form):
    """Columns of numbers, which an estimator sees as (y − center)/scale."""

    default_kernel: ClassVar[type[Kernel]] = Gaussian  # with the median width
    same_length: ClassVar[tuple[str, ...]] = ("names", "centers", "scales")
    kind: Literal["numbers"] = "numbers"
    centers: tuple[float, ...]
    scales: tuple[Annotated[float, Field(gt=0)], ...]

    @classmethod
    def fit(cls, table: Table, names: Sequence[str], scale: str) -> NumberOutputs:
        """Learn means and standard deviations."""
        matrix = to_dense(get_output_numbers(table, names))
        centers, scales = find_scale(matrix, scale)
        return cls(names=tuple(names), centers=centers, scales=scales)

    def encode(self, table: Table) -> Any:
        """Return the scaled numbers (n, d)."""
        return apply_scale(to_dense(get_output_numbers(table, self.names)), self.centers, self.scales)

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return columns of numbers with 12 significant digits."""
        columns = self.unscale(Y).T.tolist()
        return {name: list(map(format_number, column)) for name, column in zip(self.names, columns, strict=True)}

    def unscale(self, Y: Any) -> Any:
        """Return outputs in the units of the table."""
        return to_dense(Y) * np.array(self.scales) + np.array(self.centers)

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"{len(self.names)} column{'s' if len(self.names) > 1 else ''} of numbers"


OutputForm = Annotated[
    LabelColumns | TagColumn | OrderColumn | RankColumns | ClassColumns | NumberOutputs, Field(discriminator="kind")
]
KINDS = ("labels", "tags", "orders", "ranks", "classes", "numbers")


def get_output_numbers(table: Table, names: Sequence[str]) -> Any:
    """Return columns of outputs as a matrix; raise an error for a missing one, which cannot be filled in."""
    matrix = table.get_numbers(names, allow_missing=True)
    if not sparse.issparse(matrix) and np.isnan(matrix).any():
        row, column = (int(i) for i in np.argwhere(np.isnan(matrix))[0])
        raise row_error(table, row, f"the output {names[column]!r} is missing; fill it in or delete the row.")
    return matrix


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


def _split_tags(cell: str, separator: str) -> list[str]:
    return [tag for part in cell.split(separator) if (tag := part.strip())]


def _ranks_of_orders(table: Table, name: str, items: Sequence[str] | None) -> tuple[Any, list[str]]:
    cells = table.get_texts(name)
    try:
        return from_orders(cells, items)
    except ValueError:
        for row, cell in enumerate(cells):  # the row that is wrong
            try:
                items = from_orders([cell], items)[1]
            except ValueError as error:
                reason = str(error).replace("orders in row 0: ", "").partition(" Partial rankings")[0]
                raise row_error(table, row, f"the order {name!r}: {reason}") from error
        raise


def _sort_key(word: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers first, by value."""
    is_whole = word.isascii() and word.isdecimal() and len(word) < 300
    return (False, float(word), word) if is_whole else (True, 0.0, word)
