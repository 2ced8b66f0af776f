"""Records of spectrum files in text formats (MGF, MSP, SIRIUS and MassBank), each parsed on its own.

matchms parses the fields of MGF and gives those of MGF and MSP common names.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path
from types import ModuleType

import numpy as np

from psilearn_chem.spectra.records import Record
from psilearn_chem.untrusted_files import open_text

MAX_LINE = 2**20  # characters
MAX_RECORD = 2**21  # characters: 100,000 peaks of 20; parsing takes up to 40 times as many bytes
MAX_MESSAGE = 200  # characters of an error of another library that are shown
NUMBER = r"[+-]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+"  # linear time
MSP_NAME = re.compile(r"\s*name\s*:", re.IGNORECASE)
MSP_TIMES = ("retentiontime", "retention_time", "rt", "rettime")
MASSBANK_FIELDS = {
    "ACCESSION": "accession",
    "CH$FORMULA": "formula",
    "CH$SMILES": "smiles",
    "CH$NAME": "compound_name",
    "LICENSE": "license",
    "MS$FOCUSED_ION: PRECURSOR_M/Z": "precursor_mz",
    "MS$FOCUSED_ION: PRECURSOR_TYPE": "adduct",
    "AC$INSTRUMENT": "instrument",
    "AC$INSTRUMENT_TYPE": "instrument_type",
    "AC$MASS_SPECTROMETRY: MS_TYPE": "ms_level",
    "AC$MASS_SPECTROMETRY: ION_MODE": "ionmode",
    "AC$MASS_SPECTROMETRY: COLLISION_ENERGY": "collision_energy",
    "AC$CHROMATOGRAPHY: RETENTION_TIME": "retention_time",
    "PK$NUM_PEAK": "num_peak",
}
MASSBANK_SUBKEYS = ("MS$FOCUSED_ION", "AC$MASS_SPECTROMETRY", "AC$CHROMATOGRAPHY")
SIRIUS_FIELDS = {
    "compound": "compound_name",
    "parentmass": "precursor_mz",
    "ionization": "adduct",
    "ion": "adduct",
    "rt": "retention_time",
    "instrumentation": "instrument",
    "featureid": "feature_id",
}
SIRIUS_MS1 = ("ms1", "ms1merged", "ms1peaks")
SIRIUS_ENERGIES = ("collision", "ramp")
SIRIUS_MS2 = ("ms2", "ms2merged", "ms2peaks", *SIRIUS_ENERGIES)
BEGINNINGS = {  # or ends of records
    ".mgf": re.compile(rb"\s*BEGIN IONS", re.IGNORECASE),
    ".msp": re.compile(rb"\s*NAME\s*:", re.IGNORECASE),
    ".ms": re.compile(rb"\s*>(?:ms2|collision|ramp)", re.IGNORECASE),
    ".txt": re.compile(rb"//\s*$"),
    ".massbank": re.compile(rb"//\s*$"),
}
_NUMBERS_ONLY = re.compile(r"[\s\d.,;:()eE+-]*")
_PEAK = re.compile(rf"[\s(]*+({NUMBER})[\s,:]++({NUMBER})(?=$|[\s,)]).*")  # m/z, intensity and an annotation
_COMMENT = re.compile(r"\"[^\"]*\"?|'[^']*'?")
_COMMENT_FIELD = re.compile(  # "key=value", key="value" or key=number; begins at words only, else in quadratic time
    r'"([^"=]++)=([^"]++)"|(?<![^\s"=])([^\s"=]++)=(?:"([^"]++)"|(\d++(?:\.\d*+)?+))'
)


def count_records(path: Path) -> int | None:
    """Return how many records a text file has, those of MS level 1 included; None for other formats and no file."""
    beginning = BEGINNINGS.get(path.suffix.lower())
    if beginning is None or not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(beginning.match(line) is not None for line in file)


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file; raise a ValueError for one that is too long to be of a spectrum."""
    with open_text(path) as file:
        while line := file.readline(MAX_LINE):
            if len(line) == MAX_LINE:
                raise ValueError(f"a line has {MAX_LINE:,} characters or more")
            yield line.rstrip("\r\n")


def shorten_error(error: Exception) -> str:
    """Return the message of an error on one line, or its type if it has none."""
    return " ".join(str(error).split())[:MAX_MESSAGE] or type(error).__name__


