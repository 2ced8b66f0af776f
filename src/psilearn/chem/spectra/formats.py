"""Text and XML formats of spectra, cut into records; matchms reads the fields of each and gives them common names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from psilearn.chem.spectra.spectrum import Spectrum

MISSING = "Reading .mgf, .msp and .mzml files needs matchms: pip install 'psilearn[chem]'."
UNKNOWN = ("", "n/a", "na", "none", "nan", "null", "unknown", "-", "?")
IDENTIFIERS = ("spectrum_id", "spectrumid", "accession", "id", "title", "feature_id", "compound_name", "name")


@dataclass(frozen=True)
class Record:
    """One record of a file, not yet checked; ``fault`` where it could not even be taken apart."""

    where: str  # "record 3", "scan 12", "row 7"
    mz: Any = ()
    intensity: Any = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    fault: Exception | None = None

    def spectrum(self, name: str, adduct: str | None) -> Spectrum:
        """Return the spectrum, called by its own identifier or else by ``name``."""
        known = {
            key: str(value).strip()
            for key, value in self.metadata.items()
            if value is not None and str(value).strip().lower() not in UNKNOWN
        }
        own = next((known[key] for key in IDENTIFIERS if key in known), name)
        return Spectrum(
            self.mz,
            self.intensity,
            precursor_mz=_number(known.get("precursor_mz"), "precursor_mz"),
            adduct=known.get("adduct", adduct),
            formula=known.get("formula"),
            smiles=known.get("smiles"),
            name=own,
            more={key: value for key, value in known.items() if key not in ("adduct", "formula", "smiles")},
        )


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, known by its ending."""
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".mgf": _mgf,
        ".msp": _msp,
        ".mzml": _mzml,
        ".txt": _massbank,
        ".massbank": _massbank,
    }
    if path.suffix.lower() not in readers:
        known = ", ".join([*readers, ".parquet"])
        raise ValueError(f"{path.name} ends in {path.suffix!r}; spectra are read from files that end in {known}.")
    return readers[path.suffix.lower()](path)


def _mgf(path: Path) -> Iterator[Record]:
    """Yield BEGIN IONS … END IONS, each read by matchms."""
    from_mgf = _matchms("load_from_mgf")
    number = 0
    lines: list[str] | None = None
    for line in _lines(path):
        if line.strip().upper() == "BEGIN IONS":
            if lines is not None:
                yield Record(f"record {number}", fault=ValueError("BEGIN IONS without END IONS"))
            number, lines = number + 1, []
        if lines is not None:
            lines.append(line.upper() if line.strip().upper() in ("BEGIN IONS", "END IONS") else line)
        elif line.strip() and not re.match(r"[#;!/]|\w+=", line.strip()):
            yield Record(f"after record {number}", fault=ValueError(f"{line.strip()!r} stands outside of any record"))
        if line.strip().upper() == "END IONS" and lines is not None:
            yield _attempt(f"record {number}", partial(_mgf_record, "\n".join(lines), from_mgf))
            lines = None
    if lines is not None:
        yield Record(f"record {number}", fault=ValueError("the file ends without END IONS"))


def _mgf_record(text: str, from_mgf: Callable[[StringIO], Iterator[Any]]) -> Any:
    return next(iter(from_mgf(StringIO(text))))


def _msp(path: Path) -> Iterator[Record]:
    """Yield the records, each of which begins with its name; the stated number of peaks must be there."""
    _matchms("load_from_msp")  # says what to install
    chunk: list[str] = []
    number = 0
    for line in [*_lines(path), "NAME:"]:
        if re.match(r"\s*name\s*:", line, re.IGNORECASE):
            if any(part.strip() for part in chunk):
                number += 1
                yield _attempt(f"record {number}", partial(_msp_record, chunk))
            chunk = []
        chunk.append(line)


def _msp_record(lines: list[str]) -> Any:
    from matchms import Spectrum as Parsed
    from matchms.importing.load_from_msp import contains_metadata, get_peak_comment, get_peak_values, parse_metadata

    fields: dict[str, Any] = {}
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
        some = get_peak_values(peaks)
        mz += some[0]
        intensity += some[1]
    stated = fields.pop("num peaks", fields.pop("num_peaks", None))
    if stated is None or not str(stated).isdigit() or int(stated) != len(mz):
        raise ValueError(f"Num Peaks says {stated}, but {len(mz)} peaks are there")
    order = np.argsort(mz, kind="stable")
    return Parsed(np.array(mz, dtype=float)[order], np.array(intensity, dtype=float)[order], fields)


