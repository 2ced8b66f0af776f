"""Separate measurements of molecules: merged spectra of some of their records, and single records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from psilearn.utils import Index
from psilearn_chem import Cleaning, Spectrum, merge_spectra
from psilearn_lab.experiments.metabolite_record_pairs import RecordPairs

NO_SPECTRUM = -1


@dataclass
class Measurements:
    """The merged spectra of n molecules, followed by further spectra of them, and the numbers of these spectra."""

    spectra: list[Spectrum]
    reference: Index  # (n,)  merged records of all instruments but one; −1 if there is one instrument only
    query: Index  # (n,)  merged records of the other instrument; −1 likewise
    single: (
        Index  # (n,)  one record, of that instrument if there are several; the merged spectrum if it is the only one
    )
    records: RecordPairs = field(default_factory=RecordPairs)

    @classmethod
    def of(cls, merged: Sequence[Spectrum], by_molecule: Sequence[Sequence[Spectrum]], seed: int) -> Measurements:
        """Draw an instrument of each molecule that was measured on several, and one record of each molecule."""
        n = len(merged)
        found = cls([*merged], np.full(n, NO_SPECTRUM), np.full(n, NO_SPECTRUM), np.arange(n))
        instruments, singles = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        for molecule, records in enumerate(by_molecule):
            numbers = found.records.add(molecule, str(merged[molecule].formula), records)
            found.records.of_spectrum[molecule] = numbers
            is_query = _draw_instrument(records, instruments)
            if is_query is not None:
                found.reference[molecule] = found._append(records, numbers, np.flatnonzero(~is_query))
                found.query[molecule] = found.single[molecule] = found._append(
                    records, numbers, np.flatnonzero(is_query)
                )
            chosen = np.arange(len(records)) if is_query is None else np.flatnonzero(is_query)
            if len(chosen) > 1:
                found.single[molecule] = found._append(records, numbers, singles.choice(chosen, 1))
        return found

    def _append(self, records: Sequence[Spectrum], numbers: Index, chosen: Index) -> int:
        """Append the merged spectrum of some records of a molecule, and return its number."""
        self.records.of_spectrum[len(self.spectra)] = numbers[chosen]
        self.spectra.append(Cleaning(min_peaks=1)(merge_spectra([records[int(k)] for k in chosen])))
        return len(self.spectra) - 1


def _draw_instrument(records: Sequence[Spectrum], rng: np.random.Generator) -> npt.NDArray[np.bool_] | None:
    """Return which records are of an instrument that is drawn at random; None for a single instrument."""
    names = np.array([record.metadata.get("instrument", "") for record in records])
    instruments = np.unique(names)
    return None if len(instruments) < 2 else names == instruments[rng.integers(len(instruments))]
