"""Kernels and vectors of the formulas of fragments and losses, by which a molecular formula explains peaks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from psilearn.utils import Index, Samples, n_samples, validation
from psilearn_chem.molecules.formulas import Adduct, Formula
from psilearn_chem.molecules.subformulas import PeakAnnotation, annotate_peaks, formula_text
from psilearn_chem.spectra.spectrum import Spectrum
from psilearn_chem.spectrum_kernels import SpectrumKernel, remember

FORMULAS = ("fragments", "losses")


class FormulaEntries(NamedTuple):
    """The entries of the vectors of several spectra: each formula of a spectrum once."""

    owner: Index  # (N,)  number of the spectrum, ascending
    key: NDArray[np.uint64]  # (N,)  equal for equal formulas
    weight: NDArray[np.float64]  # (N,)

    def as_matrix(self, n_spectra: int, keys: NDArray[np.uint64]) -> sparse.csr_matrix:
        """Return the vectors as rows of shape (n_spectra, len(keys)); formulas that have no column are left out."""
        order = np.argsort(keys)
        places = np.searchsorted(keys, self.key, sorter=order)
        columns = order[np.minimum(places, len(keys) - 1)] if len(keys) else places
        known = keys[columns] == self.key if len(keys) else np.zeros(len(places), dtype=bool)
        entries = self.weight[known], (self.owner[known], columns[known])
        return sparse.csr_matrix(entries, shape=(n_spectra, len(keys)))


class FormulaOptions(NamedTuple):
    """Which formulas are counted, how intensities weight them, and the tolerance within which peaks are explained."""

    of: str
    power: float
    ppm: float
    floor: float

    def check(self, owner: str) -> FormulaOptions:
        """Raise an error that names the parameter of ``owner`` if a value is not valid."""
        validation.check_option(self.of, FORMULAS, f"of of {owner}")
        validation.check_non_negative(self.power, f"power of {owner}")
        validation.check_positive(self.ppm, f"ppm of {owner}")
        validation.check_non_negative(self.floor, f"floor of {owner}")
        return self

    def annotate(self, spectrum: Spectrum) -> PeakAnnotation:
        """Return the explained peaks of a spectrum with a formula; they are kept as long as the spectrum."""
        annotation: PeakAnnotation = remember([spectrum], ("peaks", self.ppm, self.floor), self._annotate)[0]
        return annotation

    def _annotate(self, spectra: Sequence[Spectrum]) -> list[PeakAnnotation]:
        return [annotate_peaks(s.mz, str(s.formula), s.adduct, ppm=self.ppm, floor=self.floor) for s in spectra]

    def atoms(self, annotation: PeakAnnotation) -> Index:
        """Return the numbers of atoms of the fragments or losses of all explained peaks."""
        return annotation.fragments if self.of == "fragments" else annotation.losses

    def entries(self, spectra: Samples) -> FormulaEntries:
        """Return the sums of intensities of each formula of each spectrum, to the power; they are kept, too."""
        parts = remember(list(spectra), ("formulas", *self), self._compute_entries)
        owner = np.repeat(np.arange(len(parts)), [len(key) for key, _ in parts])
        return FormulaEntries(owner, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _compute_entries(self, spectra: Sequence[Spectrum]) -> list[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
        """Return the formulas and the weights of each spectrum."""
        annotations = [self.annotate(spectrum) for spectrum in spectra]
        sizes = [len(annotation.peaks) for annotation in annotations]
        owner = np.repeat(np.arange(len(spectra)), sizes)
        key = np.concatenate([formula_keys(a.symbols, self.atoms(a)) for a in annotations])
        intensity = np.concatenate([s.intensity[a.peaks] for s, a in zip(spectra, annotations, strict=True)])
        positive = intensity > 0
        owner, key, intensity = owner[positive], key[positive], intensity[positive]
        order = np.lexsort((key, owner))
        owner, key = owner[order], key[order]
        starts = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | np.append(True, key[1:] != key[:-1])[: len(key)])
        totals = np.add.reduceat(intensity[order], starts) if len(starts) else intensity
        places = np.searchsorted(owner[starts], np.arange(1, len(spectra)))
        return list(zip(np.split(key[starts], places), np.split(totals**self.power, places), strict=True))


def formula_keys(symbols: tuple[str, ...], counts: Index) -> NDArray[np.uint64]:
    """Return one number per formula, the same in every process: a random linear form of the numbers of atoms.

    Two different formulas have the same number with probability 2⁻⁶⁴.
    """
    factors = np.array([_factor(symbol) for symbol in symbols], dtype=np.uint64)
    return np.asarray((counts.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64))


@cache
def _factor(symbol: str) -> int:
    return int.from_bytes(blake2b(symbol.encode(), digest_size=8).digest(), "little") | 1


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
        for i, spectrum in enumerate(A):
            fault = _find_fault(spectrum.formula, spectrum.adduct)
            if fault:
                raise ValueError(f"{name}[{i}] ({spectrum.name!r}) cannot be explained: {fault}.")
        return A

    def _block(self, A: Any, B: Any, compute: Any) -> Array:
        left = self._options().entries(A)
        right = left if B is A else self._options().entries(B)
        keys = np.unique(left.key)  # formulas of the other spectra alone have no column
        product = left.as_matrix(n_samples(A), keys) @ right.as_matrix(n_samples(B), keys).T
        return np.asarray(product.toarray(), dtype=compute.dtype)

    def _diag(self, A: Any) -> Array:
        """Return the squared length of each spectrum; it is kept as long as the spectrum."""
        key = ("squared length of formulas", *self._options())
        return np.array(remember(list(A), key, self._squared_lengths_of), dtype=np.float64)

    def _squared_lengths_of(self, A: list[Spectrum]) -> Array:
        entries = self._options().entries(A)
        return np.bincount(entries.owner, entries.weight**2, n_samples(A)).astype(np.float64)

    def _options(self) -> FormulaOptions:
        return FormulaOptions(self.of, self.power, self.ppm, self.floor).check("SubformulaKernel")


@lru_cache(maxsize=MAX_CHECKED)
def _find_fault(formula: str, adduct: str | None) -> str:
    """Return why a formula or an adduct cannot be read; "" if both can."""
    try:
        Formula.parse(formula)
        Adduct.parse("[M+H]+" if adduct is None else adduct)
    except ValueError as error:
        return str(error)
    return ""


class SubformulaFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type stubs
    """Vectors of the formulas by which the peaks of spectra are explained.

    There is one column per formula of the training spectra. The entry of a spectrum is the sum of the intensities of
    the peaks with this formula to a power. The rows are a CSR matrix, on which all kernels on vectors work, such as
    ``Tanimoto`` with ``power=0``, and all estimators of scikit-learn. Formulas that no training spectrum has are
    ignored; :class:`SubformulaKernel` takes them into account when it is normalized.

    Parameters
    ----------
    of : {"fragments", "losses"}, default="fragments"
        Which formulas: those of the fragments, or those of the atoms that the fragments lack.
    power : float, default=0.5
        Power of the intensities. With 0, entries are 0 or 1.
    ppm : float, default=10.0
        Tolerance in millionths of the m/z of the peak.
    floor : float, default=0.002
        Smallest tolerance in Da, which holds for small m/z.

    Attributes
    ----------
    formulas_ : ndarray of str of shape (d,)
        The formulas, one per column. A fragment is a part of the ion; the loss of the whole precursor is "".

    See Also
    --------
    SubformulaKernel : Kernel on these vectors that needs no fit.

    Examples
    --------
    >>> from psilearn_chem import Spectrum, SubformulaFeatures
    >>> ethanol = Spectrum([29.0386, 31.0178], [1.0, 4.0], 47.0491, "[M+H]+", "C2H6O")
    >>> features = SubformulaFeatures().fit([ethanol])
    >>> features.formulas_
    array(['C2H5', 'CH3O'], dtype='<U4')
    >>> features.transform([ethanol]).toarray()
    array([[1., 2.]])
    """

    def __init__(self, of: str = "fragments", power: float = 0.5, ppm: float = 10.0, floor: float = 0.002) -> None:
        self.of = of
        self.power = power
        self.ppm = ppm
        self.floor = floor

    def fit(self, X: Sequence[Spectrum], y: object = None) -> Self:
        """Find the formulas of spectra.

        Parameters
        ----------
        X : sequence of Spectrum
            Spectra with molecular formulas.
        y : object, default=None
            Is ignored.

        Returns
        -------
        SubformulaFeatures
            The fitted transformer itself.

        See Also
        --------
        transform : Return the vectors of spectra.

        Examples
        --------
        >>> from psilearn_chem import Spectrum, SubformulaFeatures
        >>> spectrum = Spectrum([31.0178], [1.0], 47.0491, "[M+H]+", "C2H6O")
        >>> SubformulaFeatures("losses").fit([spectrum]).formulas_
        array(['CH4'], dtype='<U3')
        """
        options, spectra = self._check(X)
        texts: dict[int, str] = {}
        for spectrum in spectra:
            annotation = options.annotate(spectrum)
            counts = options.atoms(annotation)
            for key, atoms in zip(formula_keys(annotation.symbols, counts), counts, strict=True):
                if int(key) not in texts:
                    texts[int(key)] = formula_text(annotation.symbols, atoms)
        keys = sorted(texts, key=lambda key: texts[key])
        self.formulas_ = np.array([texts[key] for key in keys], dtype=np.str_)
        self._column_keys = np.array(keys, dtype=np.uint64)
        return self

    def transform(self, X: Sequence[Spectrum]) -> sparse.csr_matrix:
        """Return the vectors of spectra.

        Parameters
        ----------
        X : sequence of n Spectrum
            Spectra with molecular formulas.

        Returns
        -------
        csr_matrix of shape (n, d)
            One row per spectrum and one column per formula.

        See Also
        --------
        fit : Find the formulas of spectra.

        Examples
        --------
        >>> from psilearn_chem import Spectrum, SubformulaFeatures
        >>> spectrum = Spectrum([31.0178], [0.25], 47.0491, "[M+H]+", "C2H6O")
        >>> SubformulaFeatures("losses").fit_transform([spectrum]).toarray()
        array([[0.5]])
        """
        check_is_fitted(self)
        options, spectra = self._check(X)
        return options.entries(spectra).as_matrix(n_samples(spectra), self._column_keys)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.str_]:
        """Return the formulas of the columns.

        Parameters
        ----------
        input_features : object, default=None
            Is ignored.

        Returns
        -------
        ndarray of str of shape (d,)
            The formulas.

        See Also
        --------
        transform : Return the vectors of spectra.

        Examples
        --------
        >>> from psilearn_chem import Spectrum, SubformulaFeatures
        >>> spectrum = Spectrum([31.0178], [0.25], 47.0491, "[M+H]+", "C2H6O")
        >>> SubformulaFeatures().fit([spectrum]).get_feature_names_out()
        array(['CH3O'], dtype='<U4')
        """
        check_is_fitted(self)
        return self.formulas_

    def _check(self, X: Sequence[Spectrum]) -> tuple[FormulaOptions, Samples]:
        """Return the parameters and the spectra, both validated."""
        options = FormulaOptions(self.of, self.power, self.ppm, self.floor).check("SubformulaFeatures")
        return options, SubformulaKernel(*options).check(X, "X")
