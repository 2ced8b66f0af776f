"""Inputs from the columns of a table: scaled numbers, one-hot categories, and TF-IDF weights of words in texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

from psilearn.app.tables.table import Table, require_columns, row_error

MAX_WORDS = 50_000  # of a column of texts: the most frequent ones
MAX_CATEGORIES = 100  # of a column that was not named as categorical
SCALES = ("auto", "standard", "none")
SPARSE_SHARE = 0.5  # numbers with at least this share of zeros are not scaled by default


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Raise a ValueError if names are missing or repeated."""
    if len(set(names)) < max(1, len(names)):
        raise ValueError("names or values are missing or repeated")
    return names


Names = Annotated[tuple[str, ...], AfterValidator(_check_names)]


class Description(BaseModel):
    """What a model learned about columns: JSON data of a saved model, which is validated when it is loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    same_length: ClassVar[tuple[str, ...]] = ()  # names of fields

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        """Raise a ValueError if the fields do not correspond to each other."""
        if len({len(getattr(self, name)) for name in self.same_length}) > 1:
            raise ValueError(f"{', '.join(self.same_length)} do not have the same length")
        return self


class NumberColumns(Description):
    """Columns of numbers x, which become (x − center)/scale; missing ones are filled if ``fills`` is not empty."""

    names: tuple[str, ...]
    centers: tuple[float, ...]
    scales: tuple[Annotated[float, Field(gt=0)], ...]
    fills: tuple[float, ...]

    @classmethod
    def fit(cls, table: Table, names: Sequence[str], scale: str, impute: bool) -> NumberColumns:
        """Learn medians, means and standard deviations."""
        matrix = table.get_numbers(names, allow_missing=impute)
        fills = _medians(table, matrix, names) if impute and not sparse.issparse(matrix) else ()
        matrix = _fill(matrix, fills)
        centers, scales = find_scale(matrix, scale)
        return cls(names=tuple(names), centers=centers, scales=scales, fills=fills)

    def transform(self, table: Table) -> Any:
        """Return the inputs (n, d), dense or CSR."""
        matrix = _fill(table.get_numbers(self.names, allow_missing=bool(self.fills)), self.fills)
        return apply_scale(matrix, self.centers, self.scales)

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise a ValueError if the fields do not correspond to each other."""
        if len({len(self.names), len(self.centers), len(self.scales), len(self.fills) or len(self.names)}) > 1:
            raise ValueError("the scales of the columns of numbers do not fit their names")
        return self


class CategoryColumn(Description):
    """A column of categories, which become 0/1 columns; a category that was not seen in training is a row of zeros."""

    name: str
    categories: Names
    has_missing: bool  # whether an empty cell is a category

    @classmethod
    def fit(cls, table: Table, name: str, impute: bool) -> CategoryColumn:
        """Collect the categories, sorted."""
        cells = table.get_texts(name)
        if not impute and "" in cells:
            message = f"the value of {name!r} is missing; fill it in, or use --impute to make it a category of its own."
            raise row_error(table, cells.index(""), message)
        return cls(name=name, categories=tuple(sorted(set(cells))), has_missing=impute)

    def transform(self, table: Table) -> Any:
        """Return the CSR matrix (n, number of categories)."""
        cells = table.get_texts(self.name)
        if not self.has_missing and "" in cells:
            raise row_error(table, cells.index(""), f"the value of {self.name!r} is missing.")
        return encode_one_hot(table, [self.name], [self.categories])

    def count_unknown(self, table: Table) -> int:
        """Return the number of rows whose category was not seen in training."""
        known = set(self.categories)
        return sum(cell not in known for cell in table.get_texts(self.name))


class TextColumn(Description):
    """A column of texts, which become TF-IDF weights of their words; rows have length 1, or 0 without a known word."""

    same_length: ClassVar[tuple[str, ...]] = ("words", "weights")
    name: str
    words: Names
    weights: tuple[float, ...]  # the inverse document frequency of each word

    @classmethod
    def fit(cls, table: Table, name: str) -> TextColumn:
        """Collect the words and their weights by scikit-learn's ``TfidfVectorizer(max_features=50000)``."""
        vectorizer = TfidfVectorizer(max_features=MAX_WORDS)
        try:
            vectorizer.fit(table.get_texts(name))
        except ValueError as error:
            raise ValueError(f"{table.path}: the texts of {name!r} (--text) contain no words.") from error
        words = tuple(map(str, vectorizer.get_feature_names_out()))
        return cls(name=name, words=words, weights=tuple(vectorizer.idf_.tolist()))

    def transform(self, table: Table) -> Any:
        """Return the CSR matrix (n, number of words)."""
        vectorizer = TfidfVectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = np.array(self.weights)
        return vectorizer.transform(table.get_texts(self.name))


