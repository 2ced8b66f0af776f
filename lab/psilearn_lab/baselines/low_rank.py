"""Posterior-regularized low-rank learning of labels that are annotated incompletely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.utils.extmath import safe_sparse_dot

from psilearn.utils import Samples, track, validation
from psilearn_lab.arrays import Array, Pairs
from psilearn_lab.baselines.logistic import LinearLabels

PENALTY = 4.0  # ρ of the splitting: the smallest curvature of the relative entropy
TOLERANCE = 1e-7  # of the difference of both parts, and of two successive steps, at which the splitting stops
MAX_SPLITTING_STEPS = 200  # in each round
NEWTON_STEPS = 6
MAX_ITERATIONS = 40  # of L-BFGS in each round, started from the weights of the previous round


@dataclass(eq=False, repr=False, kw_only=True)
class PRLR(LinearLabels):
    """Logistic regressions onto soft labels whose matrix is pulled toward low rank.

    Annotators omit labels. With the probability p = σ(⟨wₗ, xᵢ⟩ + bₗ) of a label and the log-odds a(y) that an
    annotation y adds, the true labels have the posterior probabilities

        Q = argmin KL(Q ‖ P′) + τ‖Q‖_*,   logit p′ = logit p + a(y),

    where the nuclear norm expresses that labels are correlated: the matrix of all labels has low rank. Rounds of
    expectation (Q for the current P; a convex problem, solved by splitting it into logits and singular values) and
    maximization (logistic regressions onto Q) learn w. If no label is omitted and no wrong label is added, then Q = Y,
    and the model is that of :class:`LR`.

    The article defines what is regularized and that it is learned by expectation maximization; the noise model of the
    annotations and the solver are choices of this library. Cost per round: 10 to 100 times (at most 200) an
    eigendecomposition of order L and 6nL² flops, and about 50 passes over X; memory: about 13nL numbers, and 40 times
    the number of weights for L-BFGS. Candidates are compared by their probability.

    Parameters
    ----------
    rank_penalty : float or sequence of float, default=(0.3, 1.0, 3.0)
        The weight τ ≥ 0 of the nuclear norm, in units of singular values of Q; the best value of a sequence is chosen
        on held-out examples.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``rank_penalty`` and the threshold.
    device : str, torch.device or None, default=None
        Accepted for all baselines; NumPy computes.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.
    missing : float, default=0.1
        The share in [0, 1) of true labels that annotators omit.
    spurious : float, default=0.001
        The share in [0, 1) of wrong labels that annotators add.
    C : float, default=10.0
        The inverse strength C > 0 of the L2 penalty |w|²/(2C) of the logistic regressions.
    n_rounds : int, default=5
        The number of rounds of expectation and maximization.

    Attributes
    ----------
    coef_ : ndarray of shape (L, d)
        The weights of each label.
    intercept_ : ndarray of shape (L,)
        The intercept of each label.
    posterior_ : ndarray of shape (n, L)
        The posterior probabilities Q of the training examples.
    rank_penalty_ : float
        The chosen weight of the nuclear norm.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. If not, the label with the highest score is
        predicted where no score reaches the threshold.
    threshold_ : float
        The smallest probability of a predicted label.
    validation_error_ : float
        1 − F1 on the held-out examples.

    See Also
    --------
    LR : Logistic regressions onto the annotations themselves.

    References
    ----------
    Lin, Singh, He, Taskar and Zettlemoyer, *Multi-label Learning with Posterior Regularization*, NIPS workshop on
    modern machine learning and natural language processing, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import PRLR
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Y = (X[:, [0, 0, 1]] > 0).astype(int)
    >>> PRLR(rank_penalty=0.1, C=10.0).fit(X, Y).predict([[2.0, -2.0, 0.0]])
    array([[1, 1, 0]])
    """

    rank_penalty: float | Sequence[float] = field(default=(0.3, 1.0, 3.0), kw_only=False)
    missing: float = 0.1
    spurious: float = 0.001
    C: float = 10.0
    n_rounds: int = 5

    tuned_parameter: ClassVar[str] = "rank_penalty"
    _check_tuned = staticmethod(validation.check_non_negative)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_regularization(self.C, "C")
        validation.check_count(self.n_rounds, "n_rounds")
        for name in ("missing", "spurious"):
            if validation.check_fraction(getattr(self, name), name) == 1:
                raise ValueError(f"{name} must be below 1: at 1 the annotations contain no information.")

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Pairs | None) -> float:
        with np.errstate(divide="ignore"):  # annotations without errors are certain: a(y) = ±∞
            given = np.log1p(-self.missing) - np.log(self.spurious)
            absent = np.log(self.missing) - np.log1p(-self.spurious)
        annotations = np.where(Y > 0, given, absent)  # a(y)
        Q = np.where(Y > 0, 1.0, 0.0)
        weights = np.zeros((X.shape[1] + 1, Y.shape[1]))
        shares = (Y.sum(axis=0) + 0.5) / (len(Y) + 1)
        weights[-1] = logit(shares)
        for _ in track(range(self.n_rounds), f"rounds, rank_penalty = {settings:g}", self.n_rounds):
            weights = fit_soft_logistic(X, Q, float(self.C), weights)
            Q = solve_posterior(_scores(X, weights) + annotations, settings)
        self.coef_, self.intercept_ = weights[:-1].T.copy(), weights[-1].copy()
        self.posterior_ = Q
        return settings


def fit_soft_logistic(X: Samples, Q: Array, C: float, start: Array) -> Array:
    """Return the weights (d + 1, L) that minimize the penalized cross-entropy with soft targets Q (n, L).

    The objective is Σᵢₗ [log(1 + exp sᵢₗ) − qᵢₗsᵢₗ] + |W|²/(2C) with s = XW + b, for all labels together, minimized
    from ``start``. The last row of the weights is the intercepts b.
    """

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        scores = _scores(X, weights)
        value = np.sum(np.logaddexp(0, scores)) - np.vdot(Q, scores) + np.sum(weights[:-1] ** 2) / (2 * C)
        errors = expit(scores) - Q
        gradient = np.empty_like(weights)
        gradient[:-1] = safe_sparse_dot(X.T, errors) + weights[:-1] / C
        gradient[-1] = errors.sum(axis=0)
        return float(value), gradient.ravel()

    solution = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS})
    return np.asarray(solution.x).reshape(start.shape)


def solve_posterior(scores: Array, rank_penalty: float) -> Array:
    """Return the minimizer Q in [0, 1] of KL(Q ‖ σ(scores)) + τ‖Q‖_*, shape (n, L); scores ±∞ stay 0 and 1.

    The problem is split into Q = Z (ADMM): Q minimizes KL + ρ/2|Q − Z + U|², a scalar equation in each logit; Z has the
    singular values of Q + U, each reduced by τ/ρ; U sums the differences.
    """
    if rank_penalty == 0:
        return np.asarray(expit(scores))
    free = np.isfinite(scores)
    targets = np.where(free, scores, 0.0)
    Q: Array = expit(scores)
    U, Z = np.zeros_like(Q), Q
    for _ in range(MAX_SPLITTING_STEPS):
        previous, Z = Z, shrink_singular_values(Q + U, rank_penalty / PENALTY)
        t = logit(np.clip(Q, 1e-12, 1 - 1e-12))
        right = targets + PENALTY * (Z - U)
        for _ in range(NEWTON_STEPS):  # t + ρσ(t) = logit p′ + ρ(Z − U), increasing in t
            q = expit(t)
            t -= (t + PENALTY * q - right) / (1 + PENALTY * q * (1 - q))
        Q = np.where(free, expit(t), Q)
        U += Q - Z
        if max(np.max(np.abs(Q - Z)), np.max(np.abs(Z - previous))) < TOLERANCE:
            break
    return Q


def shrink_singular_values(A: Array, amount: float) -> Array:
    """Return A with singular values max(s − amount, 0), the minimizer of ½|Z − A|² + amount·‖Z‖_*, from AᵀA."""
    squares, V = eigh(A.T @ A, check_finite=False)
    values = np.sqrt(np.maximum(squares, 0))
    positive = values > amount  # after shrinking
    V = V[:, positive]
    shrunk: Array = (A @ (V * (1 - amount / values[positive]))) @ V.T
    return shrunk


def _scores(X: Samples, weights: Array) -> Array:
    """Return XW + b, where b is the last row of the weights."""
    scores: Array = np.asarray(safe_sparse_dot(X, weights[:-1])) + weights[-1]
    return scores
