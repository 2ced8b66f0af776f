"""One logistic regression per label: by scikit-learn, or all at once on a torch device by Newton's method."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from scipy import sparse
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import safe_sparse_dot

from psilearn.utils import Samples, run_parallel, track, validation
from psilearn_lab.arrays import Array, Pairs, iter_blocks
from psilearn_lab.baselines.baseline import Baseline, DeviceLike
from psilearn_lab.baselines.thresholds import best_label_thresholds, best_threshold

MAX_ITERATIONS = 200  # of L-BFGS, for each label
TOLERANCE = 1e-6  # of the gradient of the mean loss; with 1e-4, labels of a few examples keep their start
MAX_NEWTON_STEPS = 50
MAX_GRADIENT_STEPS = 100  # of conjugate gradients, for each Newton step
MAX_HALVINGS = 30
FORCING = 0.1  # relative residual of a Newton step
SUFFICIENT_DECREASE = 1e-4


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


@dataclass(eq=False, repr=False, kw_only=True)
class LR(LinearLabels):
    """Logistic regression for each label by itself, with an L2 penalty; one threshold for all or for each label.

    It minimizes Σᵢ log(1 + exp(−yᵢₗ(⟨wₗ, xᵢ⟩ + bₗ))) + |wₗ|²/(2C) for each label l, y in {−1, 1}. Candidates are
    compared by their probability.

    Parameters
    ----------
    C : float or sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        The inverse strength C > 0 of the penalty; the value of a sequence with the best F1 on held-out examples is
        chosen.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``C`` and the threshold.
    device : str, torch.device or None, default=None
        The torch device of the computations; None for NumPy on the CPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.
    thresholds : {"one", "per_label"}, default="one"
        Whether all labels have the same threshold or each has its own (:func:`best_label_thresholds`).
    n_jobs : int or None, default=None
        The number of labels that are learned in parallel.

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

    C: float | Sequence[float] = field(default=(0.1, 1.0, 10.0, 100.0), kw_only=False)
    thresholds: str = "one"
    n_jobs: int | None = None

    tuned_parameter: ClassVar[str] = "C"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_option(self.thresholds, ("one", "per_label"), "thresholds")

    def _find_threshold(self, Y: Array, soft: Array) -> float | Array:
        find = best_threshold if self.thresholds == "one" else best_label_thresholds
        return find(Y, soft, self.allows_empty_)

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Pairs | None) -> float:
        self.coef_, self.intercept_ = fit_labels(X, Y, settings, self.n_jobs, self.device)
        return settings


def fit_labels(X: Samples, Y: Array, C: float, n_jobs: int | None, device: DeviceLike = None) -> tuple[Array, Array]:
    """Return the weights (L, d) and the intercepts (L,) of one logistic regression per label.

    Inside ``psilearn.computing(device=...)`` all labels are learned at once on the device.
    """
    if device is not None:
        return fit_labels_at_once(X, Y, C, TOLERANCE, device)
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


def fit_labels_at_once(
    X: Samples, Y: Array, C: float, tolerance: float, device: DeviceLike, allowed: Array | None = None
) -> tuple[Array, Array]:
    """Return the weights (L, d) and the intercepts (L,) of one logistic regression per label.

    All labels share the matrix products: 4nd flops per label and step of conjugate gradients that the label needs. A
    label stops when no entry of its gradient, divided by n, exceeds the tolerance. A label of all examples or of none
    keeps its start: zero weights and the log-odds of (count + ½)/(n + 1). ``allowed`` (d, L) tells which features a
    label may use.
    """
    import torch

    def to_device(A: Any) -> Any:
        return torch.as_tensor(A, dtype=torch.float64, device=device)

    features = np.hstack([X.toarray() if sparse.issparse(X) else X, np.ones((X.shape[0], 1))])
    A = to_device(features)
    coef, counts = np.zeros((features.shape[1], Y.shape[1])), Y.sum(axis=0)
    coef[-1] = logit((counts + 0.5) / (len(Y) + 1))
    varying = np.flatnonzero((counts > 0) & (counts < len(Y)))
    penalty = np.full((features.shape[1], 1), 1 / C)
    penalty[-1] = 0  # of the intercepts
    for block in iter_blocks(len(varying), 8 * 16 * sum(features.shape)):
        labels = varying[block]
        mask = np.ones((features.shape[1], len(labels)))
        if allowed is not None:
            mask[:-1] = allowed[:, labels]
        T, W, P, M = map(to_device, (Y[:, labels], coef[:, labels], penalty, mask))
        coef[:, labels] = _newton(_Problem(A, T, P, M), W, tolerance * len(Y)).cpu().numpy()
    return coef[:-1].T, coef[-1]