class InputColumns(Description):
    """All inputs, side by side: numbers, then categories, then texts."""

    numbers: NumberColumns
    categories: tuple[CategoryColumn, ...]
    texts: tuple[TextColumn, ...]

    @property
    def text_names(self) -> list[str]:
        """The columns that are read as texts."""
        return [column.name for column in self.categories] + [column.name for column in self.texts]

    @property
    def names(self) -> list[str]:
        """The columns that are used."""
        return [*self.numbers.names, *self.text_names]

    @property
    def width(self) -> int:
        """The number of columns of the inputs."""
        sizes = [len(column.categories) for column in self.categories] + [len(column.words) for column in self.texts]
        return len(self.numbers.names) + sum(sizes)

    def transform(self, table: Table) -> Any:
        """Return the inputs: an array, or a CSR matrix if there are texts or the file is in a sparse format."""
        if not table.is_sparse_format:
            require_columns(table, self.names)
        numbers = self.numbers.transform(table)
        parts = [part.transform(table) for part in self.categories + self.texts]
        if self.texts or sparse.issparse(numbers):
            return sparse.hstack([numbers, *parts], "csr")
        return np.hstack([numbers, *map(to_dense, parts)])

    def describe(self) -> str:
        """Return one line about the inputs."""
        words = sum(len(column.words) for column in self.texts)
        parts = (
            (len(self.numbers.names), "column{} of numbers"),
            (len(self.categories), "column{} of categories"),
            (len(self.texts), f"column{{}} of texts with {words:,} words"),
        )
        return ", ".join(f"{count:,} {text.format('s' if count > 1 else '')}" for count, text in parts if count)

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise a ValueError if there are no inputs."""
        if not self.names:
            raise ValueError("there are no inputs")
        return self


def to_dense(matrix: Any) -> Any:
    """Return an array."""
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def encode_one_hot(table: Table, names: Sequence[str], categories: Sequence[Sequence[str]]) -> Any:
    """Return the cells of columns as 0/1 columns, in a CSR matrix; other texts than the categories are zeros."""
    cells = np.array([table.get_texts(name) for name in names], dtype=object).T
    return OneHotEncoder(categories=[*map(list, categories)], handle_unknown="ignore").fit_transform(cells)


def find_scale(matrix: Any, scale: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the means and standard deviations of columns, 1 for a constant one; 0 and 1 if they are not scaled."""
    n_others = matrix.count_nonzero() if sparse.issparse(matrix) else np.count_nonzero(matrix)
    n_numbers = max(1, matrix.shape[0] * matrix.shape[1])
    if scale == "none" or (scale == "auto" and 1 - n_others / n_numbers >= SPARSE_SHARE):
        return (0.0,) * matrix.shape[1], (1.0,) * matrix.shape[1]
    dense = to_dense(matrix)
    centers, deviations = dense.mean(axis=0), dense.std(axis=0)
    is_constant = deviations <= 1e-12 * np.maximum(1e-300, np.abs(centers))
    return tuple(centers.tolist()), tuple(np.where(is_constant, 1.0, deviations).tolist())


def apply_scale(matrix: Any, centers: Sequence[float], scales: Sequence[float]) -> Any:
    """Return (x − center)/scale for each column; a CSR matrix whose centers are 0 and scales 1 stays as it is."""
    if not any(centers) and all(scale == 1 for scale in scales):
        return matrix
    return (to_dense(matrix) - np.array(centers)) / np.array(scales)


def _medians(table: Table, matrix: Any, names: Sequence[str]) -> tuple[float, ...]:
    """Return the median of the known numbers of each column."""
    is_empty = np.isnan(matrix).all(axis=0)
    if is_empty.any():
        name = names[int(np.argmax(is_empty))]
        raise ValueError(f"{table.path}: all values of the column {name!r} are missing: leave it out with --drop.")
    return tuple(np.nanmedian(matrix, axis=0).tolist())


def _fill(matrix: Any, fills: Sequence[float]) -> Any:
    """Return the numbers with missing ones filled in."""
    if not fills or sparse.issparse(matrix):
        return matrix
    return np.where(np.isnan(matrix), np.array(fills), matrix)
