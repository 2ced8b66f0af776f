"""Evidence of reference spectra: how much likelier a similarity is for the same molecule than for an isomer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import IsotonicRegression

from psilearn.utils import validation

Array = NDArray[np.float64]

N_BINS = 20  # of similarities in [0, 1]
EDGES = np.linspace(0, 1, N_BINS + 1)
PSEUDO_COUNT = 0.5  # pairs that are added to each bin


@dataclass(frozen=True)
class ReferenceEvidence:
    """The log-likelihood ratio of "same molecule" against "other molecule of this formula", given a similarity.

    Similarities of pairs of spectra are counted in bins. The ratio of the two frequencies is made non-decreasing by
    isotonic regression, and interpolated linearly between the centers of the bins. Several spectra of one compound
    are treated as independent: their ratios add up.

    Parameters
    ----------
    similarities : tuple of float
        The centers of the bins, ascending.
    log_ratios : tuple of float
        The log-likelihood ratio at each center, non-decreasing.

    See Also
    --------
    MetaboliteIdentifier : Combines this evidence with the distance in the output space.

    Examples
    --------
    >>> from psilearn_chem.metabolites import ReferenceEvidence
    >>> evidence = ReferenceEvidence((0.2, 0.8), (-2.0, 2.0))
    >>> evidence([0.1, 0.9])
    array([-2.,  2.])
    """

    similarities: tuple[float, ...]
    log_ratios: tuple[float, ...]

    def __post_init__(self) -> None:
        centers = validation.check_array_of_numbers(self.similarities, "similarities", ndim=1)
        ratios = validation.check_array_of_numbers(self.log_ratios, "log_ratios", ndim=1)
        if centers.shape != ratios.shape:
            raise ValueError(
                f"similarities and log_ratios must have the same length, at least 1; got shapes {centers.shape} and "
                f"{ratios.shape}."
            )
        if not ((np.diff(centers) > 0).all() and (np.diff(ratios) >= 0).all()):
            raise ValueError("similarities must be ascending, and log_ratios non-decreasing.")

    @classmethod
    def fit(cls, same: ArrayLike, other: ArrayLike) -> ReferenceEvidence:
        """Learn the ratio from similarities of pairs of spectra.

        Parameters
        ----------
        same : array-like of shape (a,)
            Similarities in [0, 1] of pairs of spectra of the same molecule, measured separately.
        other : array-like of shape (b,)
            Similarities of pairs of spectra of different molecules with the same formula.

        Returns
        -------
        ReferenceEvidence
            The fitted ratio.

        Raises
        ------
        ValueError
            If there are no pairs of one kind, or if a similarity is not finite.

        See Also
        --------
        MetaboliteIdentifier.fit : Learns the ratio from the training spectra.

        Examples
        --------
        >>> from psilearn_chem.metabolites import ReferenceEvidence
        >>> evidence = ReferenceEvidence.fit(same=[0.9, 0.8, 0.95], other=[0.1, 0.3, 0.2])
        >>> bool(evidence([0.9])[0] > 0 > evidence([0.2])[0])
        True
        """
        return cls._of_counts(*(_count(values, name) for values, name in ((same, "same"), (other, "other"))))

    @classmethod
    def _of_counts(cls, same: Array, other: Array) -> ReferenceEvidence:
        """Learn the ratio from the numbers of pairs in each bin."""
        smooth = [count + PSEUDO_COUNT for count in (same, other)]
        ratios = np.log(smooth[0] / smooth[0].sum()) - np.log(smooth[1] / smooth[1].sum())
        precision = 1 / (1 / smooth[0] + 1 / smooth[1])  # inverse variance of the logarithm of a ratio of counts
        centers = (EDGES[:-1] + EDGES[1:]) / 2
        monotone = IsotonicRegression().fit(centers, ratios, precision).predict(centers)
        return cls(tuple(map(float, centers)), tuple(map(float, np.maximum.accumulate(monotone))))

    def __call__(self, similarity: ArrayLike) -> Array:
        """Compute the log-likelihood ratio of similarities.

        Parameters
        ----------
        similarity : array-like of shape (k,)
            Similarities of spectra with the reference spectra of a molecule.

        Returns
        -------
        ndarray of shape (k,)
            The ratios: positive where the same molecule is likelier.

        See Also
        --------
        fit : Learn the ratio.

        Examples
        --------
        >>> from psilearn_chem.metabolites import ReferenceEvidence
        >>> ReferenceEvidence((0.0, 1.0), (-1.0, 3.0))([0.25])
        array([0.])
        """
        values = validation.check_array_of_numbers(similarity, "similarity", allow_infinite=True)
        return np.asarray(np.interp(values, self.similarities, self.log_ratios))


def _count(values: ArrayLike, name: str) -> Array:
    """Return the number of similarities in each bin."""
    numbers = validation.check_array_of_numbers(values, name, ndim=1)
    return np.histogram(np.clip(numbers, 0, 1), EDGES)[0].astype(np.float64)
