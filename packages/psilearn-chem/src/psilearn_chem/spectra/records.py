"""Records of spectrum files before they are validated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from numpy.typing import ArrayLike

from psilearn_chem.adduct_spelling import find_adduct_in_name, find_polarity, normalize_adduct
from psilearn_chem.spectra.spectrum import FloatArray, Spectrum

MISSING_VALUES = ("", "n/a", "na", "none", "nan", "null", "unknown", "-", "?")
NAME_FIELDS = ("spectrum_id", "spectrumid", "accession", "id", "title", "feature_id", "compound_name", "name")
OTHER_ADDUCT_FIELDS = ("ion", "ion_type", "adductionname", "precursor_type")  # used if they are an adduct
FEATURE_FIELDS = ("feature_id", "featureid", "feature", "row_id", "cluster_index")
OWN_FIELDS = ("adduct", "formula", "smiles")  # kept as attributes of a spectrum, not in its metadata
MS1 = ("1", "ms", "ms1", "full ms")
SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0}
_TIME = re.compile(r"(?:PT)?([+-]?\d++\.?+\d*+(?:[eE][+-]?\d{1,3})?)\s*+([A-Za-z]*+)\.?")


@dataclass(frozen=True)
class Record:
    """A record of a file, not validated yet, or the error that was raised when it was parsed."""

    position: str  # "record 3", "scan 12", "row 7"
    mz: ArrayLike = ()
    intensity: ArrayLike = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    error: ValueError | None = None
    minutes: bool = False  # whether retention times without a unit are in minutes

    @property
    def is_ms1(self) -> bool:
        """Whether the record states that it is of MS level 1, whose peaks are not fragments."""
        return str(self.metadata.get("ms_level", "")).strip().lower() in MS1

    def to_spectrum(self, default_name: str, default_adduct: str | None) -> Spectrum:
        """Return the spectrum, or raise ``error``; the defaults are used where the record has no name or adduct."""
        if self.error is not None:
            raise self.error
        known = {
            key: text
            for key, value in self.metadata.items()
            if value is not None and (text := str(value).strip()).lower() not in MISSING_VALUES
        }
        known = self._harmonize(known)
        return Spectrum(
            cast(FloatArray, self.mz),  # Spectrum converts it
            cast(FloatArray, self.intensity),
            precursor_mz=_parse_number(known.get("precursor_mz"), "precursor_mz"),
            adduct=known["adduct"] if "adduct" in known else _choose_default(default_adduct, known),
            formula=known.get("formula"),
            smiles=known.get("smiles"),
            name=next((known[key] for key in NAME_FIELDS if key in known), default_name),
            metadata={key: value for key, value in known.items() if key not in OWN_FIELDS},
        )

    def _harmonize(self, known: Mapping[str, str]) -> dict[str, str]:
        """Return the fields with the usual spelling of the adduct, and feature_id, ionmode and retention_time."""
        adduct = _find_adduct(known)
        is_unknown = adduct is not None and "?" in adduct  # [M+?]+: only the polarity is known
        polarity = _find_polarity(known, adduct if is_unknown else None)
        found = {
            "adduct": None if is_unknown else adduct,
            "ionmode": polarity if adduct is None or is_unknown or "ionmode" in known else None,
            "feature_id": next((known[key] for key in FEATURE_FIELDS if key in known), None),
            "retention_time": _to_seconds(known.get("rtinminutes"), 60.0)
            or _to_seconds(known.get("retention_time"), 60.0 if self.minutes else 1.0),
        }
        others = {key: value for key, value in known.items() if key != "adduct"}
        return others | {key: value for key, value in found.items() if value is not None}


def _find_adduct(known: Mapping[str, str]) -> str | None:
    """Return the stated adduct, or the one with which the name ends, in the usual spelling."""
    if "adduct" in known:
        return normalize_adduct(known["adduct"])
    for key in OTHER_ADDUCT_FIELDS:
        if key in known and find_polarity(adduct := normalize_adduct(known[key])) is not None:
            return adduct
    return find_adduct_in_name(known.get("compound_name", ""))


def _choose_default(adduct: str | None, known: Mapping[str, str]) -> str | None:
    """Return the default adduct, unless the record states the other polarity."""
    if adduct is None:
        return None
    normalized = normalize_adduct(adduct)
    return None if {known.get("ionmode"), find_polarity(normalized)} == {"positive", "negative"} else normalized


def _find_polarity(known: Mapping[str, str], adduct: str | None) -> str | None:
    """Return "positive" or "negative" as a record states it, or else by its adduct or the sign of its charge."""
    stated = known.get("ionmode", "").lower()
    for letter, polarity in (("p", "positive"), ("+", "positive"), ("n", "negative"), ("-", "negative")):
        if stated.startswith(letter):
            return polarity
    if adduct is not None and find_polarity(adduct) is not None:
        return find_polarity(adduct)
    charge = known.get("charge", "")
    signed = charge not in ("", "0") and (charge[-1] in "+-" or charge.lstrip("+-").isdigit())
    return ("negative" if "-" in charge else "positive") if signed else None


def _to_seconds(text: str | None, unit: float) -> str | None:
    """Return a time in seconds as text, by its own unit or else the given one; a text without time as it is."""
    match = None if text is None else _TIME.fullmatch(text.strip())
    if match is None or (match[2] and match[2].lower() not in SECONDS):
        return text
    return f"{float(match[1]) * SECONDS.get(match[2].lower(), unit):.10g}"


def _parse_number(text: str | None, name: str) -> float | None:
    """Return the first number of a text; None if there is no text, or for 0, which stands for unknown."""
    if text is None:
        return None
    try:
        value = float(text.split()[0])
    except ValueError as error:
        raise ValueError(f"{name} = {text!r} is not a number") from error
    return value if value else None


ID_FIELDS = ("feature_id", "scans", "scan_number")  # the first that is known identifies a spectrum in its file
TABLE_FIELDS = (*ID_FIELDS, "retention_time")  # the metadata that tables of results contain


def feature_id(spectrum: Spectrum) -> str:
    """Return the file's own identifier of the feature, or else the number of the scan; "" without one."""
    return next((spectrum.metadata[field] for field in ID_FIELDS if spectrum.metadata.get(field)), "")


def retention_seconds(spectrum: Spectrum) -> str:
    """Return the retention time in seconds; "" without one that is a number."""
    try:
        return f"{float(spectrum.metadata.get('retention_time', '')):.6g}"
    except ValueError:
        return ""


def precursor_text(spectrum: Spectrum) -> str:
    """Return the precursor m/z; "" without one."""
    return "" if spectrum.precursor_mz is None else f"{spectrum.precursor_mz:.10g}"
