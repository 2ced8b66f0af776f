"""One logistic regression a label."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import safe_sparse_dot

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples
from psilearn.baselines.baseline import Baseline


class LinearLabels(Baseline):
    """Labels of probability σ(⟨wₗ, x⟩ + bₗ), whatever has found w and b; candidates are judged by their probability."""

    _binary_only = True
    coef_: Array  # (L, d)
    intercept_: Array  # (L,)

    def _scores(self, X: Samples) -> Array:
        return np.asarray(safe_sparse_dot(X, self.coef_.T)) + self.intercept_

    def _soft(self, X: Samples) -> Array:
        return expit(self._scores(X))

    def _linear_costs(self, X: Samples) -> Array:
        return -self._scores(X)  # −log p(y|x) = −⟨score, y⟩ + Σ log(1 + exp(score))

    def _candidate_costs(self, C: Samples) -> Array:
        return np.zeros(C.shape[0])


class LR(LinearLabels):
    """Logistic regression for each label by itself, with an L2 penalty; one threshold for all labels.

    Minimises Σᵢ log(1 + exp(−yᵢₗ(⟨wₗ, xᵢ⟩ + bₗ))) + |wₗ|²/(2C) for each label l, y in {−1, 1}. Candidates are judged by
    their probability.

    Parameters
    ----------
    C : float > 0, or list of them
        of a list, the value with the best F1 on held-out examples is taken.
    validation_fraction : float
        the share of examples held out to choose C and the threshold.
    n_jobs : int or None
        labels learned at a time.
    random_state : int, RandomState or None
        of the examples held out.
    verbose : int

    Attributes
    ----------
    coef_, intercept_ : arrays (L, d), (L,)
    C_ : float
    threshold_ : float
    validation_error_ : float
        1 − F1 on the held-out examples.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import LR
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Y = (X[:, :2] > 0).astype(int)
    >>> LR(C=10.0).fit(X, Y).predict([[2.0, -2.0, 0.0]])
    array([[1, 0]])
    """

    _tuned = "C"

    def __init__(
        self,
        C: float | Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._values():
            validation.check_positive(value, "C")

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Any) -> float:
        columns = track(Y.T, f"logistic regressions, C = {settings:g}", Y.shape[1])
        learned = Parallel(n_jobs=self.n_jobs)(delayed(_one_label)(X, column, settings) for column in columns)
        self.coef_ = np.array([coef for coef, _ in learned])
        self.intercept_ = np.array([intercept for _, intercept in learned])
        return settings


def _one_label(X: Samples, y: Array, C: float) -> tuple[Array, float]:
    """Return weights and intercept; a label that all examples have, or none, is as likely as (count + ½)/(n + 1)."""
    share = (y.sum() + 0.5) / (len(y) + 1)
    if y.min() == y.max():
        return np.zeros(X.shape[1]), float(logit(share))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits do not matter here
        model = LogisticRegression(C=C, max_iter=200).fit(X, y)
    return model.coef_[0], float(model.intercept_[0])
