"""Peaks that support a molecule: those that a fragment of it explains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psilearn.chem.molecules.subformulas import annotate_peaks
from psilearn.chem.spectra import Spectrum


def find_support(spectrum: Spectrum, smiles: str, formula: str, ppm: float = 10.0) -> NDArray[np.bool_]:
    """Return which peaks a part of the formula explains as a fragment, of shape (peaks,)."""
    supporting = np.zeros(len(spectrum), dtype=bool)
    supporting[annotate_peaks(spectrum.mz, formula, spectrum.adduct, ppm=ppm, floor=0.002).peaks] = True
    return supporting
