"""Regression with any scikit-learn regressor: a forest, a neural network, a pipeline that takes raw inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning

from psilearn._backend import NUMPY, Compute, iter_blocks, like_input, tensor_to_numpy, to_numpy
from psilearn._linalg import Array, Moment
from psilearn._utils.progress import stage, track
from psilearn._utils.samples import Samples, check_not_empty, n_samples, take
from psilearn.regression.kernel_regression import MAX_REGRESSION_ROWS, Targets

N_FOLDS = 5  # of the out-of-fold values ĥ₋ᵢ(xᵢ)


class SklearnRegressor:
    """Regression with any scikit-learn regressor: a clone of it is fitted on the pairs (xᵢ, vᵢ).

    A flexible regressor reproduces the targets that it was trained on, so that the moment of its fitted values would
    equal that of the outputs and carry no information on what can be predicted. The moment is therefore computed from
    out-of-fold values: 1/n Σ ĥ₋ᵢ(xᵢ)ĥ₋ᵢ(xᵢ)ᵀ with ĥ₋ᵢ fitted without the fold of pair i. This takes five further fits,
    and is done only if the moment is requested.

    Parameters
    ----------
    estimator : scikit-learn regressor
        A regressor of several targets. It alone validates the inputs.

    See Also
    --------
    KernelRidge : Exact kernel ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from psilearn.regression import SklearnRegressor
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> SklearnRegressor(LinearRegression()).fit(X).regress(2 * X).predict(np.array([[20.0]])).round(6)
    array([[40.]])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Samples) -> Self:
        """Store the inputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The training inputs.

        Returns
        -------
        SklearnRegressor
            The object itself.

        See Also
        --------
        SklearnRegressor.regress : The second step, with targets.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn.regression import SklearnRegressor
        >>> len(SklearnRegressor(LinearRegression()).fit([[0.0], [1.0]]).X_fit_)
        2
        """
        self.X_fit_ = X
        return self

    def regress(self, V: Targets, with_moment: bool = True) -> SklearnRegression:
        """Fit a clone of the regressor onto targets; nr numbers, and nr more for the moment.

        Parameters
        ----------
        V : array of shape (n, r), or an object that returns rows on request
            The targets.
        with_moment : bool, default=True
            Whether the moment of out-of-fold values is needed.

        Returns
        -------
        SklearnRegression
            The fitted function.

        See Also
        --------
        SklearnRegressor.fit : The first step, with inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn.regression import SklearnRegressor
        >>> X = np.arange(10.0).reshape(-1, 1)
        >>> SklearnRegressor(LinearRegression()).fit(X).regress(X).moment.to_matrix().round(4)
        array([[28.5]])
        """
        targets = np.asarray(to_numpy(V[:]), dtype=np.float64)
        n, r = targets.shape
        if r == 0:
            raise ValueError("Every output has length zero in output_kernel: there is nothing for regressor to learn.")
        if with_moment and n < 2:
            raise ValueError(
                "regressor requires at least 2 pairs if supervision > 0, to predict each of them from the others; X "
                "has 1 sample. Give more pairs, or set supervision=0."
            )
        name = type(self.estimator).__name__
        with explain_errors(self.estimator, targets):
            with stage(f"{name} onto {r:,} coordinates"):
                fitted = clone(self.estimator).fit(self.X_fit_, targets)
            if not with_moment:
                return SklearnRegression(fitted, r)
            from sklearn.model_selection import KFold, cross_val_predict  # importing it takes long

            folds = KFold(min(N_FOLDS, n), shuffle=True, random_state=0)
            with stage(f"{name} out of {folds.n_splits} folds"):
                held_out = cross_val_predict(self.estimator, self.X_fit_, targets, cv=folds)  # ĥ₋ᵢ(xᵢ)
        moment = Moment(((check_prediction(held_out, self.estimator, n, r), 1 / n),))
        return SklearnRegression(fitted, r, moment=moment)


