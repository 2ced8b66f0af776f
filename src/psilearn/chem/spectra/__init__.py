"""Tandem mass spectra: the object, its cleaning, and files that hold it."""

from psilearn.chem.spectra.cleaning import Cleaning
from psilearn.chem.spectra.spectrum import Spectrum
from psilearn.chem.spectra.spectrum_files import Problem, SpectraRead, read_spectra
from psilearn.chem.spectra.spectrum_table import write_parquet

__all__ = ["Cleaning", "Problem", "SpectraRead", "Spectrum", "read_spectra", "write_parquet"]
