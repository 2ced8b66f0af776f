"""Tandem mass spectra: the object, its cleaning, and files that hold it."""

from psilearn.spectra.cleaning import Cleaning
from psilearn.spectra.reading import Problem, SpectraRead, read_spectra
from psilearn.spectra.spectrum import Spectrum
from psilearn.spectra.table import write_parquet

__all__ = ["Cleaning", "Problem", "SpectraRead", "Spectrum", "read_spectra", "write_parquet"]
