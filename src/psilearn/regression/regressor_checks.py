"""What a scikit-learn regressor is given and returns: validation, blocks of inputs, and errors that name it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning

from psilearn._backend import tensor_to_numpy, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples, check_not_empty, take


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
