"""Kernels on the formulas of fragments and of neutral losses, by which a molecular formula explains peaks."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Samples, n_samples
from psilearn_chem.base_spectrum_kernel import SpectrumKernel
from psilearn_chem.molecules.formulas import Adduct, Formula
from psilearn_chem.spectra.spectrum import Spectrum
from psilearn_chem.spectrum_memory import remember
from psilearn_chem.subformula_rows import FormulaEntries, FormulaOptions

Array = NDArray[np.float64]

MAX_CHECKED = 2**16  # pairs of formula and adduct that are remembered


class SubformulaKernel(SpectrumKernel):
    """Kernel on the formulas by which peaks are explained.

    Each peak is explained by the nearest part of the atoms of the ion, within a tolerance and if the valences of the
    atoms allow it. A spectrum is then a vector with one entry per formula f of a fragment, or of a neutral loss: the
    sum of the intensities of its peaks to a power, w(f). Peaks without explanation are noise for this kernel. Two
    spectra are compared by

        k(a, b) = Σ_f w_a(f) w_b(f).

    Unlike :class:`ProbabilityProduct`, fragments of almost the same mass with different formulas are not similar.
    ``SubformulaKernel().normalized()`` removes the influence of the number of peaks and of the scale of intensities.

    Cost: two bisections per peak and number of hydrogen atoms, once per spectrum as long as it is in memory; about
    1 ms per spectrum. Then a product of sparse matrices.

    Parameters
    ----------
    of : {"fragments", "losses"}, default="fragments"
        Which formulas are compared: those of the fragments, or those of the atoms that the fragments lack.
    power : float, default=0.5
        Power of the intensities. With 0, all formulas of a spectrum count the same.
    ppm : float, default=10.0
        Tolerance in millionths of the m/z of the peak.
    floor : float, default=0.002
        Smallest tolerance in Da, which holds for small m/z.

    See Also
    --------
    ProbabilityProduct : Kernel on the m/z of peaks or losses, which needs no formula.
    SubformulaFeatures : The vectors that this kernel compares, for other kernels on vectors.

    Notes
    -----
    Spectra need a molecular formula. Their ion is that of the adduct; without one, [M+H]+. Where only the mass of the
    molecule is known, there is one explanation per candidate formula: :meth:`MetaboliteIdentifier.rank` compares the
    candidates of each formula with the spectrum as this formula explains it.

    References
    ----------
    .. [1] Böcker and Dührkop, "Fragmentation trees reloaded", Journal of Cheminformatics, 2016.
    .. [2] Brouard et al., "Fast metabolite identification with input output kernel regression", Bioinformatics, 2016.

    Examples
    --------
    >>> from psilearn_chem import Spectrum, SubformulaKernel
    >>> ethanol = Spectrum([29.0386, 31.0178], [1.0, 4.0], 47.0491, "[M+H]+", "C2H6O")  # C2H5+ and CH3O+
    >>> propanol = Spectrum([31.0178, 43.0542], [4.0, 1.0], 61.0648, "[M+H]+", "C3H8O")  # CH3O+ and C3H7+
    >>> SubformulaKernel()([ethanol], [ethanol, propanol])
    array([[5., 4.]])
    >>> SubformulaKernel("losses", power=0)([ethanol], [propanol])  # both lose water
    array([[1.]])
    """

    _needs_formula = True

    def __init__(self, of: str = "fragments", power: float = 0.5, ppm: float = 10.0, floor: float = 0.002) -> None:
        self.of = of
        self.power = power
        self.ppm = ppm
        self.floor = floor

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        A = super()._check(A, name, allow_1d)
        ions = set(map(attrgetter("formula", "adduct"), A))
        for i, spectrum in enumerate(A if any(not _is_readable(*ion) for ion in ions) else ()):
            try:
                _check_ion(spectrum.formula, spectrum.adduct)
            except ValueError as error:
                raise ValueError(f"{name}[{i}] ({spectrum.name!r}) cannot be explained: {error}.") from error
        return A

    def _block(self, A: Any, B: Any, compute: Any) -> Array:
        left = self._entries(A)
        right = left if B is A else self._entries(B)
        keys = np.unique(left.key)  # formulas of the other spectra alone have no column
        product = left.as_matrix(n_samples(A), keys) @ right.as_matrix(n_samples(B), keys).T
        return np.asarray(product.toarray(), dtype=compute.dtype)

    def _diag(self, A: Any) -> Array:
        """Return the squared length of each spectrum; it is kept as long as the spectrum."""
        key = ("squared length of formulas", *self._options())
        return np.array(remember(list(A), key, self._squared_lengths_of), dtype=np.float64)

    def _squared_lengths_of(self, A: list[Spectrum]) -> Array:
        entries = self._entries(A)
        return np.bincount(entries.owner, entries.weight**2, n_samples(A)).astype(np.float64)

    def _entries(self, spectra: Samples) -> FormulaEntries:
        return self._options().entries(spectra)

    def _options(self) -> FormulaOptions:
        return FormulaOptions(self.of, self.power, self.ppm, self.floor).check("SubformulaKernel")


@lru_cache(maxsize=MAX_CHECKED)
def _is_readable(formula: Any, adduct: Any) -> bool:
    """Return whether a formula and an adduct can be read; it is remembered."""
    try:
        _check_ion(formula, adduct)
    except ValueError:
        return False
    return True


def _check_ion(formula: Any, adduct: Any) -> None:
    """Raise a ValueError if a formula or an adduct cannot be read."""
    Formula.parse(formula)
    if adduct is not None:
        Adduct.parse(adduct)