def _mzml(path: Path) -> Iterator[Record]:
    """Yield the scans of MS level 2. A broken file is named with the last scan that could be read."""
    scans = _matchms("load_from_mzml")(str(path))
    last = "the beginning"
    while True:
        try:
            parsed = next(scans, None)
        except Exception as error:  # of the XML parser or the decoder of arrays: nothing after it can be read
            yield Record(f"after {last}", fault=ValueError(f"the rest of the file cannot be read ({_brief(error)})"))
            return
        if parsed is None:
            return
        number = parsed.metadata.get("scan_number", parsed.metadata.get("scans"))
        last = f"scan {number}"
        yield _record(last, parsed)


def _massbank(path: Path) -> Iterator[Record]:
    """Yield MassBank records: fields "KEY: value", then PK$PEAK with lines of m/z, intensity and relative intensity."""
    chunk: list[str] = []
    number = 0
    for line in _lines(path):
        if line.strip() == "//":
            number += 1
            yield _attempt(f"record {number}", partial(_massbank_record, chunk))
            chunk = []
        else:
            chunk.append(line)
    if any(line.strip() for line in chunk):
        begun = any(line.startswith("ACCESSION:") for line in chunk)
        why = "the record does not end with //: the file is cut off" if begun else "this is no MassBank record"
        yield Record(f"record {number + 1}", fault=ValueError(why))


_MASSBANK_FIELDS = {
    "ACCESSION": "accession",
    "CH$FORMULA": "formula",
    "CH$SMILES": "smiles",
    "CH$NAME": "compound_name",
    "LICENSE": "license",
    "MS$FOCUSED_ION: PRECURSOR_M/Z": "precursor_mz",
    "MS$FOCUSED_ION: PRECURSOR_TYPE": "adduct",
    "AC$MASS_SPECTROMETRY: MS_TYPE": "ms_type",
}


def _massbank_record(lines: list[str]) -> Record:
    fields: dict[str, Any] = {}
    stated: str | None = None
    peaks: list[list[str]] | None = None
    for line in lines:
        if line.startswith("PK$NUM_PEAK:"):
            stated = line.split(":", 1)[1].strip()
        elif line.startswith("PK$PEAK:"):
            peaks = []
        elif peaks is not None and line.startswith("  "):
            peaks.append(line.split())
        else:
            key, _, value = line.partition(": ")
            if key in ("MS$FOCUSED_ION", "AC$MASS_SPECTROMETRY"):
                kind, _, value = value.partition(" ")
                key = f"{key}: {kind}"
            if key in _MASSBANK_FIELDS:
                fields.setdefault(_MASSBANK_FIELDS[key], value.strip())
    if "accession" not in fields or peaks is None:
        raise ValueError("this is no MassBank record: ACCESSION or PK$PEAK is missing")
    if fields.get("ms_type", "MS2") not in ("MS2", "MS/MS"):
        raise ValueError(f"{fields['accession']} is of type {fields['ms_type']}, not MS2")
    if stated is None or not stated.isdigit() or int(stated) != len(peaks):
        raise ValueError(f"PK$NUM_PEAK says {stated}, but {len(peaks)} peaks are there")
    if any(len(peak) < 2 for peak in peaks):
        raise ValueError("a line of PK$PEAK has no intensity")
    return Record("", [peak[0] for peak in peaks], [peak[1] for peak in peaks], fields)


def _attempt(where: str, read: Callable[[], Any]) -> Record:
    """Return the record that ``read`` makes, or what went wrong; parsers of text raise whatever they like."""
    try:
        return _record(where, read())
    except Exception as error:
        return Record(where, fault=ValueError(_brief(error)))


def _record(where: str, made: Any) -> Record:
    if isinstance(made, Record):
        return Record(where, made.mz, made.intensity, made.metadata)
    return Record(where, made.peaks.mz, made.peaks.intensities, dict(made.metadata))


def _matchms(reader: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of codecs for formats that are not read here
            from matchms import importing
    except ImportError as error:
        raise ImportError(MISSING) from error
    return getattr(importing, reader)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            yield line.rstrip("\r\n")


def _number(text: str | None, name: str) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.split()[0])
    except ValueError as error:
        raise ValueError(f"{name} = {text!r} is not a number") from error
    return value if value else None  # 0 stands for unknown


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
