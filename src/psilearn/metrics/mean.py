"""The mean of one value per example, with its standard error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, check_collection


class Mean(float):
    """Mean of one value per example, a float that also carries its standard error.

    Parameters
    ----------
    values : array-like of shape (n,)
        One value per example, at least one.

    Attributes
    ----------
    values : ndarray of shape (n,)
        The values, in float64.
    standard_error : float
        The standard error s/√n of the mean, where s is the sample standard deviation; NaN for a single example.

    See Also
    --------
    f1_score : A metric that returns a mean.

    Examples
    --------
    >>> from psilearn.metrics import Mean
    >>> mean = Mean([1.0, 2.0, 3.0])
    >>> mean
    2.0000 ± 0.5774
    >>> mean + 1
    3.0
    """

    values: Array
    standard_error: float

    def __new__(cls, values: ArrayLike) -> Mean:
        """Compute the mean and its standard error."""
        values = validation.check_array_of_numbers(values, "values", ndim=1, allow_nan=True, allow_infinite=True)
        mean = super().__new__(cls, np.mean(values))
        mean.values = values
        with np.errstate(over="ignore", invalid="ignore"):  # values that are infinite or too large to square
            deviation = np.std(values, ddof=1) if len(values) > 1 else np.nan
        mean.standard_error = float(deviation / np.sqrt(len(values)))
        return mean

    def __reduce__(self) -> tuple[type[Mean], tuple[Array]]:
        """Return the class and the values, from which a pickle is restored."""
        return Mean, (self.values,)

    def __repr__(self) -> str:
        """Return the mean and its standard error, as in ``0.7360 ± 0.0110``."""
        return f"{float(self):.4f} ± {self.standard_error:.4f}"

    __str__ = __repr__


def check_same_length(Y_true: Samples, Y_pred: Samples) -> None:
    """Raise an error if the numbers of true and predicted outputs differ."""
    n_true, n_predicted = check_collection(Y_true, "Y_true"), check_collection(Y_pred, "Y_pred")
    if n_true != n_predicted:
        raise ValueError(f"Y_true has {n_true} outputs, Y_pred has {n_predicted}.")