@dataclass(frozen=True)
class SklearnRegression:
    """The fitted function x ↦ estimator.predict(x) · directions.

    Parameters
    ----------
    estimator : scikit-learn regressor
        The fitted regressor.
    n_targets : int
        The number r of targets that it predicts.
    directions : ndarray of shape (r, p), default=None
        Orthonormal columns. None stands for the identity.
    moment : Moment, default=None
        The moment 1/n Σᵢ ĥ₋ᵢ(xᵢ)ĥ₋ᵢ(xᵢ)ᵀ of out-of-fold values, of size r, if it was computed.

    Attributes
    ----------
    approximation_error : float
        Always 0: there are no landmarks.

    See Also
    --------
    SklearnRegressor : Fits this function.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from psilearn.regression import SklearnRegression
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> SklearnRegression(LinearRegression().fit(X, X), 1).predict(X[:2]).round(6) + 0.0
    array([[0.],
           [1.]])
    """

    estimator: Any
    n_targets: int
    directions: Array | None = None
    moment: Moment | None = None

    approximation_error: ClassVar[float] = 0.0

    def rotate(self, V: Array | None, compute: Compute) -> SklearnRegression:
        """Return the function x ↦ ĥ(x)V.

        Parameters
        ----------
        V : array of shape (r, p) or None
            Directions. None stands for the identity.
        compute : Compute
            Not used: the regressor decides on its own precision and device.

        Returns
        -------
        SklearnRegression
            The function without moment.

        See Also
        --------
        SklearnRegression.predict : Evaluate the function.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.regression import SklearnRegression
        >>> regression = SklearnRegression(LinearRegression(), 2)
        >>> regression.rotate(np.array([[1.0], [0.0]]), NUMPY).directions.shape
        (2, 1)
        """
        return SklearnRegression(self.estimator, self.n_targets, None if V is None else to_numpy(V))

    def compact(self) -> SklearnRegression:
        """Return the same function with the r² numbers of the moment instead of the out-of-fold values.

        Returns
        -------
        SklearnRegression
            The function with its moment as a matrix.

        See Also
        --------
        SklearnRegression.rotate : Keep some directions only.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn.regression import SklearnRegression
        >>> SklearnRegression(LinearRegression(), 2).compact().moment is None
        True
        """
        return replace(self, moment=None if self.moment is None else self.moment.as_matrix().to_numpy())

    def check(self, X: Samples) -> Samples:
        """Return the inputs unchanged, except for sparse matrices, which become CSR; the regressor validates them.

        Parameters
        ----------
        X : array, CSR matrix or sequence of inputs
            The inputs.

        Returns
        -------
        array, CSR matrix or sequence
            The inputs.

        See Also
        --------
        KernelRegression.check : The validation of a kernel regression.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn.regression import SklearnRegression
        >>> SklearnRegression(LinearRegression(), 1).check(["a text"])
        ['a text']
        """
        return check_inputs(X)

    def predict_blocks(self, X: Samples, compute: Compute) -> Iterator[tuple[slice, Array]]:
        """Evaluate the function block by block, or in one block if the inputs cannot be sliced.

        Parameters
        ----------
        X : array, CSR matrix or sequence of inputs
            Validated inputs.
        compute : Compute
            Not used: the regressor decides on its own precision and device.

        Yields
        ------
        rows : slice
            Consecutive rows.
        values : ndarray of shape (b, p)
            The values ĥ(x) of these rows.

        See Also
        --------
        SklearnRegression.predict : All values as one array.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.regression import SklearnRegression
        >>> X = np.arange(10.0).reshape(-1, 1)
        >>> regression = SklearnRegression(LinearRegression().fit(X, X), 1)
        >>> [rows for rows, _ in regression.predict_blocks(X, NUMPY)]
        [slice(0, 10, None)]
        """
        n, r = n_samples(X), self.n_targets
        blocks = list(iter_blocks(n, 24 * r, MAX_REGRESSION_ROWS)) if is_sliceable(X) else [slice(0, n)]
        for rows in track(blocks, "embedding of inputs", len(blocks)):
            block = take_slice(X, rows)
            values = check_prediction(self.estimator.predict(block), self.estimator, n_samples(block), r)
            yield rows, values if self.directions is None else values @ self.directions

    def predict(self, X: Samples, compute: Compute = NUMPY) -> Array:
        """Evaluate the function.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        compute : Compute, default=NUMPY
            Not used: the regressor decides on its own precision and device.

        Returns
        -------
        array of shape (n, p)
            The values ĥ(x), a tensor if X is one.

        See Also
        --------
        SklearnRegression.predict_blocks : The same block by block.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from psilearn.regression import SklearnRegression
        >>> X = np.arange(10.0).reshape(-1, 1)
        >>> SklearnRegression(LinearRegression().fit(X, X), 1).predict(X).shape
        (10, 1)
        """
        return like_input(X, np.concatenate([block for _, block in self.predict_blocks(self.check(X), compute)]))


