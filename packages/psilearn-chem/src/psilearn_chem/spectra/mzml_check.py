"""A check of mzML files before they are parsed: no document type, and no arrays that expand without bound."""

from __future__ import annotations

import binascii
import zlib
from pathlib import Path
from xml.parsers import expat

from psilearn.utils import (
    MAX_EXPANSION,
    convert_read_errors,
    decompressed_limit,
    raise_for_document_type,
)


def check_mzml(path: Path) -> None:
    """Raise an error for a document type, and for compressed arrays that are too large in relation to the file.

    Cost: one pass over the file, and the decompression of its arrays. The check ends where the XML is malformed: the
    reader ends there too.
    """
    scanner = _ArrayScanner(decompressed_limit(path))
    with convert_read_errors(path, "an mzML file"), path.open("rb") as file:
        try:
            scanner.parser.ParseFile(file)
        except expat.ExpatError:
            return


class _ArrayScanner:
    """Adds up the decompressed sizes of the arrays of a file, without keeping them."""

    def __init__(self, limit: int) -> None:
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartDoctypeDeclHandler = raise_for_document_type
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self._left = limit
        self._text: list[str] = []

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._text.clear()
        self.parser.CharacterDataHandler = self._text.append if tag.rpartition("}")[2] == "binary" else None

    def _end(self, tag: str) -> None:
        self.parser.CharacterDataHandler = None
        text = "".join(self._text)
        self._text.clear()
        try:
            self._left -= len(zlib.decompressobj().decompress(binascii.a2b_base64(text), self._left + 1))
        except (zlib.error, binascii.Error, ValueError):
            return  # not compressed, or damaged: the reader reports it
        if self._left < 0:
            raise ValueError(f"its arrays are over {MAX_EXPANSION} times as large as the file")
