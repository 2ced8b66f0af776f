"""One logistic regression per label."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from joblib import delayed
from scipy import sparse
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import safe_sparse_dot

from psilearn._backend import current_compute
from psilearn._linalg import Array
from psilearn.utils import Pairs, RandomStateLike, Samples, run_parallel, track, validation
from psilearn_lab.baselines.baseline import Baseline
from psilearn_lab.baselines.batched_logistic import fit_labels_at_once
from psilearn_lab.baselines.thresholds import best_label_thresholds, best_threshold

MAX_ITERATIONS = 200  # of L-BFGS, for each label
TOLERANCE = 1e-6  # of the gradient of the mean loss; with 1e-4, labels of a few examples keep their start


class LinearLabels(Baseline):
    """Labels with the probabilities σ(⟨wₗ, x⟩ + bₗ); candidates are compared by their probability."""

    _labels_only: ClassVar[bool] = True
    coef_: Array  # (L, d)
    intercept_: Array  # (L,)

    def _scores(self, X: Samples) -> Array:
        """Return the log-odds ⟨wₗ, x⟩ + bₗ, shape (len(X), L)."""
        return np.asarray(safe_sparse_dot(X, self.coef_.T)) + self.intercept_

    def _predict_soft(self, X: Samples) -> Array:
        return np.asarray(expit(self._scores(X)))

    def _linear_costs(self, X: Samples) -> Array:
        return -self._scores(X)  # −log p(y|x) = −⟨score, y⟩ + Σ log(1 + exp(score))

    def _candidate_costs(self, C: Samples) -> Array:
        return np.zeros(C.shape[0])


class LR(LinearLabels):
    """Logistic regression for each label by itself, with an L2 penalty; one threshold for all or for each label.

    It minimizes Σᵢ log(1 + exp(−yᵢₗ(⟨wₗ, xᵢ⟩ + bₗ))) + |wₗ|²/(2C) for each label l, y in {−1, 1}. Candidates are
    compared by their probability.

    Parameters
    ----------
    C : float or sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        The inverse strength C > 0 of the penalty; the value of a sequence with the best F1 on held-out examples is
        chosen.
    thresholds : {"one", "per_label"}, default="one"
        Whether all labels have the same threshold or each has its own (:func:`best_label_thresholds`).
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``C`` and the threshold.
    n_jobs : int or None, default=None
        The number of labels that are learned in parallel.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (L, d)
        The weights of each label.
    intercept_ : ndarray of shape (L,)
        The intercept of each label.
    C_ : float
        The chosen inverse strength of the penalty.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. If not, the label with the highest score is
        predicted where no score reaches the threshold.
    threshold_ : float or ndarray of shape (L,)
        The smallest probability of a predicted label.
    validation_error_ : float
        1 − F1 on the held-out examples.

    See Also
    --------
    PRLR : Logistic regressions for labels that are annotated incompletely.
    NN : A network in place of a linear function.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import LR
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Y = (X[:, :2] > 0).astype(int)
    >>> LR(C=10.0).fit(X, Y).predict([[2.0, -2.0, 0.0]])
    array([[1, 0]])
    """

    tuned_parameter: ClassVar[str] = "C"

    def __init__(
        self,
        C: float | Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        *,
        thresholds: str = "one",
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: RandomStateLike = 0,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.thresholds = thresholds
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_regularization()
        validation.check_option(self.thresholds, ("one", "per_label"), "thresholds")

    def _find_threshold(self, Y: Array, soft: Array) -> float | Array:
        find = best_threshold if self.thresholds == "one" else best_label_thresholds
        return find(Y, soft, self.allows_empty_)

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Pairs | None) -> float:
        self.coef_, self.intercept_ = fit_labels(X, Y, settings, self.n_jobs)
        return settings


def fit_labels(X: Samples, Y: Array, C: float, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the weights (L, d) and the intercepts (L,) of one logistic regression per label.

    Inside ``psilearn.computing(device=...)`` all labels are learned at once on the device.
    """
    compute = current_compute()
    if compute.device is not None:
        return fit_labels_at_once(X, Y, C, TOLERANCE, compute)
    columns = track(Y.T, f"logistic regressions, C = {C:g}", Y.shape[1])
    fitted = list(run_parallel((delayed(fit_label)(X, column, C) for column in columns), n_jobs))
    coef = np.array([coef for coef, _ in fitted]).reshape(Y.shape[1], X.shape[1])
    return coef, np.array([intercept for _, intercept in fitted])


def append_columns(X: Samples, columns: Array) -> Samples:
    """Return the rows of X with further columns, as CSR rows if X is sparse."""
    return sparse.hstack([X, columns], format="csr") if sparse.issparse(X) else np.hstack([X, columns])


def fit_label(X: Samples, y: Array, C: float) -> tuple[Array, float]:
    """Return weights and intercept; a label of all examples or of none gets the probability (count + ½)/(n + 1)."""
    share = (y.sum() + 0.5) / (len(y) + 1)
    if y.min() == y.max():
        return np.zeros(X.shape[1]), float(logit(share))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits do not matter for a baseline
        model = LogisticRegression(C=C, max_iter=MAX_ITERATIONS, tol=TOLERANCE).fit(X, y)
    return model.coef_[0], float(model.intercept_[0])
