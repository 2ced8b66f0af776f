"""Read files that may be damaged: only regular files are opened, and every error names the file.

Compressed contents may be at most ``MAX_EXPANSION`` times as large as the file, so that a small file cannot fill the
memory; contents of up to ``MIN_LIMIT`` bytes are always read.
"""

from __future__ import annotations

import csv
import struct
import sys
import tokenize
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.parsers import expat

MAX_EXPANSION = 200  # decompressed bytes per byte of a file; real data has fewer than 50, deflate allows 1032
MIN_LIMIT = 1 << 20  # decompressed bytes that are accepted from any file

_CONTENT_ERRORS = (
    ArithmeticError,
    AttributeError,
    csv.Error,
    EOFError,
    expat.ExpatError,
    LookupError,
    RuntimeError,  # also RecursionError and NotImplementedError
    StopIteration,
    struct.error,
    SyntaxError,  # also the ParseError of XML
    tokenize.TokenError,  # of headers of arrays
    TypeError,
    ValueError,
    zlib.error,
)


def require_regular_file(path: Path, noun: str) -> None:
    """Raise an error unless the path is a file or a link to one: opening a pipe or a device could block forever."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; {noun} is expected here.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a pipe or a device; {noun} is expected here.")
    if not path.exists():
        raise FileNotFoundError(f"{path} cannot be read: {noun} is expected here, and there is none.")


@contextmanager
def convert_read_errors(path: Path, noun: str) -> Iterator[None]:
    """Convert errors that the contents of a file cause into a ValueError or OSError that names the file.

    An error whose message already names the file stays as it is. ``noun`` describes the expected file in messages, such
    as "a Parquet file".
    """
    try:
        yield
    except OSError as error:
        if error.errno is None and path.name in str(error):
            raise
        raise type(error)(f"{path} cannot be read ({error.strerror or error}).") from error
    except _list_content_errors() as error:
        if isinstance(error, ValueError) and path.name in str(error):
            raise
        raise ValueError(f"{path} is not {noun} that can be read ({_describe(error)}).") from error


def decompressed_limit(path: Path) -> int:
    """Return how many bytes the decompressed contents of a file may have."""
    return max(MIN_LIMIT, MAX_EXPANSION * path.stat().st_size)


def raise_for_document_type(*_: object) -> None:
    """Reject a document type, whose entities could expand without bound or name files; a handler of an XML parser."""
    raise ValueError("it declares a document type, which data files do not need")


def _list_content_errors() -> tuple[type[Exception], ...]:
    """Return the errors that unexpected contents cause, with those of pyarrow if it is in use."""
    pyarrow = sys.modules.get("pyarrow")
    return _CONTENT_ERRORS if pyarrow is None else (*_CONTENT_ERRORS, pyarrow.ArrowException)


def _describe(error: Exception) -> str:
    """Return the message of an error on one line; with its type if the message alone does not explain it."""
    text = " ".join(str(error).split())[:300].rstrip(".")
    return text if text and isinstance(error, ValueError) else f"{type(error).__name__}: {text}".rstrip(": ")
