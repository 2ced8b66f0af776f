"""Codecs of chemistry: spectra and their kernels in saved models.

The module is the entry point ``chem`` of the group ``psilearn.codecs``: psilearn imports it when a saved model contains
one of these classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psilearn.io import Codec, register, register_class
from psilearn_chem.spectra.spectrum import Spectrum
from psilearn_chem.spectrum_kernels import PrecursorMass, ProbabilityProduct
from psilearn_chem.subformula_kernels import SubformulaKernel

PER_SPECTRUM = ("precursor_mz", "adduct", "formula", "smiles", "name")


def _encode_spectra(spectra: Sequence[Spectrum], encoder: Any, where: str) -> dict[str, Any]:
    """Encode spectra as columns: the peaks of all of them are two arrays. Further metadata is left out."""
    return {
        "n_peaks": encoder.put(np.array([len(spectrum) for spectrum in spectra])),
        "mz": encoder.put(np.concatenate([spectrum.mz for spectrum in spectra])),
        "intensity": encoder.put(np.concatenate([spectrum.intensity for spectrum in spectra])),
        **{name: [getattr(spectrum, name) for spectrum in spectra] for name in PER_SPECTRUM},
    }


def _decode_spectra(data: dict[str, Any], decoder: Any) -> list[Spectrum]:
    n_peaks = decoder.array(data["n_peaks"])
    if n_peaks.min(initial=0) < 0:
        raise ValueError("spectra have negative numbers of peaks")
    ends = np.cumsum(n_peaks)
    mz, intensity = decoder.array(data["mz"]), decoder.array(data["intensity"])
    if not ends[-1] == len(mz) == len(intensity):
        raise ValueError(f"spectra with {ends[-1]} peaks have {len(mz)} m/z values and {len(intensity)} intensities")
    peaks = np.split(mz, ends[:-1]), np.split(intensity, ends[:-1])
    columns = [data[name] for name in PER_SPECTRUM]
    return [Spectrum(*values) for values in zip(*peaks, *columns, strict=True)]


register(Codec("psilearn_chem.spectra", (Spectrum,), _encode_spectra, _decode_spectra, lists=True))
register_class("psilearn_chem.PrecursorMass", PrecursorMass)
register_class("psilearn_chem.ProbabilityProduct", ProbabilityProduct)
register_class("psilearn_chem.SubformulaKernel", SubformulaKernel)
