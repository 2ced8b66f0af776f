"""Rows of features on a common scale: the same grids of γ and C suit all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler, normalize

from psilearn.utils import Samples
from psilearn_lab.experiments.protocol import Data

SCALINGS = ("rows", "unit rows", "columns")


def scale_data(data: Data, scaling: str) -> Data:
    """Return the data with scaled inputs; constants are taken from the training inputs.

    "rows" are the rows as they are, "unit rows" have length one, and "columns" are standardized. Then one factor gives
    the training rows a mean squared length of one.
    """
    X, X_test = _transform(data.X, data.X_test, scaling)
    factor = 1 / np.sqrt(np.mean(_squared_lengths(X)))
    return Data(X * factor, data.Y, X_test * factor, data.Y_test, data.unlabeled)


def _transform(X: Samples, X_test: Samples, scaling: str) -> tuple[Any, Any]:
    if scaling == "rows":
        return X, X_test
    if scaling == "unit rows":
        return normalize(X), normalize(X_test)
    if scaling == "columns":
        scaler = StandardScaler().fit(X)
        return scaler.transform(X), scaler.transform(X_test)
    raise ValueError(f"There is no scaling {scaling!r}; there are {', '.join(SCALINGS)}.")


def _squared_lengths(X: Samples) -> Any:
    squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
    return np.asarray(squares.sum(axis=1)).ravel()
