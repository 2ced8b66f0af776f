"""Scans of mzML files at MS level 2, with their scan number, polarity and retention time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from psilearn_chem._optional import import_matchms_readers
from psilearn_chem.spectra.mzml_check import check_mzml
from psilearn_chem.spectra.records import Record
from psilearn_chem.spectra.text_files import shorten_error

POLARITIES = {"positive scan": "positive", "negative scan": "negative"}
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_SCAN = re.compile(r"(?:^|\s)(?:scan|scanId|spectrum)=(\d{1,18})(?=\s|$)")


def iter_mzml(path: Path) -> Iterator[Record]:
    """Yield the scans of MS level 2; for a damaged file, the last record names the last scan that could be read."""
    import_matchms_readers()  # raises an error if matchms, which brings the parser, is missing
    check_mzml(path)
    position = "the beginning"
    records = _iter_scans(path)
    while True:
        try:
            record = next(records, None)
        except Exception as error:  # of the XML parser or the decoder of arrays: nothing after it can be read
            reason = f"the rest of the file cannot be read ({shorten_error(error)})"
            yield Record(f"after {position}", error=ValueError(reason))
            return
        if record is None:
            return
        position = record.position
        yield record


def _iter_scans(path: Path) -> Iterator[Record]:
    from pyteomics.mzml import read

    with read(str(path), dtype=dict) as scans:
        for scan in scans:
            if scan.get("ms level") == 2:
                yield _to_record(scan)


def _to_record(scan: Mapping[str, Any]) -> Record:
    from matchms.importing.parsing_utils import find_by_key, parse_mzml_mzxml_metadata

    fields = {name: value for name, value in parse_mzml_mzxml_metadata(scan).items() if not isinstance(value, list)}
    number = _find_scan_number(scan)
    fields["scan_number"] = number
    fields["ionmode"] = next((POLARITIES[name] for name in POLARITIES if name in scan), None)
    fields["retention_time"] = _find_seconds(next(find_by_key(dict(scan), "scan start time"), None))
    fields["collision_energy"] = next(find_by_key(dict(scan), "collision energy"), None)
    return Record(f"scan {number}", scan["m/z array"], scan["intensity array"], fields)


def _find_scan_number(scan: Mapping[str, Any]) -> str:
    """Return the number in the identifier of a scan; without one, the identifier or the place in the file."""
    identifier = " ".join(str(scan.get("id", "")).split())
    match = _SCAN.search(identifier)
    return match[1] if match else identifier[:100] or str(scan.get("index", "?"))


def _find_seconds(time: Any) -> float | None:
    """Return a time in seconds; without a unit, it is in minutes."""
    return None if time is None else float(time) * SECONDS.get(str(getattr(time, "unit_info", "minute")), 60.0)
