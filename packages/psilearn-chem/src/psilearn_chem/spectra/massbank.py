"""MassBank records: lines "KEY: value", then PK$PEAK with lines of m/z, intensity and relative intensity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psilearn_chem.spectra.records import Record, check_number_of_peaks

FIELDS = {
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
KEYS_WITH_SUBKEY = ("MS$FOCUSED_ION", "AC$MASS_SPECTROMETRY", "AC$CHROMATOGRAPHY")


def iter_chunks(lines: Iterable[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield the lines of each record, and whether it ends with ``//``; blank lines at the end are ignored."""
    chunk: list[str] = []
    for line in lines:
        if line.strip() == "//":
            yield chunk, True
            chunk = []
        else:
            chunk.append(line)
    if any(line.strip() for line in chunk):
        yield chunk, False


def parse_record(lines: list[str], position: str) -> Record:
    """Return the fields and peaks of a complete record of type MS2, or of type MS, which is not a fragment spectrum."""
    fields = _parse_fields(lines)
    peaks = _parse_peaks(lines)
    if "accession" not in fields or peaks is None:
        raise ValueError("this is not a MassBank record: ACCESSION or PK$PEAK is missing")
    if fields.get("ms_level", "MS2") not in ("MS2", "MS/MS", "MS"):
        raise ValueError(f"{fields['accession']} is of type {fields['ms_level']}, not MS2")
    check_number_of_peaks(fields.pop("num_peak", None), len(peaks), "PK$NUM_PEAK")
    if any(len(peak) < 2 for peak in peaks):
        raise ValueError("a line of PK$PEAK has no intensity")
    return Record(position, [peak[0] for peak in peaks], [peak[1] for peak in peaks], fields, minutes=True)


def is_begun(lines: list[str]) -> bool:
    """Return whether lines contain the beginning of a record."""
    return any(line.startswith("ACCESSION:") for line in lines)


def _parse_fields(lines: list[str]) -> dict[str, str]:
    """Return the known fields; of a repeated one, the first value."""
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        if key in KEYS_WITH_SUBKEY:
            subkey, _, value = value.strip().partition(" ")
            key = f"{key}: {subkey}"
        if key in FIELDS:
            fields.setdefault(FIELDS[key], value.strip())
    return fields


def _parse_peaks(lines: list[str]) -> list[list[str]] | None:
    """Return the columns of each indented line after PK$PEAK; None if there is no PK$PEAK."""
    start = next((i for i, line in enumerate(lines) if line.startswith("PK$PEAK:")), None)
    return None if start is None else [line.split() for line in lines[start + 1 :] if line.startswith("  ")]