@dataclass(frozen=True)
class _Problem:
    """Minimize Σᵢ log(1 + exp(sᵢ)) − tᵢsᵢ + ½ Σⱼ penaltyⱼ wⱼ² for each column w of W, where s = Aw."""

    A: Any  # (n, d)
    T: Any  # (n, L)
    penalty: Any  # (d, 1)
    mask: Any  # (d, L), one for the features of a label

    def take(self, labels: Any) -> _Problem:
        """Return the problem of some labels."""
        return _Problem(self.A, self.T[:, labels], self.penalty, self.mask[:, labels])

    def objective(self, W: Any, S: Any) -> Any:
        """Return the objective of each label, (L,)."""
        import torch

        return (torch.nn.functional.softplus(S) - self.T * S).sum(0) + 0.5 * (self.penalty * W * W).sum(0)

    def gradient(self, W: Any, S: Any) -> Any:
        """Return the gradient, (d, L)."""
        return self.mask * (self.A.T @ (S.sigmoid() - self.T) + self.penalty * W)

    def newton_direction(self, G: Any, S: Any) -> Any:
        """Return an approximate solution V of HV = −G with the Hessian H of each label."""
        P = S.sigmoid()
        D = P * (1 - P)
        diagonal = self.mask * ((self.A * self.A).T @ D + self.penalty) + (1 - self.mask)
        return _conjugate_gradients(_NewtonSystem(self.A, D, self.penalty, self.mask, diagonal + 1e-12), -G)


@dataclass(frozen=True)
class _NewtonSystem:
    """The Hessians H = Aᵀ diag(δ) A + diag(penalty) of labels, δ a column of D, on the features of each label."""

    A: Any  # (n, d)
    D: Any  # (n, L)
    penalty: Any  # (d, 1)
    mask: Any  # (d, L)
    diagonal: Any  # (d, L), of each H

    def take(self, labels: Any) -> _NewtonSystem:
        """Return the Hessians of some labels."""
        return _NewtonSystem(self.A, self.D[:, labels], self.penalty, self.mask[:, labels], self.diagonal[:, labels])

    def multiply(self, V: Any) -> Any:
        """Return the product of each H and its column of V, (d, L)."""
        return self.mask * (self.A.T @ (self.D * (self.A @ V)) + self.penalty * V)


def _newton(problem: _Problem, W: Any, tolerance: float) -> Any:
    """Return the minimizers, from the start W; labels whose gradient is small enough are left out of further steps."""
    W = W * problem.mask
    S = problem.A @ W
    for _ in range(MAX_NEWTON_STEPS):
        G = problem.gradient(W, S)
        active = (G.abs().amax(0) > tolerance).nonzero()[:, 0]
        if not len(active):
            break
        part, w, s, g = problem.take(active), W[:, active], S[:, active], G[:, active]
        V = part.newton_direction(g, s)
        AV = problem.A @ V
        steps = _find_steps(part, w, s, V, AV, (g * V).sum(0))
        W[:, active], S[:, active] = w + steps * V, s + steps * AV
    return W


def _conjugate_gradients(system: _NewtonSystem, B: Any) -> Any:
    """Solve HV = B for each column, preconditioned by the diagonal, until its residual is a tenth of B.

    A column that is solved is left out of further steps, so it costs only its own number of steps.
    """
    V, R, goal = B * 0, B, FORCING * B.norm(dim=0)
    columns = (goal >= 0).nonzero()[:, 0]  # all of them
    Q = R / system.diagonal
    rz = (R * Q).sum(0)
    for _ in range(MAX_GRADIENT_STEPS):
        running = (R.norm(dim=0) > goal).nonzero()[:, 0]
        if len(running) < len(columns):
            columns, goal, rz = columns[running], goal[running], rz[running]
            R, Q, system = R[:, running], Q[:, running], system.take(running)
        if not len(columns):
            break
        HQ = system.multiply(Q)
        length = rz / (Q * HQ).sum(0).clamp_min(1e-300)
        V[:, columns] += length * Q
        R = R - length * HQ
        Z = R / system.diagonal
        previous, rz = rz, (R * Z).sum(0)
        Q = Z + (rz / previous.clamp_min(1e-300)) * Q
    return V


def _find_steps(problem: _Problem, W: Any, S: Any, V: Any, AV: Any, slopes: Any) -> Any:
    """Return a step for each label that decreases its objective sufficiently, found by halving; (L,)."""
    start = problem.objective(W, S)
    steps = slopes * 0 + 1
    for _ in range(MAX_HALVINGS):
        values = problem.objective(W + steps * V, S + steps * AV)
        failed = values > start + SUFFICIENT_DECREASE * steps * slopes + 1e-12 * start.abs()
        if not failed.any():
            break
        steps = steps * (1 - 0.5 * failed.double())
    return steps
