"""Metabolite identification: spectra, molecules, their kernels and datasets. Needs ``pip install 'psilearn[chem]'``.

Each public name is imported when it is first used, so that ``import psilearn.chem`` loads neither RDKit nor matchms.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psilearn.chem.metabolite_data import load_metabolites
    from psilearn.chem.metabolites import MetaboliteIdentifier, Query, Ranking, rank_spectra, train
    from psilearn.chem.molecules import Adduct, CandidateLibrary, Fingerprinted, Fingerprints, Formula
    from psilearn.chem.spectra import Cleaning, Problem, SpectraRead, Spectrum, read_spectra, write_parquet
    from psilearn.chem.spectrum_kernels import PrecursorMass, ProbabilityProduct, spectrum_kernel

_SOURCES = {
    "psilearn.chem.metabolite_data": ("load_metabolites",),
    "psilearn.chem.metabolites": ("MetaboliteIdentifier", "Query", "Ranking", "rank_spectra", "train"),
    "psilearn.chem.molecules": ("Adduct", "CandidateLibrary", "Fingerprinted", "Fingerprints", "Formula"),
    "psilearn.chem.spectra": ("Cleaning", "Problem", "SpectraRead", "Spectrum", "read_spectra", "write_parquet"),
    "psilearn.chem.spectrum_kernels": ("PrecursorMass", "ProbabilityProduct", "spectrum_kernel"),
}
_MODULE_OF = {name: module for module, names in _SOURCES.items() for name in names}

__all__ = [
    "Adduct",
    "CandidateLibrary",
    "Cleaning",
    "Fingerprinted",
    "Fingerprints",
    "Formula",
    "MetaboliteIdentifier",
    "PrecursorMass",
    "ProbabilityProduct",
    "Problem",
    "Query",
    "Ranking",
    "SpectraRead",
    "Spectrum",
    "load_metabolites",
    "rank_spectra",
    "read_spectra",
    "spectrum_kernel",
    "train",
    "write_parquet",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name in ("metabolites", "molecules", "spectra"):
        return import_module(f"psilearn.chem.{name}")
    raise AttributeError(f"module 'psilearn.chem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "metabolites", "molecules", "spectra"])
