"""Text files of any origin: UTF-8, and Windows-1252 or Latin-1 where bytes are not UTF-8."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TextIO

AS_WINDOWS = "psilearn.cp1252"  # name of the handler of bytes that are not UTF-8


def open_text(path: Path, newline: str | None = None) -> TextIO:
    """Open a text in UTF-8, with or without a byte order mark; other bytes are read as Windows-1252, else Latin-1."""
    return path.open(encoding="utf-8-sig", errors=AS_WINDOWS, newline=newline)


def _decode_as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes that are not UTF-8, one by one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = error.object[error.start : error.end]
    return "".join(_decode_byte(rest[i : i + 1]) for i in range(len(rest))), error.end


def _decode_byte(byte: bytes) -> str:
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:
        return byte.decode("latin-1")


codecs.register_error(AS_WINDOWS, _decode_as_windows)
