"""Records of spectrum files in text and XML formats, each parsed on its own.

matchms parses MGF, MSP and mzML, and gives the fields of different formats common names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

from psilearn_chem._optional import import_matchms_readers
from psilearn_chem.spectra import massbank
from psilearn_chem.spectra.msp import iter_msp
from psilearn_chem.spectra.mzml import iter_mzml
from psilearn_chem.spectra.records import Record
from psilearn_chem.spectra.sirius import iter_sirius
from psilearn_chem.spectra.text_files import iter_lines, parse_record


def iter_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, whose format is known by its extension."""
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".mgf": _iter_mgf,
        ".msp": lambda file: iter_msp(iter_lines(file)),
        ".mzml": iter_mzml,
        ".ms": lambda file: iter_sirius(iter_lines(file)),
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
    for line in iter_lines(path):
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
            yield parse_record(_parse_mgf, [*lines, keyword], f"record {number}")
            lines = None
        else:
            lines.append(line)
    if lines is not None:
        yield Record(f"record {number}", error=ValueError("the file ends without END IONS"))


def _parse_mgf(lines: list[str], position: str) -> Record:
    scan = next(iter(import_matchms_readers().load_from_mgf(StringIO("\n".join(lines)))))
    return Record(position, scan.peaks.mz, scan.peaks.intensities, dict(scan.metadata))


def _iter_massbank(path: Path) -> Iterator[Record]:
    """Yield the records of a MassBank file, each of which ends with ``//``."""
    for number, (lines, is_complete) in enumerate(massbank.iter_chunks(iter_lines(path)), 1):
        position = f"record {number}"
        if is_complete:
            yield parse_record(massbank.parse_record, lines, position)
        elif massbank.is_begun(lines):
            yield Record(position, error=ValueError("the record does not end with //: the file is cut off"))
        else:
            yield Record(position, error=ValueError("this is not a MassBank record"))