def check_regressor(regressor: Any, **replaced: Any) -> None:
    """Raise unless ``regressor`` is a scikit-learn regressor and the parameters that it replaces are None."""
    methods = ("fit", "predict", "get_params")
    if isinstance(regressor, type) or not all(hasattr(regressor, method) for method in methods):
        raise TypeError(
            f"regressor must be a scikit-learn regressor (an object with {', '.join(methods)}), such as Ridge() or a "
            f"pipeline that ends in one; got {regressor!r}."
        )
    if is_classifier(regressor):
        raise TypeError(
            f"regressor must predict coordinates, which are real numbers; {regressor!r} is a classifier. Use the "
            f"regressor of the same family."
        )
    for name, value in replaced.items():
        if value is not None:
            raise ValueError(
                f"regressor replaces {name}: set one of them to None. Got {name}={value!r} and regressor={regressor!r}."
            )


def check_inputs(X: Samples) -> Samples:
    """Return at least one input: sparse matrices as CSR, tensors as arrays, all others unchanged."""
    check_not_empty(X, "X")
    return X.tocsr() if sparse.issparse(X) else tensor_to_numpy(X)


def is_sliceable(X: Samples) -> bool:
    """Return whether a slice of X is a block of its inputs."""
    return hasattr(X, "shape") or isinstance(X, Sequence)


def take_slice(X: Samples, rows: slice) -> Samples:
    """Return a block of inputs in the form of X; rows of a data frame are counted by ``iloc``."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return take(X, rows) if is_sliceable(X) else X


@contextmanager
def explain_errors(estimator: Any, targets: Array) -> Iterator[None]:
    """Add to an error of the regressor what it was fitted on; targets of one column are intended."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)
            yield
    except Exception as error:
        error.add_note(
            f"This happened while regressor = {estimator!r} was fitted on X and {targets.shape[1]} output coordinates. "
            f"Wrap a regressor of a single target in sklearn.multioutput.MultiOutputRegressor."
        )
        raise


def check_prediction(prediction: Any, estimator: Any, n: int, r: int) -> Array:
    """Return predictions as an array (n, r) of finite numbers; a single column may come without its axis."""
    values = np.asarray(to_numpy(prediction), dtype=np.float64)
    if r == 1 and values.shape == (n,):
        values = values[:, None]
    if values.shape != (n, r):
        raise ValueError(
            f"regressor = {estimator!r} must predict one row per input and one column per output coordinate, shape "
            f"{(n, r)}; got shape {values.shape}. Choose a regressor of several targets, or wrap it in "
            f"sklearn.multioutput.MultiOutputRegressor."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"regressor = {estimator!r} predicted values that are not finite. Scale X, or regularize the regressor."
        )
    return values
