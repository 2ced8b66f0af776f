"""Records of spectrum files in text and XML formats, each parsed on its own.

matchms parses all formats but MassBank, and gives the fields of different formats common names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psilearn.chem._optional import import_matchms_readers
from psilearn.chem.spectra import massbank
from psilearn.chem.spectra.mzml_check import check_mzml
from psilearn.chem.spectra.records import Record, check_number_of_peaks

if TYPE_CHECKING:
    from matchms import Spectrum as MatchmsSpectrum

MAX_MESSAGE = 200  # characters of an error of another library that are shown


def iter_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, whose format is known by its extension."""
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".mgf": _iter_mgf,
        ".msp": _iter_msp,
        ".mzml": _iter_mzml,
        ".txt": _iter_massbank,
        ".massbank": _iter_massbank,
    }
    if path.suffix.lower() not in readers:
        extensions = ", ".join([*readers, ".parquet"])
        raise ValueError(f"{path.name} ends in {path.suffix!r}; spectra are read from files that end in {extensions}.")
    return readers[path.suffix.lower()](path)


def _iter_mgf(path: Path) -> Iterator[Record]:
    """Yield the records of an MGF file, which stand between BEGIN IONS and END IONS."""
    import_matchms_readers()  # raises an error if matchms is missing
    number = 0
    lines: list[str] | None = None  # of the record that is being read
    for line in _iter_lines(path):
        keyword = line.strip().upper()
        if keyword == "BEGIN IONS":
            if lines is not None:
                yield Record(f"record {number}", error=ValueError("BEGIN IONS without END IONS"))
            number, lines = number + 1, [keyword]
        elif lines is None:
            if keyword and not re.match(r"[#;!/]|\w+=", keyword):
                error = ValueError(f"{line.strip()!r} stands outside of any record")
                yield Record(f"after record {number}", error=error)
        elif keyword == "END IONS":
            yield _parse(_parse_mgf, [*lines, keyword], f"record {number}")
            lines = None
        else:
            lines.append(line)
    if lines is not None:
        yield Record(f"record {number}", error=ValueError("the file ends without END IONS"))


def _parse_mgf(lines: list[str], position: str) -> Record:
    scans = import_matchms_readers().load_from_mgf(StringIO("\n".join(lines)))
    return _to_record(next(iter(scans)), position)


def _iter_msp(path: Path) -> Iterator[Record]:
    """Yield the records of an MSP file, each of which begins with its name."""
    import_matchms_readers()  # raises an error if matchms is missing
    chunk: list[str] = []
    number = 0
    for line in [*_iter_lines(path), "NAME:"]:
        if re.match(r"\s*name\s*:", line, re.IGNORECASE):
            if any(part.strip() for part in chunk):
                number += 1
                yield _parse(_parse_msp, chunk, f"record {number}")
            chunk = []
        chunk.append(line)


def _parse_msp(lines: list[str], position: str) -> Record:
    """Return the fields and peaks of one MSP record, which must state its number of peaks."""
    from matchms import Spectrum as MatchmsSpectrum
    from matchms.importing.load_from_msp import contains_metadata, get_peak_comment, get_peak_values, parse_metadata

    fields: dict[str, object] = {}
    mz: list[float] = []
    intensity: list[float] = []
    for line in lines:
        if not line.strip():
            continue
        if contains_metadata(line):
            parse_metadata(line, fields)
            continue
        peaks = get_peak_comment(line)[1]
        if not re.fullmatch(r"[\s\d.,;:()eE+-]*", peaks):
            raise ValueError(f"{line.strip()!r} is neither a field nor peaks")
        line_mz, line_intensity = get_peak_values(peaks)
        mz += line_mz
        intensity += line_intensity
    check_number_of_peaks(fields.pop("num peaks", fields.pop("num_peaks", None)), len(mz), "Num Peaks")
    order = np.argsort(mz, kind="stable")
    scan = MatchmsSpectrum(np.array(mz, dtype=float)[order], np.array(intensity, dtype=float)[order], fields)
    return _to_record(scan, position)  # with the common names of fields


def _iter_mzml(path: Path) -> Iterator[Record]:
    """Yield the scans of MS level 2; for a damaged file, the last record names the last scan that could be read."""
    scans = import_matchms_readers().load_from_mzml(str(path))
    check_mzml(path)
    position = "the beginning"
    while True:
        try:
            scan = next(scans, None)
        except Exception as error:  # of the XML parser or the decoder of arrays: nothing after it can be read
            reason = f"the rest of the file cannot be read ({_shorten(error)})"
            yield Record(f"after {position}", error=ValueError(reason))
            return
        if scan is None:
            return
        position = f"scan {scan.metadata.get('scan_number', scan.metadata.get('scans'))}"
        yield _to_record(scan, position)


def _iter_massbank(path: Path) -> Iterator[Record]:
    """Yield the records of a MassBank file, each of which ends with ``//``."""
    for number, (lines, is_complete) in enumerate(massbank.iter_chunks(_iter_lines(path)), 1):
        position = f"record {number}"
        if is_complete:
            yield _parse(massbank.parse_record, lines, position)
        elif massbank.is_begun(lines):
            yield Record(position, error=ValueError("the record does not end with //: the file is cut off"))
        else:
            yield Record(position, error=ValueError("this is not a MassBank record"))


def _parse(parse: Callable[[list[str], str], Record], lines: list[str], position: str) -> Record:
    """Return the parsed record, or the error in it: parsers of other libraries raise exceptions of any type."""
    try:
        return parse(lines, position)
    except Exception as error:
        return Record(position, error=ValueError(_shorten(error)))


def _to_record(scan: MatchmsSpectrum, position: str) -> Record:
    return Record(position, scan.peaks.mz, scan.peaks.intensities, dict(scan.metadata))


def _iter_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            yield line.rstrip("\r\n")


def _shorten(error: Exception) -> str:
    """Return the message of an error on one line, or its type if it has none."""
    return " ".join(str(error).split())[:MAX_MESSAGE] or type(error).__name__
