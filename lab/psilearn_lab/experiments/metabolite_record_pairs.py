"""Single records of molecules: their similarities within each formula, and the pairs of two merged spectra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from psilearn.utils import Index
from psilearn_chem import Cleaning, Spectrum
from psilearn_chem.metabolites.reference_evidence import Conditions, FormulaRecords, Pairs
from psilearn_chem.metabolites.second_stage import spectral_similarity
from psilearn_lab.experiments.experiment import Array


@dataclass
class RecordPairs:
    """Records, added molecule by molecule, and which of them each merged spectrum consists of."""

    records: list[Spectrum] = field(default_factory=list)
    molecules: list[int] = field(default_factory=list)  # of the records
    formulas: list[str] = field(default_factory=list)  # of the records
    of_spectrum: dict[int, Index] = field(default_factory=dict)  # number of a merged spectrum → its records

    def add(self, molecule: int, formula: str, records: Sequence[Spectrum]) -> Index:
        """Add the records of a molecule, and return their numbers."""
        numbers = len(self.records) + np.arange(len(records))
        clean = Cleaning(min_peaks=1)
        self.records += [clean(record) for record in records]
        self.molecules += [molecule] * len(records)
        self.formulas += [formula] * len(records)
        return numbers

    def compare(self) -> ComparedRecords:
        """Return the records with their similarities."""
        conditions, molecules = Conditions.of(self.records), np.array(self.molecules, dtype=np.intp)
        rows: dict[str, list[int]] = {}
        for i, formula in enumerate(self.formulas):
            rows.setdefault(formula, []).append(i)
        place, parts = np.zeros(len(self.records), dtype=np.intp), {}
        for formula, numbers in rows.items():
            place[numbers] = np.arange(len(numbers))
            spectra = [self.records[i] for i in numbers]
            similarity = spectral_similarity(spectra, spectra)
            parts[formula] = FormulaRecords(molecules[numbers], similarity, conditions.take(numbers))
        return ComparedRecords(parts, np.array(self.formulas), place, self.of_spectrum)


@dataclass(frozen=True)
class ComparedRecords:
    """The similarities of records of the same formula."""

    parts: dict[str, FormulaRecords]
    formulas: Array  # (records,)  text
    place: Index  # (records,)  position among the records of the formula
    of_spectrum: dict[int, Index]

    def pairs(self, query: int, references: Sequence[int]) -> Pairs | None:
        """Return the pairs of records of two merged spectra; None if they are not of the same formula."""
        left = self.of_spectrum.get(query, np.empty(0, dtype=np.intp))
        right = [self.of_spectrum.get(number, np.empty(0, dtype=np.intp)) for number in references]
        right = [part for part in right if len(part) and len(left) and self.formulas[part[0]] == self.formulas[left[0]]]
        if not right:
            return None
        records = self.parts[self.formulas[left[0]]]
        rows, columns = self.place[left], self.place[np.concatenate(right)]
        relation = records.conditions.take(rows).relate(records.conditions.take(columns))
        return Pairs(records.similarity[np.ix_(rows, columns)], relation)

    def of_molecules(self, molecules: Index) -> Iterator[FormulaRecords]:
        """Yield the records of some molecules, formula by formula."""
        for part in self.parts.values():
            chosen = np.flatnonzero(np.isin(part.molecules, molecules))
            similarity = part.similarity[np.ix_(chosen, chosen)]
            yield FormulaRecords(part.molecules[chosen], similarity, part.conditions.take(chosen))
