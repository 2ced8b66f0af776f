"""Scans of mzML files at MS level 2, after a check for document types and arrays that expand without bound."""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

from psilearn.utils import MAX_EXPANSION, convert_read_errors, decompressed_limit, raise_for_document_type
from psilearn_chem.spectra.formats import import_matchms, shorten_error
from psilearn_chem.spectra.records import Record

POLARITIES = {"positive scan": "positive", "negative scan": "negative"}
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_SCAN = re.compile(r"(?:^|\s)(?:scan|scanId|spectrum)=(\d{1,18})(?=\s|$)")


def iter_mzml(path: Path) -> Iterator[Record]:
    """Yield the scans of MS level 2; for a damaged file, the last record names the last scan that could be read."""
    check_mzml(path)
    position = "the beginning"
    try:
        for record in _iter_scans(path):
            position = record.position
            yield record
    except Exception as error:  # of the XML parser or the decoder of arrays: nothing after it can be read
        reason = f"the rest of the file cannot be read ({shorten_error(error)})"
        yield Record(f"after {position}", error=ValueError(reason))


def _iter_scans(path: Path) -> Iterator[Record]:
    import_matchms()
    from matchms.importing.parsing_utils import find_by_key, parse_mzml_mzxml_metadata
    from pyteomics.mzml import read

    with read(str(path), dtype=dict) as scans:
        for scan in scans:
            if scan.get("ms level") != 2:
                continue
            known = parse_mzml_mzxml_metadata(scan)
            number = _find_scan_number(scan)
            fields = {name: value for name, value in known.items() if not isinstance(value, list)} | {
                "scan_number": number,
                "ionmode": next((POLARITIES[name] for name in POLARITIES if name in scan), None),
                "retention_time": _find_seconds(next(find_by_key(dict(scan), "scan start time"), None)),
                "collision_energy": next(find_by_key(dict(scan), "collision energy"), None),
            }
            yield Record(f"scan {number}", scan["m/z array"], scan["intensity array"], fields)


def _find_scan_number(scan: Mapping[str, Any]) -> str:
    """Return the number in the identifier of a scan; without one, the identifier or the place in the file."""
    identifier = " ".join(str(scan.get("id", "")).split())
    match = _SCAN.search(identifier)
    return match[1] if match else identifier[:100] or str(scan.get("index", "?"))


def _find_seconds(time: Any) -> float | None:
    """Return a time in seconds; without a unit, it is in minutes."""
    return None if time is None else float(time) * SECONDS.get(str(getattr(time, "unit_info", "minute")), 60.0)


def check_mzml(path: Path) -> None:
    """Raise an error for a document type, and for compressed arrays that are too large in relation to the file.

    Cost: one pass over the file, and the decompression of its arrays, which are not kept. The check ends where the XML
    is malformed: the reader ends there too.
    """
    n_left = decompressed_limit(path)
    text: list[str] = []
    parser = expat.ParserCreate(namespace_separator="}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        text.clear()
        parser.CharacterDataHandler = text.append if tag.rpartition("}")[2] == "binary" else None

    def end(tag: str) -> None:
        nonlocal n_left
        parser.CharacterDataHandler = None
        try:
            n_left -= len(zlib.decompressobj().decompress(binascii.a2b_base64("".join(text)), n_left + 1))
        except (zlib.error, binascii.Error, ValueError):
            return  # not compressed, or damaged: the reader reports it
        finally:
            text.clear()
        if n_left < 0:
            raise ValueError(f"its arrays are over {MAX_EXPANSION} times as large as the file")

    parser.StartDoctypeDeclHandler = raise_for_document_type
    parser.StartElementHandler, parser.EndElementHandler = start, end
    with convert_read_errors(path, "an mzML file"), path.open("rb") as file:
        try:
            parser.ParseFile(file)
        except expat.ExpatError:
            return
