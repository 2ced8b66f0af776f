"""MSP records: lines "KEY: value", then the peaks, which may be annotated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from psilearn_chem._optional import import_matchms_readers
from psilearn_chem.spectra.records import Record, check_number_of_peaks
from psilearn_chem.spectra.text_files import parse_record

TIME_FIELDS = ("retentiontime", "retention_time", "rt", "rettime")
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBERS_ONLY = re.compile(r"[\s\d.,;:()eE+-]*")
_PEAK = re.compile(rf"[\s(]*({NUMBER})[\s,:]+({NUMBER})(?=$|[\s,)]).*")  # m/z, intensity and an annotation
_COMMENT = re.compile(r"\"[^\"]*\"?|'[^']*'?")


def iter_msp(lines: Iterable[str]) -> Iterator[Record]:
    """Yield the records of an MSP file, each of which begins with its name."""
    import_matchms_readers()  # raises an error if matchms is missing
    chunk: list[str] = []
    number = 0
    for line in chain(lines, ["NAME:"]):
        if re.match(r"\s*name\s*:", line, re.IGNORECASE):
            if any(part.strip() for part in chunk):
                number += 1
                yield parse_record(_parse_msp, chunk, f"record {number}")
            chunk = []
        chunk.append(line)


def _parse_msp(lines: list[str], position: str) -> Record:
    """Return the fields and peaks of one MSP record, which must state its number of peaks."""
    from matchms import Spectrum as MatchmsSpectrum
    from matchms.importing.load_from_msp import contains_metadata, parse_metadata

    fields: dict[str, object] = {}
    peaks: list[tuple[float, float]] = []
    for line in lines:
        if not line.strip():
            continue
        if contains_metadata(line) and not _PEAK.fullmatch(line):
            parse_metadata(line, fields)
        else:
            peaks += _parse_peaks(line)
    check_number_of_peaks(fields.pop("num peaks", fields.pop("num_peaks", None)), len(peaks), "Num Peaks")
    table = np.array(sorted(peaks, key=lambda peak: peak[0]), dtype=float).reshape(-1, 2)
    times = [fields.pop(name) for name in TIME_FIELDS if name in fields]  # matchms would remove their unit
    scan = MatchmsSpectrum(table[:, 0], table[:, 1], fields)  # gives the fields common names
    metadata = {**scan.metadata, "retention_time": times[0] if times else None}
    return Record(position, scan.peaks.mz, scan.peaks.intensities, metadata, minutes=True)


def _parse_peaks(line: str) -> list[tuple[float, float]]:
    """Return the peaks of a line: pairs of numbers, or peaks with annotations that semicolons separate."""
    bare = _COMMENT.sub(" ", line)
    numbers = re.findall(NUMBER, bare) if _NUMBERS_ONLY.fullmatch(bare) else []
    if numbers and len(numbers) % 2 == 0:
        values = [float(number) for number in numbers]
        return list(zip(values[::2], values[1::2], strict=True))
    matches = [_PEAK.fullmatch(part) for part in bare.split(";") if part.strip()]
    pairs = [(float(match[1]), float(match[2])) for match in matches if match is not None]
    if not pairs or len(pairs) < len(matches):
        raise ValueError(f"{line.strip()!r} is neither a field nor peaks")
    return pairs