class _Chunk:
    """The lines of a record; those beyond the largest size are not kept."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.size = 0

    def add(self, line: str) -> None:
        self.size += len(line) + 1
        if self.size <= MAX_RECORD:
            self.lines.append(line)

    def parse(self, parser: Callable[[list[str], str], Iterable[Record]], position: str) -> Iterator[Record]:
        """Yield the parsed records, or the error in them: parsers of other libraries raise exceptions of any type."""
        try:
            if self.size > MAX_RECORD:
                raise ValueError(f"it has more than {MAX_RECORD:,} characters")
            yield from parser(self.lines, position)
        except Exception as error:
            yield Record(position, error=ValueError(shorten_error(error)))


@cache
def import_matchms() -> ModuleType:
    """Return matchms, which otherwise warns about formats that are not read here and logs to the standard output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        import matchms.importing
    logger = logging.getLogger("matchms")
    for handler in list(logger.handlers):
        if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.__stdout__):
            logger.removeHandler(handler)
    logger.addHandler(logging.NullHandler())  # else warnings go to stderr, unless the application logs
    return matchms


def iter_mgf(path: Path) -> Iterator[Record]:
    """Yield the records of an MGF file, which stand between BEGIN IONS and END IONS."""
    number = 0
    chunk: _Chunk | None = None  # the record that is being read
    is_reported = False  # whether a line after the last record is an error, which is reported once
    for line in iter_lines(path):
        keyword = line.strip().upper()
        if keyword == "BEGIN IONS":
            if chunk is not None:
                yield Record(f"record {number}", error=ValueError("BEGIN IONS without END IONS"))
            number, chunk, is_reported = number + 1, _Chunk(keyword), False
        elif chunk is None:
            if keyword and not is_reported and not re.match(r"[#;!/]|\w+=", keyword):
                is_reported = True
                error = ValueError(f"{line.strip()[:MAX_MESSAGE]!r} stands outside of any record")
                yield Record(f"after record {number}", error=error)
        elif keyword == "END IONS":
            chunk.lines.append(keyword)
            yield from chunk.parse(_parse_mgf, f"record {number}")
            chunk = None
        else:
            chunk.add(line)
    if chunk is not None:
        yield Record(f"record {number}", error=ValueError("the file ends without END IONS"))


def _parse_mgf(lines: list[str], position: str) -> Iterator[Record]:
    """Yield one MGF record: matchms reads the lines with =; it needs over a kilobyte per line of a peak."""
    fields = [line for line in lines if "=" in line]
    text = StringIO("\n".join(["BEGIN IONS", *fields, "END IONS"]))
    scan = next(iter(import_matchms().importing.load_from_mgf(text)))
    peaks = [line for line in lines[1:-1] if line.strip() and "=" not in line and line[0] not in "#;!/"]
    try:
        table = np.loadtxt(peaks, comments=None, usecols=(0, 1), ndmin=2) if peaks else np.empty((0, 2))
    except ValueError as error:
        raise ValueError(f"error when parsing peaks: {error}") from error
    yield Record(position, table[:, 0], table[:, 1], dict(scan.metadata))


def iter_msp(path: Path) -> Iterator[Record]:
    """Yield the records of an MSP file: lines "KEY: value", of which the first is the name, then the peaks."""
    chunk = _Chunk()
    number = 0
    for line in chain(iter_lines(path), ["NAME:"]):
        if MSP_NAME.match(line):
            if any(part.strip() for part in chunk.lines):
                number += 1
                yield from chunk.parse(_parse_msp, f"record {number}")
            chunk = _Chunk()
        chunk.add(line)


def _parse_msp(lines: list[str], position: str) -> Iterator[Record]:
    """Yield the fields and peaks of one MSP record, which must state its number of peaks."""
    matchms = import_matchms()
    from matchms.importing.load_from_msp import contains_metadata, parse_metadata

    fields: dict[str, object] = {}
    peaks: list[tuple[float, float]] = []
    for line in lines:
        if not line.strip():
            continue
        if contains_metadata(line) and not _PEAK.fullmatch(line):
            key, _, value = line.partition(":")
            if key.strip().lower() == "comments" and "=" in value:
                _add_msp_comments(value, fields)
            else:
                parse_metadata(line, fields)
        else:
            peaks += _parse_msp_peaks(line)
    _check_number_of_peaks(fields.pop("num peaks", fields.pop("num_peaks", None)), len(peaks), "Num Peaks")
    table = np.array(sorted(peaks, key=lambda peak: peak[0]), dtype=float).reshape(-1, 2)
    times = [fields.pop(name) for name in MSP_TIMES if name in fields]  # matchms would remove their unit
    scan = matchms.Spectrum(table[:, 0], table[:, 1], fields)  # gives the fields common names
    metadata = {**scan.metadata, "retention_time": times[0] if times else None}
    yield Record(position, scan.peaks.mz, scan.peaks.intensities, metadata, minutes=True)


def _add_msp_comments(text: str, fields: dict[str, object]) -> None:
    """Add the fields of a line of comments; a SMILES among them does not replace one that is known."""
    for found in _COMMENT_FIELD.findall(text.replace("'", '"')):
        key, value = (part.strip() for part in found if part)
        key = key.lower()
        fields["smiles_2" if key == "smiles" and key in fields else key] = value


