"""Spectra of known molecules, each with the molecules of a library that have its formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index, match
from psilearn_chem.metabolites.queries import check_precursor, find_adduct
from psilearn_chem.molecules import Adduct, CandidateLibrary, Formula
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.spectra import Problem, Spectrum


@dataclass(frozen=True)
class LabeledSpectra:
    """n spectra with the fingerprints of their molecules, and the candidates of each."""

    spectra: list[Spectrum]
    bits: Bits  # (n, b)
    sets: list[Bits]  # fingerprints of the candidates of each spectrum, the true one among them
    truth: Index  # (n,)  the index of the true one
    in_library: NDArray[np.bool_]  # (n,)  whether the library contains it

    def __len__(self) -> int:
        return len(self.spectra)

    @property
    def adducts(self) -> tuple[str, ...]:
        """The different adducts of the spectra, sorted."""
        return tuple(sorted({str(Adduct.parse(s.adduct)) for s in self.spectra if s.adduct is not None}))

    def take(self, rows: Index) -> LabeledSpectra:
        """Return some of the spectra."""
        return LabeledSpectra(
            [self.spectra[i] for i in rows],
            self.bits[rows],
            [self.sets[i] for i in rows],
            self.truth[rows],
            self.in_library[rows],
        )

    def thin(self, max_candidates: int, seed: int) -> list[Bits]:
        """Return at most ``max_candidates`` candidates per spectrum, drawn at random, the true one among them."""
        rng = np.random.default_rng(seed)
        thinned = []
        for candidates, truth in zip(self.sets, self.truth, strict=True):
            if len(candidates) > max_candidates:
                others = np.setdiff1d(np.arange(len(candidates)), [truth])
                chosen = np.sort(rng.choice(others, max_candidates - 1, replace=False))
                candidates = candidates[np.append(chosen, truth)]
            thinned.append(candidates)
        return thinned


def find_labeled(spectra: Sequence[Spectrum], library: CandidateLibrary) -> tuple[LabeledSpectra, list[Problem]]:
    """Return the spectra that can be used for training, and the reasons why the others cannot.

    The spectra have the formulas of their SMILES and, if none is stated, the common adduct that fits to the precursor.
    """
    table = library.fingerprints([spectrum.smiles or "" for spectrum in spectra])
    problems: list[Problem] = []
    usable: list[int] = []
    sets: list[Bits] = []
    truth: list[int] = []
    in_library: list[bool] = []
    for i, (spectrum, formula) in enumerate(zip(spectra, table.formulas, strict=True)):
        reason = _reason_to_reject(spectrum, formula)
        if reason is not None:
            problems.append(Problem(spectrum.name or f"spectrum {i + 1}", reason))
            continue
        candidates, true_bits = library.bits[library.find_formula(formula)], table.bits[i : i + 1]
        index = int(match(true_bits, candidates)[0]) if len(candidates) else -1
        usable.append(i)
        in_library.append(index >= 0)
        sets.append(candidates if index >= 0 else np.concatenate([candidates, true_bits]))
        truth.append(index if index >= 0 else len(candidates))
    kept = [_complete(spectra[i], table.formulas[i]) for i in usable]
    labeled = LabeledSpectra(kept, table.bits[usable], sets, np.array(truth, dtype=np.intp), np.array(in_library))
    return labeled, problems


def _complete(spectrum: Spectrum, formula: str) -> Spectrum:
    """Return a spectrum with its formula and with an adduct, if one is stated or fits to formula and precursor."""
    adduct = find_adduct(spectrum, Formula.parse(formula)) if spectrum.adduct is None else spectrum.adduct
    return replace(spectrum, formula=formula, adduct=adduct)


def _reason_to_reject(spectrum: Spectrum, formula: str) -> str | None:
    """Return why a spectrum cannot be used for training, or None; ``formula`` is that of its SMILES."""
    if not formula:
        return f"its SMILES {spectrum.smiles!r} cannot be read" if spectrum.smiles else "it has no SMILES"
    if spectrum.precursor_mz is None:
        return "it has no precursor_mz"
    try:
        if spectrum.formula is not None and str(Formula.parse(spectrum.formula)) != formula:
            return f"its formula is {spectrum.formula}, but its SMILES is of {formula}"
        check_precursor(spectrum, Formula.parse(formula))
    except ValueError as error:
        return str(error)
    return None
