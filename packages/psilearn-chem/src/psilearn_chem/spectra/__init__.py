"""Tandem mass spectra: the data structure, cleaning, and files."""

from psilearn_chem.spectra.merging import group_spectra, merge_spectra
from psilearn_chem.spectra.spectrum import Cleaning, Spectrum
from psilearn_chem.spectra.spectrum_files import Problem, SpectrumReadResult, iter_spectra, read_spectra, write_parquet

__all__ = [
    "Cleaning",
    "Problem",
    "Spectrum",
    "SpectrumReadResult",
    "group_spectra",
    "iter_spectra",
    "merge_spectra",
    "read_spectra",
    "write_parquet",
]
