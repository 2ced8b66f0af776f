"""Small molecules with artificial spectra, in which each set bit of a fingerprint is a peak."""

from __future__ import annotations

import itertools

import numpy as np

from psilearn_chem.molecules import Adduct, CandidateLibrary, Fingerprints, Formula, MoleculeList
from psilearn_chem.spectra import Spectrum

GROUPS = ("C", "CC", "CCC", "C(C)C", "O", "OC", "OCC", "N", "NC", "F", "Cl", "C#N", "C(=O)O", "CO")


def smiles_list() -> list[str]:
    """Return disubstituted benzenes and pyridines: many share their formula, and a few are repeated."""
    pairs = [(a, b) for a, b in itertools.combinations_with_replacement(GROUPS, 2) if a != "C#N"]
    para = [f"{a}c1ccc({b})cc1" for a, b in pairs]
    ortho = [f"{a}c1ccccc1{b}" for a, b in pairs]
    pyridine = [f"{a}c1ccc({b})nc1" for a, b in pairs]
    return [*para, *ortho, *pyridine]


def different_smiles() -> list[str]:
    """Return each molecule once."""
    canonical = Fingerprints()(smiles_list()).canonical_smiles
    return [smiles for i, smiles in enumerate(smiles_list()) if canonical.index(canonical[i]) == i]


def spectra_of(smiles: list[str], seed: int = 0, adduct: str = "[M+H]+") -> list[Spectrum]:
    """Return one spectrum per molecule: peaks that depend on its fragments, and two random ones."""
    table = Fingerprints(("morgan",))(smiles)
    bits = np.unpackbits(table.bits, axis=1)
    positions = 40 + np.random.default_rng(99).random(bits.shape[1]) * 60
    spectra = []
    for i, (row, formula) in enumerate(zip(bits, table.formulas, strict=True)):
        rng = np.random.default_rng([seed, i])
        present = np.flatnonzero(row)
        kept = present[rng.random(len(present)) < 0.9]
        mz = np.append(positions[kept] + rng.normal(0, 0.001, len(kept)), 40 + 60 * rng.random(2))
        precursor = Adduct.parse(adduct).mz(Formula.parse(formula).mass)
        intensity = rng.random(len(mz)) + 0.2
        spectra.append(Spectrum(mz, intensity, precursor, adduct, formula, smiles[i], f"s{i}"))
    return spectra


def build_library(folder, kinds=("morgan", "maccs")) -> CandidateLibrary:
    listed = smiles_list()
    return CandidateLibrary.build(
        MoleculeList(listed, [f"m{i}" for i in range(len(listed))]), folder, Fingerprints(kinds)
    )
