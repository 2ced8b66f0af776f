"""ARFF files of numbers: a header of attributes, then rows, sparse (``{3 1,17 0.5}``) or dense (``0,1,0.5``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.datasets.sparse_rows import Rows, fault, read_lines

_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s'\"]\S*)\s*(.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_WORD}|[^,'\"]*?)\s*(?:,|$)")
_PAIR = re.compile(rf"\s*([0-9]+)\s+({_WORD}|[^\s,'\"}}]+)\s*(?:,(?!\s*}}$)|}}$)")
_PAIRS = re.compile(r"(?: *+\d++ ++[^ ,]++ *+,)*+ *+\d++ ++[^ ,]++ *+")  # possessive: one look at each character
_TRUTH = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Attribute:
    """A column: its name, as meant and as written, and the numbers of its values where the header lists them."""

    name: str
    written: str
    values: dict[str, float] | None

    @property
    def default(self) -> float:
        """What an entry left out of a sparse row means: zero, or the first of the listed values."""
        return next(iter(self.values.values())) if self.values else 0.0


@dataclass(frozen=True)
class Arff:
    """A file that was read: its relation, its columns, its rows as read, and their matrix (n, number of columns)."""

    relation: str
    attributes: list[Attribute]
    rows: Rows
    matrix: Any


def read_arff(path: Path) -> Arff:
    """Read a file; anything that is not a finite number where one belongs is refused with its line."""
    lines = ((number, line) for number, raw in read_lines(path) if (line := raw.strip()) and line[0] != "%")
    relation, attributes = _read_header(path, lines)
    rows = Rows(path)
    # Zeros of dense rows may be dropped if they are what an entry left out means, and an allowed value, everywhere.
    zeros = any(attribute.default for attribute in attributes)
    for number, line in lines:
        try:
            columns, values = _fast_row(line, len(attributes))
        except ValueError:
            try:
                columns, values = _careful_row(line, attributes)
            except ValueError as error:
                raise fault(path, number, str(error)) from error
        if line[0] != "{" and not zeros:
            columns, values = list(compress(columns, values)), list(filter(None, values))
        try:
            rows.add(number, columns, values)
        except OverflowError as error:
            raise fault(path, number, f"an attribute number is too large: there are {len(attributes)}.") from error
    if not rows:
        raise ValueError(f"{path}: no data rows after {len(attributes)} attributes; the file may be cut off.")
    matrix = rows.matrix(len(attributes), "attribute")
    _check_listed(rows, attributes)
    return Arff(relation, attributes, rows, _fill(matrix, attributes) if zeros else matrix)


def _read_header(path: Path, lines: Iterator[tuple[int, str]]) -> tuple[str, list[Attribute]]:
    attributes: list[Attribute] = []
    relation, number = "", 0
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            if not attributes or line.lower() != "@data":
                raise fault(path, number, f"@data must stand alone, after the attributes: {line[:60]!r}.")
            return relation, attributes
        if keyword == "@relation":
            relation = _unquote(line[len(keyword) :].strip())
        elif (match := _ATTRIBUTE.fullmatch(line)) is not None:
            try:
                attributes.append(Attribute(_unquote(match[1]), match[1], _listed_values(match[2])))
            except ValueError as error:
                raise fault(path, number, f"attribute {match[1]}: {error}") from error
        else:
            raise fault(path, number, f"not an ARFF header: {line[:60]!r}.")
    raise fault(path, number, f"the file ends after {len(attributes)} attributes, before @data: get it again.")


def _listed_values(kind: str) -> dict[str, float] | None:
    """Return the numbers of ``{0,1}`` or ``{yes,no}``, or None for a numeric attribute."""
    if not kind.startswith("{"):
        if (kind.split() or [""])[0].lower() in ("numeric", "real", "integer"):
            return None
        raise ValueError(f"its type {kind[:40]!r} is not numeric; drop the column or turn it into numbers.")
    if not kind.endswith("}"):
        raise ValueError("the list of its values has no closing brace.")
    words = _split(kind[1:-1])
    try:
        return {word: _number(word) for word in words}
    except ValueError:
        if all(word.lower() in _TRUTH for word in words):
            return {word: _TRUTH[word.lower()] for word in words}
    raise ValueError(f"its values {kind[:40]} are words; make it numeric, for example one 0/1 column a word.")


def _fast_row(line: str, width: int) -> tuple[list[int], list[float]]:
    """Parse a row of plain numbers; whatever else is in it raises, and is looked at carefully."""
    if "_" in line or not line.isascii():  # Python would take 1_000 and digits of other scripts for numbers
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


def _careful_row(line: str, attributes: list[Attribute]) -> tuple[list[int], list[float]]:
    """Parse a row with words or quotes in it, or say what is wrong with it."""
    if line[0] != "{":
        words = _split(line)
        if len(words) != len(attributes):
            raise ValueError(f"{len(words)} values for {len(attributes)} attributes; the row may be cut off.")
        return list(range(len(words))), [_value(*pair) for pair in zip(words, attributes, strict=True)]
    if line[-1] != "}":
        raise ValueError("the row is cut off before its closing brace.")
    columns, values, position = [], [], 1
    while position < len(line):
        match = _PAIR.match(line, position)
        if match is None:
            raise ValueError(f"a sparse row must hold pairs 'index value', not {line[position : position + 40]!r}.")
        if int(match[1]) >= len(attributes):
            raise ValueError(f"attribute {match[1]} does not exist: there are {len(attributes)}, from 0.")
        columns.append(int(match[1]))
        values.append(_value(_unquote(match[2]), attributes[int(match[1])]))
        position = match.end()
    return columns, values


def _value(word: str, attribute: Attribute) -> float:
    if word == "?":
        raise ValueError(f"the value of {attribute.written} is missing ('?'); fill it in or drop the row.")
    if attribute.values and word in attribute.values:
        return attribute.values[word]
    try:
        return _number(word)
    except ValueError as error:
        raise ValueError(f"the value of {attribute.written} is {word[:40]!r}, which is not a number.") from error


def _number(word: str) -> float:
    if "_" in word or not word.isascii():
        raise ValueError
    return float(word)


def _split(text: str) -> list[str]:
    """Return the values between commas, without quotes."""
    words, position = [], 0
    while position <= len(text):
        match = _VALUE.match(text, position)
        if match is None:
            raise ValueError(f"quotes that do not close near {text[position : position + 40]!r}.")
        words.append(_unquote(match[1]))
        position = match.end() if match[0].endswith(",") else len(text) + 1
    return words


def _unquote(word: str) -> str:
    """Return a name or value as it is meant; a backslash has a meaning only between quotes."""
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), word[1:-1])
    return word


def _check_listed(rows: Rows, attributes: list[Attribute]) -> None:
    """Refuse a value that is not among those listed for its attribute."""
    columns, values = rows.entries()
    lists: dict[tuple[float, ...], list[int]] = {}
    for j, attribute in enumerate(attributes):
        if attribute.values:
            lists.setdefault(tuple(attribute.values.values()), []).append(j)
    for allowed, members in lists.items():
        concerned = np.zeros(len(attributes), dtype=bool)
        concerned[members] = True
        wrong = concerned[columns]
        for value in allowed:
            wrong &= values != value
        rows.refuse(wrong, f"attribute {{column}} has the value {{value:g}}; its header lists {allowed}.")


def _fill(matrix: Any, attributes: list[Attribute]) -> Any:
    """Write out the entries left out of sparse rows whose meaning is not zero."""
    defaults = np.array([attribute.default for attribute in attributes])
    columns = np.flatnonzero(defaults)
    stored = matrix[:, columns]
    stored.data = np.ones_like(stored.data)
    i, j = np.nonzero(stored.toarray() == 0)  # rows and places in `columns` where nothing is stored
    missing = sparse.csr_matrix((defaults[columns[j]], (i, columns[j])), matrix.shape)
    return (matrix + missing).tocsr()
