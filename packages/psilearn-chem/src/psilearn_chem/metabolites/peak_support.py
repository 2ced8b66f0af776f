"""Peaks that support a molecule: those that a fragment of it explains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psilearn_chem.metabolites.formula_variants import adduct_of
from psilearn_chem.molecules import Adduct
from psilearn_chem.molecules.fragmentation import explanation_costs, fragment_molecule
from psilearn_chem.molecules.subformulas import annotate_peaks
from psilearn_chem.spectra import Spectrum


def find_support(spectrum: Spectrum, smiles: str, formula: str, ppm: float = 10.0) -> NDArray[np.bool_]:
    """Return which peaks a fragment of the molecule explains, of shape (peaks,).

    Fragments of [M+H]+ and [M-H]- are the parts of the structure after one or two cuts through bonds. Those of other
    ions, and of molecules that are too large to be cut, are the parts of the formula.
    """
    fragments = fragment_molecule(smiles)
    adduct = adduct_of(spectrum, formula)
    charge = _proton_charge(adduct)
    if charge and len(fragments.masses):
        return np.isfinite(explanation_costs(spectrum.mz, fragments, negative=charge < 0, ppm=ppm))
    supporting = np.zeros(len(spectrum), dtype=bool)
    supporting[annotate_peaks(spectrum.mz, formula, adduct, ppm=ppm, floor=0.002).peaks] = True
    return supporting


def _proton_charge(adduct: str | None) -> int:
    """Return 1 for [M+H]+ and spectra without adduct, −1 for [M-H]-, and 0 for other ions."""
    return {None: 1, "[M+H]+": 1, "[M-H]-": -1}.get(adduct if adduct is None else str(Adduct.parse(adduct)), 0)
