"""How spectra were measured: the kind of instrument and the collision energy, as far as their metadata states them.

Two spectra of one molecule are less similar if their instruments or energies differ, so evidence depends on the
relation of the two. It has eight values: the kinds of instruments are the same or not (or unknown), and the energies
are close, not far, far, or not comparable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index
from psilearn_chem.spectra import Spectrum

CLOSE, NOT_FAR = 5.0, 20.0  # largest differences of energies, in eV or percent
N_ENERGY_RELATIONS = 4
N_RELATIONS = 2 * N_ENERGY_RELATIONS
INSTRUMENT_FIELDS = ("instrument_family", "instrument", "instrument_type")
ORBITRAP_WORDS = (  # of instruments and of their types, also of other Fourier transform analyzers
    *("orbitr?ap", "exactive", "exploris", "tribrid", "lumos", r"\bid-?x\b"),
    *(r"(?<![a-z])(?:q|l?it|ltq)?-?ft(?:-?(?:ms|icr))?(?![a-z])", "solarix"),
)
TOF_WORDS = (  # models that are named without their analyzer
    *("tof", "maxis", r"\bimpact\b", r"(?<!software )\bcompact\b(?! mass)", "q-?star", "synapt", r"\bvion\b"),
    *("xevo g[23]", "x500", r"\blct\b"),
    *(r"agilent(?:\W+technologies)?\W+g?65\d\d", r"\bg?65\d\d[a-z]?\W+agilent", r"\bg65\d\d"),
)
KINDS = {"orbitrap": "|".join(ORBITRAP_WORDS), "tof": "|".join(TOF_WORDS)}
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
RELATIVE = re.compile(r"%|nce", re.IGNORECASE)  # energies in percent of a normalized scale


@dataclass(frozen=True)
class Conditions:
    """The conditions of n spectra."""

    instruments: NDArray[np.str_]  # (n,)  "" if unknown
    kinds: NDArray[np.str_]  # (n,)  "orbitrap" (also FT-ICR), "tof" or ""
    energies: NDArray[np.float64]  # (n,)  NaN if unknown
    is_relative: NDArray[np.bool_]  # (n,)  whether the energy is in percent

    @classmethod
    def of(cls, spectra: Sequence[Spectrum]) -> Conditions:
        """Read the metadata of spectra."""
        texts = [" ".join(spectrum.metadata.get(name, "") for name in INSTRUMENT_FIELDS) for spectrum in spectra]
        energies = [spectrum.metadata.get("collision_energy", "") for spectrum in spectra]
        return cls(
            np.array([spectrum.metadata.get("instrument", "") for spectrum in spectra], dtype=np.str_),
            np.array([_find_kind(text) for text in texts], dtype=np.str_),
            np.array([_find_energy(text) for text in energies], dtype=np.float64),
            np.array([RELATIVE.search(text) is not None for text in energies], dtype=bool),
        )

    def __len__(self) -> int:
        return len(self.kinds)

    def take(self, rows: Any) -> Conditions:
        """Return those of some spectra."""
        return Conditions(self.instruments[rows], self.kinds[rows], self.energies[rows], self.is_relative[rows])

    def relate(self, other: Conditions) -> Index:
        """Return the number of the relation of each pair, of shape (spectra, other spectra)."""
        gaps = np.abs(self.energies[:, None] - other.energies)
        comparable = (self.is_relative[:, None] == other.is_relative) & ~np.isnan(gaps)
        energy = np.where(comparable, (gaps > CLOSE).astype(int) + (gaps > NOT_FAR), N_ENERGY_RELATIONS - 1)
        same = (self.kinds[:, None] == other.kinds) & (other.kinds != "")
        return np.asarray(np.where(same, 0, N_ENERGY_RELATIONS) + energy, dtype=np.intp)

    def share_instrument(self, other: Conditions) -> NDArray[np.bool_]:
        """Return whether both spectra of each pair state the same instrument, of shape (spectra, other spectra)."""
        return np.asarray((self.instruments[:, None] == other.instruments) & (other.instruments != ""))

    def to_notes(self) -> dict[str, Any]:
        """Return JSON data; None where an energy is unknown."""
        energies = [None if np.isnan(energy) else float(energy) for energy in self.energies]
        relative = self.is_relative.tolist()
        return {"kinds": self.kinds.tolist(), "energies": energies, "is_relative": relative}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> Conditions:
        """Return the conditions of JSON data; instruments are not kept."""
        kinds = np.array([str(kind) for kind in notes["kinds"]], dtype=np.str_)
        energies = np.array([np.nan if energy is None else float(energy) for energy in notes["energies"]])
        is_relative = np.array(notes["is_relative"], dtype=bool)
        if not kinds.shape == energies.shape == is_relative.shape:
            raise ValueError("its conditions of spectra have different lengths")
        return cls(np.full(len(kinds), "", dtype=np.str_), kinds, energies, is_relative)


def _find_kind(text: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text, re.IGNORECASE)), "")


def _find_energy(text: str) -> float:
    """Return the mean of the numbers of a text such as "20 eV", "35 % (nominal)" or "Ramp 5-60 V"; NaN without one."""
    numbers = [float(number) for number in NUMBER.findall(text)]
    return float(np.mean(numbers)) if numbers else float("nan")
