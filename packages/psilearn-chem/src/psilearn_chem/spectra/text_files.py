"""Lines of text files of any origin, and records that are parsed from lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from psilearn_chem.spectra.records import Record
from psilearn_chem.text_encoding import open_text

MAX_MESSAGE = 200  # characters of an error of another library that are shown


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file."""
    with open_text(path) as file:
        for line in file:
            yield line.rstrip("\r\n")


def parse_record(parse: Callable[[list[str], str], Record], lines: list[str], position: str) -> Record:
    """Return the parsed record, or the error in it: parsers of other libraries raise exceptions of any type."""
    try:
        return parse(lines, position)
    except Exception as error:
        return Record(position, error=ValueError(shorten_error(error)))


def shorten_error(error: Exception) -> str:
    """Return the message of an error on one line, or its type if it has none."""
    return " ".join(str(error).split())[:MAX_MESSAGE] or type(error).__name__
