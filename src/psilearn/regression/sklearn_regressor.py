"""Any scikit-learn regressor as ĥ: a forest, a neural network, a pipeline that takes raw inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import KFold, cross_val_predict

from psilearn._backend import off_device, row_blocks, to_host
from psilearn._linalg import Array
from psilearn._linalg.moments import MixedMoment
from psilearn._utils.progress import stage, track
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels.kernel import refuse_empty
from psilearn.regression.kernel_regression import Targets

FOLDS = 5  # of the out-of-fold values ĥ₋ᵢ(xᵢ)
BLOCK_ROWS = 4096  # inputs that are predicted together at the most


class EstimatorRegressor:
    """ĥ is what a scikit-learn regressor learns from the pairs (xᵢ, vᵢ), a copy of it that is fitted on all of them.

    A flexible regressor reproduces the targets that it has seen, so that the moment of its fitted values would be that
    of the outputs and say nothing of what can be predicted. The moment is therefore 1/n Σ ĥ₋ᵢ(xᵢ)ĥ₋ᵢ(xᵢ)ᵀ with ĥ₋ᵢ
    fitted without the fold of pair i: five further fits, made only where the moment is asked for.

    Parameters
    ----------
    estimator : scikit-learn regressor of several targets
        it alone judges the inputs.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Samples) -> Self:
        """Keep the inputs: nothing can be done without targets."""
        self.X_fit_ = X
        return self

    def regress(self, V: Targets, with_moment: bool = True) -> EstimatorRegression:
        """Regress onto the targets V (n, r), nr numbers, and nr more for the moment."""
        targets = np.asarray(to_host(V[:]), dtype=np.float64)
        n, r = targets.shape
        if r == 0:
            raise ValueError("Every output has length zero in output_kernel: there is nothing for regressor to learn.")
        if with_moment and n < 2:
            raise ValueError(
                "regressor needs at least 2 pairs where supervision > 0, to predict each of them from the others; X "
                "has 1 sample. Give more pairs, or set supervision=0."
            )
        name = type(self.estimator).__name__
        with _explained(self.estimator, targets):
            with stage(f"{name} onto {r:,} coordinates"):
                fitted = clone(self.estimator).fit(self.X_fit_, targets)
            if not with_moment:
                return EstimatorRegression(fitted, None)
            folds = KFold(min(FOLDS, n), shuffle=True, random_state=0)
            with stage(f"{name} out of {folds.n_splits} folds"):
                held_out = cross_val_predict(self.estimator, self.X_fit_, targets, cv=folds)  # ĥ₋ᵢ(xᵢ)
        return EstimatorRegression(fitted, MixedMoment(((_checked(held_out, self.estimator, n, r), 1 / n),)))


@dataclass(frozen=True)
class EstimatorRegression:
    """x ↦ estimator.predict(x), fitted onto targets in r coordinates."""

    estimator: Any
    moment: MixedMoment | None  # 1/n Σᵢ ĥ₋ᵢ(xᵢ)ĥ₋ᵢ(xᵢ)ᵀ out of fold, (r, r); None where it was not asked for
    approximation_error: float = 0.0  # there are no landmarks

    def settled(self) -> EstimatorRegression:
        """Return the same regression with the r² numbers of the moment in place of the out-of-fold values."""
        return replace(self, moment=None if self.moment is None else self.moment.summed())

    def parked(self) -> EstimatorRegression:
        """Return the same regression with its moment in NumPy."""
        return replace(self, moment=None if self.moment is None else self.moment.parked())

    def attributes(self, V: Array | None) -> dict[str, Any]:
        """Return the fitted regressor and the directions (r, p) that its predictions are turned into."""
        return {"regressor_": self.estimator, "directions_": None if V is None else to_host(V)}


@dataclass(frozen=True)
class EstimatorPredictor:
    """x ↦ estimator.predict(x) V."""

    estimator: Any
    directions: Array | None  # (r, p)  V; None for the identity
    n_components: int  # p

    def check(self, X: Samples) -> Samples:
        """Return the inputs as they are, the rest is for the regressor to judge; sparse ones so that they have rows."""
        return check_inputs(X)

    def predictions(self, X: Samples) -> Iterator[tuple[slice, Array]]:
        """Yield rows and z(x), in blocks within ``working_memory``; one block where inputs cannot be cut."""
        r = self.n_components if self.directions is None else len(self.directions)
        whole = [slice(0, n_samples(X))]
        blocks = list(row_blocks(n_samples(X), 24 * r, BLOCK_ROWS)) if _has_rows(X) else whole
        for rows in track(blocks, "embedding of inputs", len(blocks)):
            some = _cut(X, rows)
            prediction = _checked(self.estimator.predict(some), self.estimator, n_samples(some), r)
            yield rows, prediction if self.directions is None else prediction @ self.directions


def check_regressor(regressor: Any, **replaced: Any) -> None:
    """Refuse what is no scikit-learn regressor, and parameters beside it whose place it takes."""
    methods = ("fit", "predict", "get_params")
    if isinstance(regressor, type) or not all(hasattr(regressor, method) for method in methods):
        raise TypeError(
            f"regressor must be a scikit-learn regressor (an object with {', '.join(methods)}), such as Ridge() or a "
            f"pipeline that ends in one; got {regressor!r}."
        )
    if is_classifier(regressor):
        raise TypeError(
            f"regressor must predict coordinates, which are real numbers; {regressor!r} is a classifier. Use the "
            f"regressor of its kind."
        )
    for name, value in replaced.items():
        if value is not None:
            raise ValueError(
                f"regressor takes the place of {name}: set one of them to None. Got {name}={value!r} and "
                f"regressor={regressor!r}."
            )


def check_inputs(X: Samples) -> Samples:
    """Return at least one input; sparse ones by rows, tensors in NumPy, all others as they came."""
    refuse_empty(X, "X")
    return X.tocsr() if sparse.issparse(X) else off_device(X)


def _has_rows(X: Samples) -> bool:
    """Return whether a slice of X is a block of its inputs."""
    return hasattr(X, "shape") or isinstance(X, Sequence)


def _cut(X: Samples, rows: slice) -> Samples:
    """Return a block of inputs in the form in which they came; a data frame counts its rows in ``iloc``."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return take(X, rows) if _has_rows(X) else X


@contextmanager
def _explained(estimator: Any, targets: Array) -> Iterator[None]:
    """Say beside an error of the regressor what it was asked for; (n, 1) is meant where it wonders at one column."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)
            yield
    except Exception as error:
        error.add_note(
            f"This happened where regressor = {estimator!r} was fitted on X and {targets.shape[1]} output coordinates. "
            f"A regressor of a single target needs sklearn.multioutput.MultiOutputRegressor around it."
        )
        raise


def _checked(prediction: Any, estimator: Any, n: int, r: int) -> Array:
    """Return predictions as an array (n, r) of finite numbers; one column may have come without its axis."""
    values = np.asarray(to_host(prediction), dtype=np.float64)
    if r == 1 and values.shape == (n,):
        values = values[:, None]
    if values.shape != (n, r):
        raise ValueError(
            f"regressor = {estimator!r} must predict one row an input and one column an output coordinate, shape "
            f"{(n, r)}; got shape {values.shape}. Choose a regressor of several targets, or wrap it in "
            f"sklearn.multioutput.MultiOutputRegressor."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"regressor = {estimator!r} predicted values that are not finite. Scale X, or regularise the regressor."
        )
    return values
