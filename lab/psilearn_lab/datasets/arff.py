"""ARFF files of numbers: a header of attributes, then rows, sparse (``{3 1,17 0.5}``) or dense (``0,1,0.5``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from math import isfinite
from pathlib import Path

import numpy as np
from scipy import sparse

from psilearn.utils import decompressed_limit
from psilearn_lab.datasets.sparse_rows import SparseRows, line_error, read_lines

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"]\S*)\s*(.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*+({_QUOTED}|[^,'\"]*+)\s*+(?:,|$)")  # possessive: each character is matched once
_PAIR = re.compile(rf"\s*([0-9]+)\s+({_QUOTED}|[^\s,'\"}}]+)\s*(?:,(?!\s*}}$)|}}$)")
_PAIRS = re.compile(r"(?: *+\d++ ++[^ ,]++ *+,)*+ *+\d++ ++[^ ,]++ *+")
BYTES_PER_DEFAULT = 40  # memory per entry while omitted entries are filled in
_TRUTH = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Attribute:
    """A column: its name without and with quotes, and the numbers of its values if the header lists them.

    If the values are words, their numbers are their places in the header, from 0.
    """

    name: str
    raw_name: str
    values: dict[str, float] | None
    words: bool = False

    @property
    def default(self) -> float:
        """The value of an entry that is omitted in a sparse row: zero, or the first of the listed values."""
        return next(iter(self.values.values())) if self.values else 0.0


@dataclass(frozen=True)
class Arff:
    """The content of a file: its relation, its columns, its rows as read, and their matrix (n, number of columns)."""

    relation: str
    attributes: list[Attribute]
    rows: SparseRows
    matrix: sparse.csr_matrix


def read_arff(path: Path, *, words: bool = False) -> Arff:
    """Read a file; raise an error with the line for any value that is not a finite number.

    With ``words``, an attribute may list values that are words: the matrix then contains their places in the header.
    """
    lines = ((number, line) for number, raw in read_lines(path) if (line := raw.strip()) and line[0] != "%")
    relation, attributes = _read_header(path, lines, words)
    rows = SparseRows(path)
    has_words = any(attribute.words for attribute in attributes)
    keep_zeros = any(attribute.default for attribute in attributes)  # if an omitted entry may mean another value
    for number, line in lines:
        try:
            columns, values = _parse_row(line, attributes, has_words)
        except ValueError as error:
            raise line_error(path, number, str(error)) from error
        if line[0] != "{" and not keep_zeros:
            columns, values = list(compress(columns, values)), list(filter(None, values))
        try:
            rows.add(number, columns, values)
        except OverflowError as error:
            message = f"an attribute number is too large: there are {len(attributes)}."
            raise line_error(path, number, message) from error
    if not rows:
        raise ValueError(f"{path}: no data rows after {len(attributes)} attributes; the file may be truncated.")
    matrix = rows.to_csr(len(attributes), "attribute")
    _check_listed_values(rows, attributes)
    return Arff(relation, attributes, rows, _fill_defaults(matrix, attributes, path) if keep_zeros else matrix)


def _read_header(path: Path, lines: Iterator[tuple[int, str]], words: bool) -> tuple[str, list[Attribute]]:
    """Return the relation and the attributes, and consume the lines up to ``@data``."""
    attributes: list[Attribute] = []
    relation, number = "", 0
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            if not attributes or line.lower() != "@data":
                raise line_error(path, number, f"@data must be alone in a line after the attributes: {line[:60]!r}.")
            return relation, attributes
        if keyword == "@relation":
            relation = _unquote(line[len(keyword) :].strip())
        elif (match := _ATTRIBUTE.fullmatch(line)) is not None:
            try:
                attributes.append(Attribute(_unquote(match[1]), match[1], *_parse_values(match[2], words)))
            except ValueError as error:
                raise line_error(path, number, f"attribute {match[1]}: {error}") from error
        else:
            raise line_error(path, number, f"not an ARFF header: {line[:60]!r}.")
    message = f"the file ends after {len(attributes)} attributes, before @data: download it again."
    raise line_error(path, number, message)


def _parse_values(kind: str, allow_words: bool) -> tuple[dict[str, float] | None, bool]:
    """Return the numbers of ``{0,1}`` or ``{yes,no}``, or None for a numeric attribute, and whether they are words."""
    if not kind.startswith("{"):
        if (kind.split() or [""])[0].lower() in ("numeric", "real", "integer"):
            return None, False
        raise ValueError(f"its type {kind[:40]!r} is not numeric; remove the column or convert it to numbers.")
    if not kind.endswith("}"):
        raise ValueError("the list of its values has no closing brace.")
    words = _split(kind[1:-1])
    try:
        return {word: _parse_number(word) for word in words}, False
    except ValueError:
        if all(word.lower() in _TRUTH for word in words):
            return {word: _TRUTH[word.lower()] for word in words}, False
    if allow_words:
        if len(set(words)) < len(words):
            raise ValueError(f"its values {kind[:40]} repeat a word.")
        return {word: float(code) for code, word in enumerate(words)}, True
    raise ValueError(
        f"its values {kind[:40]} are words or not finite; make it numeric, for example one 0/1 column per word."
    )


def _parse_row(line: str, attributes: list[Attribute], has_words: bool) -> tuple[list[int], list[float]]:
    """Return the columns and values of a row, by the fast parser if the row consists of plain numbers."""
    if has_words:
        return _parse_general_row(line, attributes)
    try:
        return _parse_plain_row(line, len(attributes))
    except ValueError:
        return _parse_general_row(line, attributes)


def _parse_plain_row(line: str, width: int) -> tuple[list[int], list[float]]:
    """Parse a row of plain numbers; raise an error without a message for any other row."""
    if "_" in line or not line.isascii():  # Python would read 1_000 and digits of other scripts as numbers
        raise ValueError
    if line[0] != "{":
        values = list(map(float, line.split(",")))
        if len(values) != width:
            raise ValueError
        return list(range(width)), values
    if line[-1] != "}":
        raise ValueError
    if not line[1:-1].strip():
        return [], []
    if _PAIRS.fullmatch(line, 1, len(line) - 1) is None:
        raise ValueError
    words = line[1:-1].replace(",", " ").split()
    return list(map(int, words[::2])), list(map(float, words[1::2]))


def _parse_general_row(line: str, attributes: list[Attribute]) -> tuple[list[int], list[float]]:
    """Parse a row that may contain words or quotes; raise an error that states its fault."""
    if line[0] != "{":
        words = _split(line)
        if len(words) != len(attributes):
            raise ValueError(f"{len(words)} values for {len(attributes)} attributes; the row may be truncated.")
        return list(range(len(words))), [_parse_value(*pair) for pair in zip(words, attributes, strict=True)]
    if line[-1] != "}":
        raise ValueError("the row is truncated: it has no closing brace.")
    if not line[1:-1].strip():
        return [], []
    columns, values, position = [], [], 1
    while position < len(line):
        match = _PAIR.match(line, position)
        if match is None:
            raise ValueError(f"a sparse row must hold pairs 'index value', not {line[position : position + 40]!r}.")
        if int(match[1]) >= len(attributes):
            raise ValueError(f"attribute {match[1]} does not exist: there are {len(attributes)}, from 0.")
        columns.append(int(match[1]))
        values.append(_parse_value(_unquote(match[2]), attributes[int(match[1])]))
        position = match.end()
    return columns, values


def _parse_value(word: str, attribute: Attribute) -> float:
    """Return the number of a word of an attribute; raise an error that names the attribute."""
    if word == "?":
        raise ValueError(f"the value of {attribute.raw_name} is missing ('?'); fill it in or remove the row.")
    if attribute.values and word in attribute.values:
        return attribute.values[word]
    if attribute.words:
        raise ValueError(f"the value of {attribute.raw_name} is {word[:40]!r}, which its header does not list.")
    try:
        return _parse_number(word)
    except ValueError as error:
        raise ValueError(
            f"the value of {attribute.raw_name} is {word[:40]!r}, which is not a finite number."
        ) from error


def _parse_number(word: str) -> float:
    """Return a word as a finite number; raise an error for other digits and separators that Python accepts."""
    if "_" in word or not word.isascii() or not isfinite(number := float(word)):
        raise ValueError
    return number


def _split(text: str) -> list[str]:
    """Return the values between commas, without quotes."""
    words, position = [], 0
    while position <= len(text):
        match = _VALUE.match(text, position)
        if match is None:
            raise ValueError(f"quotes that do not close near {text[position : position + 40]!r}.")
        words.append(_unquote(match[1].rstrip()))
        position = match.end() if match[0].endswith(",") else len(text) + 1
    return words


def _unquote(word: str) -> str:
    """Return a name or value without quotes; a backslash is an escape only between quotes."""
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), word[1:-1])
    return word


def _check_listed_values(rows: SparseRows, attributes: list[Attribute]) -> None:
    """Raise an error for a value that the header does not list for its attribute."""
    columns, values = rows.entries()
    lists: dict[tuple[float, ...], list[int]] = {}
    for j, attribute in enumerate(attributes):
        if attribute.values:
            lists.setdefault(tuple(attribute.values.values()), []).append(j)
    for allowed, members in lists.items():
        is_member = np.zeros(len(attributes), dtype=bool)
        is_member[members] = True
        wrong = is_member[columns]
        for value in allowed:
            wrong &= values != value
        rows.raise_for_entry(wrong, f"attribute {{column}} has the value {{value:g}}; its header lists {allowed}.")


def _fill_defaults(matrix: sparse.csr_matrix, attributes: list[Attribute], path: Path) -> sparse.csr_matrix:
    """Return the matrix with the omitted entries whose default is not zero, unless they are too many for the file."""
    defaults = np.array([attribute.default for attribute in attributes])
    columns = np.flatnonzero(defaults)
    if matrix.shape[0] * len(columns) * BYTES_PER_DEFAULT > decompressed_limit(path):
        raise ValueError(
            f"{path}: {matrix.shape[0]} rows and {len(columns)} attributes whose first listed value is not 0 are too "
            f"many entries for a file of {path.stat().st_size:,} bytes: list 0 first, or make the attributes numeric."
        )
    stored = matrix[:, columns]
    stored.data = np.ones_like(stored.data)
    i, j = np.nonzero(stored.toarray() == 0)  # rows, and positions in `columns`, of the entries that are not stored
    missing = sparse.csr_matrix((defaults[columns[j]], (i, columns[j])), matrix.shape)
    return (matrix + missing).tocsr()