def _parse_msp_peaks(line: str) -> list[tuple[float, float]]:
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


def iter_massbank(path: Path) -> Iterator[Record]:
    """Yield the records of a MassBank file, each of which ends with ``//``."""
    chunk, number = _Chunk(), 1
    for line in iter_lines(path):
        if line.strip() == "//":
            yield from chunk.parse(_parse_massbank, f"record {number}")
            chunk, number = _Chunk(), number + 1
        else:
            chunk.add(line)
    if any(line.startswith("ACCESSION:") for line in chunk.lines):
        yield Record(f"record {number}", error=ValueError("the record does not end with //: the file is cut off"))
    elif any(line.strip() for line in chunk.lines):
        yield Record(f"record {number}", error=ValueError("this is not a MassBank record"))


def _parse_massbank(lines: list[str], position: str) -> Iterator[Record]:
    """Yield the first value of each known field and the lines after PK$PEAK, of a record of MS level 1 or 2."""
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        if key in MASSBANK_SUBKEYS:
            subkey, _, value = value.strip().partition(" ")
            key = f"{key}: {subkey}"
        if key in MASSBANK_FIELDS:
            fields.setdefault(MASSBANK_FIELDS[key], value.strip())
    start = next((i for i, line in enumerate(lines) if line.startswith("PK$PEAK:")), None)
    if "accession" not in fields or start is None:
        raise ValueError("this is not a MassBank record: ACCESSION or PK$PEAK is missing")
    if fields.get("ms_level", "MS2") not in ("MS2", "MS/MS", "MS"):
        raise ValueError(f"{fields['accession']} is of type {fields['ms_level']}, not MS2")
    peaks = [line.split(maxsplit=2)[:2] for line in lines[start + 1 :] if line.startswith("  ")]
    _check_number_of_peaks(fields.pop("num_peak", None), len(peaks), "PK$NUM_PEAK")
    if any(len(peak) < 2 for peak in peaks):
        raise ValueError("a line of PK$PEAK has no intensity")
    yield Record(position, [peak[0] for peak in peaks], [peak[1] for peak in peaks], fields, minutes=True)


def _check_number_of_peaks(stated: object, n_peaks: int, field: str) -> None:
    """Raise an error if a record states another number of peaks than it has, or none."""
    if not str(stated).isdigit() or int(str(stated)) != n_peaks:
        raise ValueError(f"{field} is {stated}, but the record has {n_peaks} peaks")


def iter_sirius(path: Path) -> Iterator[Record]:
    """Yield one record per block of peaks at MS level 2 of a SIRIUS file; a compound without one yields an error."""
    chunk, number = _Chunk(), 0
    for line in iter_lines(path):
        if line.strip().lower().removeprefix(">").partition(" ")[0] == "compound" and line.strip().startswith(">"):
            yield from chunk.parse(_parse_sirius, f"compound {number}")
            chunk, number = _Chunk(), number + 1
        chunk.add(line)
    yield from chunk.parse(_parse_sirius, f"compound {number}")


def _parse_sirius(lines: list[str], position: str) -> Iterator[Record]:
    """Yield the blocks of a compound: lines ">key value", and blocks of peaks at MS level 1, left out, and 2."""
    fields: dict[str, object] = {}
    blocks: list[tuple[dict[str, object], list[list[str]]]] = []  # fields and peaks at MS level 2
    peaks: list[list[str]] | None = None  # of the block that is being read
    for line in map(str.strip, lines):
        key, _, value = line.removeprefix(">").partition(" ")
        key = key.lower()
        if not line.startswith(">"):
            if line and not line.startswith("#"):
                _add_sirius_peak(line, peaks)
        elif key in SIRIUS_MS1:
            peaks = []
        elif key in SIRIUS_MS2:
            peaks = []
            blocks.append(({"collision_energy": value.strip()} if key in SIRIUS_ENERGIES else {}, peaks))
        elif key:
            fields.setdefault(SIRIUS_FIELDS.get(key, key), value.strip())
    blocks = [block for block in blocks if block[1]]
    if not blocks and position != "compound 0":  # what stands before the first compound
        raise ValueError("it has no peaks at MS level 2, after >ms2 or >collision")
    for i, (own, peaks) in enumerate(blocks, 1):
        where = position if len(blocks) == 1 else f"{position}, block {i}"
        yield Record(where, [peak[0] for peak in peaks], [peak[1] for peak in peaks], {**fields, **own})


def _add_sirius_peak(line: str, peaks: list[list[str]] | None) -> None:
    columns = line.split(maxsplit=2)
    if peaks is None or len(columns) < 2:
        reason = "stands outside of any block of peaks" if peaks is None else "has no intensity"
        raise ValueError(f"{line!r:.80} {reason}")
    peaks.append(columns[:2])
