"""Records of spectrum files before they are validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from numpy.typing import ArrayLike

from psilearn.chem.spectra.spectrum import FloatArray, Spectrum

MISSING_VALUES = ("", "n/a", "na", "none", "nan", "null", "unknown", "-", "?")
NAME_FIELDS = ("spectrum_id", "spectrumid", "accession", "id", "title", "feature_id", "compound_name", "name")
OWN_FIELDS = ("adduct", "formula", "smiles")  # kept as attributes of a spectrum, not in its metadata


@dataclass(frozen=True)
class Record:
    """A record of a file, not validated yet, or the error that was raised when it was parsed."""

    position: str  # "record 3", "scan 12", "row 7"
    mz: ArrayLike = ()
    intensity: ArrayLike = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    error: ValueError | None = None

    def to_spectrum(self, default_name: str, default_adduct: str | None) -> Spectrum:
        """Return the spectrum, or raise ``error``; the defaults are used where the record has no name or adduct."""
        if self.error is not None:
            raise self.error
        known = {
            key: text
            for key, value in self.metadata.items()
            if value is not None and (text := str(value).strip()).lower() not in MISSING_VALUES
        }
        return Spectrum(
            cast(FloatArray, self.mz),  # Spectrum converts it
            cast(FloatArray, self.intensity),
            precursor_mz=_parse_number(known.get("precursor_mz"), "precursor_mz"),
            adduct=known.get("adduct", default_adduct),
            formula=known.get("formula"),
            smiles=known.get("smiles"),
            name=next((known[key] for key in NAME_FIELDS if key in known), default_name),
            metadata={key: value for key, value in known.items() if key not in OWN_FIELDS},
        )


def check_number_of_peaks(stated: object, n_peaks: int, field: str) -> None:
    """Raise an error if a record states another number of peaks than it has, or none."""
    if not str(stated).isdigit() or int(str(stated)) != n_peaks:
        raise ValueError(f"{field} is {stated}, but the record has {n_peaks} peaks")


def _parse_number(text: str | None, name: str) -> float | None:
    """Return the first number of a text; None if there is no text, or for 0, which stands for unknown."""
    if text is None:
        return None
    try:
        value = float(text.split()[0])
    except ValueError as error:
        raise ValueError(f"{name} = {text!r} is not a number") from error
    return value if value else None
