"""What all kernels on tandem mass spectra share: the validation of spectra."""

from __future__ import annotations

from operator import attrgetter

from psilearn.kernels import Kernel
from psilearn.utils import Samples
from psilearn_chem.spectra.spectrum import Spectrum


class SpectrumKernel(Kernel):
    """A kernel on lists of :class:`~psilearn_chem.spectra.Spectrum`."""

    _returns_new_block = True
    _needs_precursor = False
    _needs_formula = False

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        """Return the spectra, or raise an error if one is not a spectrum or lacks a field that is needed."""
        A = super()._check(A, name, allow_1d)
        return A if self._is_complete(A) else self._check_each(A, name)

    def _is_complete(self, A: Samples) -> bool:
        """Return whether all are spectra with the fields that are needed, without a loop in Python."""
        required = {"precursor_mz": self._needs_precursor, "formula": self._needs_formula}
        return set(map(type, A)) == {Spectrum} and not any(
            is_needed and None in map(attrgetter(name), A) for name, is_needed in required.items()
        )

    def _check_each(self, A: Samples, name: str) -> Samples:
        for i, spectrum in enumerate(A):
            if not isinstance(spectrum, Spectrum):
                raise TypeError(
                    f"{type(self).__name__} compares objects of psilearn_chem.spectra.Spectrum; {name}[{i}] is of type "
                    f"{type(spectrum).__name__}. psilearn_chem.spectra.read_spectra reads them from files."
                )
            if self._needs_precursor and spectrum.precursor_mz is None:
                raise ValueError(
                    f"{type(self).__name__} needs the precursor of each spectrum, but {name}[{i}] "
                    f"({spectrum.name!r}) has no precursor_mz."
                )
            if self._needs_formula and spectrum.formula is None:
                raise ValueError(
                    f"{type(self).__name__} needs the molecular formula of each spectrum, but {name}[{i}] "
                    f"({spectrum.name!r}) has none: dataclasses.replace(spectrum, formula=...) states one."
                )
        return A
