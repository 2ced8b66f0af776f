"""Spectra as sparse vectors with one entry per formula by which peaks are explained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn.utils import Index, Samples, validation
from psilearn_chem.molecules.subformulas import PeakAnnotation, annotate_peaks
from psilearn_chem.spectra.spectrum import Spectrum
from psilearn_chem.spectrum_memory import remember

FORMULAS = ("fragments", "losses")


class FormulaEntries(NamedTuple):
    """The entries of the vectors of several spectra: each formula of a spectrum once."""

    owner: Index  # (N,)  number of the spectrum, ascending
    key: NDArray[np.uint64]  # (N,)  equal for equal formulas
    weight: NDArray[np.float64]  # (N,)

    def as_matrix(self, n_spectra: int, keys: NDArray[np.uint64]) -> sparse.csr_matrix:
        """Return the vectors as rows of shape (n_spectra, len(keys)); formulas that have no column are left out."""
        order = np.argsort(keys)
        places = np.searchsorted(keys, self.key, sorter=order)
        columns = order[np.minimum(places, len(keys) - 1)] if len(keys) else places
        known = keys[columns] == self.key if len(keys) else np.zeros(len(places), dtype=bool)
        entries = self.weight[known], (self.owner[known], columns[known])
        return sparse.csr_matrix(entries, shape=(n_spectra, len(keys)))


class FormulaOptions(NamedTuple):
    """Which formulas are counted, how intensities weight them, and the tolerance within which peaks are explained."""

    of: str
    power: float
    ppm: float
    floor: float

    def check(self, owner: str) -> FormulaOptions:
        """Raise an error that names the parameter of ``owner`` if a value is not valid."""
        validation.check_option(self.of, FORMULAS, f"of of {owner}")
        validation.check_non_negative(self.power, f"power of {owner}")
        validation.check_positive(self.ppm, f"ppm of {owner}")
        validation.check_non_negative(self.floor, f"floor of {owner}")
        return self

    def annotate(self, spectrum: Spectrum) -> PeakAnnotation:
        """Return the explained peaks of a spectrum with a formula; they are kept as long as the spectrum."""
        annotation: PeakAnnotation = remember([spectrum], ("peaks", self.ppm, self.floor), self._annotate)[0]
        return annotation

    def _annotate(self, spectra: Sequence[Spectrum]) -> list[PeakAnnotation]:
        return [annotate_peaks(s.mz, str(s.formula), s.adduct, ppm=self.ppm, floor=self.floor) for s in spectra]

    def atoms(self, annotation: PeakAnnotation) -> Index:
        """Return the numbers of atoms of the fragments or losses of all explained peaks."""
        return annotation.fragments if self.of == "fragments" else annotation.losses

    def entries(self, spectra: Samples) -> FormulaEntries:
        """Return the sums of intensities of each formula of each spectrum, to the power; they are kept, too."""
        parts = remember(list(spectra), ("formulas", *self), self._compute_entries)
        owner = np.repeat(np.arange(len(parts)), [len(key) for key, _ in parts])
        return FormulaEntries(owner, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _compute_entries(self, spectra: Sequence[Spectrum]) -> list[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
        """Return the formulas and the weights of each spectrum."""
        annotations = [self.annotate(spectrum) for spectrum in spectra]
        sizes = [len(annotation.peaks) for annotation in annotations]
        owner = np.repeat(np.arange(len(spectra)), sizes)
        key = np.concatenate([formula_keys(a.symbols, self.atoms(a)) for a in annotations])
        intensity = np.concatenate([s.intensity[a.peaks] for s, a in zip(spectra, annotations, strict=True)])
        positive = intensity > 0
        owner, key, intensity = owner[positive], key[positive], intensity[positive]
        order = np.lexsort((key, owner))
        owner, key = owner[order], key[order]
        starts = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | np.append(True, key[1:] != key[:-1])[: len(key)])
        totals = np.add.reduceat(intensity[order], starts) if len(starts) else intensity
        places = np.searchsorted(owner[starts], np.arange(1, len(spectra)))
        return list(zip(np.split(key[starts], places), np.split(totals**self.power, places), strict=True))


def formula_keys(symbols: tuple[str, ...], counts: Index) -> NDArray[np.uint64]:
    """Return one number per formula, the same in every process: a random linear form of the numbers of atoms.

    Two different formulas have the same number with probability 2⁻⁶⁴.
    """
    factors = np.array([_factor(symbol) for symbol in symbols], dtype=np.uint64)
    return np.asarray((counts.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64))


@cache
def _factor(symbol: str) -> int:
    return int.from_bytes(blake2b(symbol.encode(), digest_size=8).digest(), "little") | 1
