"""A transformer from spectra to vectors of formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from psilearn.utils import Samples, n_samples
from psilearn_chem.molecules.subformulas import formula_text
from psilearn_chem.spectra.spectrum import Spectrum
from psilearn_chem.subformula_kernels import SubformulaKernel
from psilearn_chem.subformula_rows import FormulaOptions, formula_keys


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
