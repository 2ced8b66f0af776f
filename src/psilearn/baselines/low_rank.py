"""Posterior-regularised low-rank learning of labels that are annotated incompletely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.utils.extmath import safe_sparse_dot

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples
from psilearn.baselines.logistic import LinearLabels

PENALTY = 4.0  # of the splitting: the least curvature of the relative entropy
AGREEMENT = 1e-7  # of the two parts, and of a part with itself a step before, at which splitting ends
SPLITTINGS = 200  # steps of it in a round, at most
NEWTON_STEPS = 6
ITERATIONS = 40  # of L-BFGS in a round, from where the last one ended


class PRLR(LinearLabels):
    """Logistic regressions whose soft predictions are drawn towards low rank.

    Annotators leave labels out. With p = σ(⟨wₗ, xᵢ⟩ + bₗ) the probability of a label and a(y) the log-odds that an
    annotation y speaks for it, the true labels have the posterior probabilities

        Q = argmin KL(Q ‖ P′) + τ‖Q‖_*,   logit p′ = logit p + a(y),

    where the nuclear norm says that labels are correlated: the matrix of all of them has low rank. Rounds of
    expectation (Q for the present P; a convex problem, solved by splitting it into logits and singular values) and
    maximisation (logistic regressions onto Q) learn w. With no label left out or made up Q is Y, and this is
    :class:`LR`.

    The article says what is regularised and that EM learns it; the noise of annotations and the solver are ours. Cost
    of a round: 10 to 100 times (200 at most) an eigendecomposition of order L and 6nL² flops, and about 50 passes over
    X; memory: about 13nL numbers, and 40 times the number of weights for L-BFGS.

    Parameters
    ----------
    rank_penalty : float ≥ 0, or list of them
        τ, in singular values of Q; of a list, the best on held-out examples is taken.
    missing : float in [0, 1)
        the share of true labels that annotators leave out.
    spurious : float in [0, 1)
        the share of labels, among those that are not true, that they give.
    C : float > 0
        inverse strength of the L2 penalty, as in :class:`LR`.
    n_rounds : int
    validation_fraction, random_state, verbose :
        as in :class:`LR`.

    Attributes
    ----------
    coef_, intercept_ : arrays (L, d), (L,)
    posterior_ : array (n, L)
        Q over the training examples.
    rank_penalty_, threshold_, validation_error_ : float

    References
    ----------
    Lin, Singh, He, Taskar and Zettlemoyer, *Multi-label Learning with Posterior Regularization*, NIPS workshop on
    modern machine learning and natural language processing, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import PRLR
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Y = (X[:, [0, 0, 1]] > 0).astype(int)
    >>> PRLR(rank_penalty=0.1, C=10.0).fit(X, Y).predict([[2.0, -2.0, 0.0]])
    array([[1, 1, 0]])
    """

    _tuned = "rank_penalty"

    def __init__(
        self,
        rank_penalty: float | Sequence[float] = (0.3, 1.0, 3.0),
        missing: float = 0.1,
        spurious: float = 0.001,
        C: float = 10.0,
        n_rounds: int = 5,
        validation_fraction: float = 0.2,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.rank_penalty = rank_penalty
        self.missing = missing
        self.spurious = spurious
        self.C = C
        self.n_rounds = n_rounds
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._values():
            validation.check_non_negative(value, "rank_penalty")
        validation.check_positive(self.C, "C")
        validation.check_count(self.n_rounds, "n_rounds")
        for name in ("missing", "spurious"):
            if validation.check_fraction(getattr(self, name), name) == 1:
                raise ValueError(f"{name} must be below 1: annotations would say nothing.")

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Any) -> float:
        with np.errstate(divide="ignore"):  # annotations that are never wrong decide: a(y) = ±∞
            given = np.log1p(-self.missing) - np.log(self.spurious)
            absent = np.log(self.missing) - np.log1p(-self.spurious)
        annotations = np.where(Y > 0, given, absent)  # a(y)
        Q = np.where(Y > 0, 1.0, 0.0)
        weights = np.zeros((X.shape[1] + 1, Y.shape[1]))
        shares = (Y.sum(axis=0) + 0.5) / (len(Y) + 1)
        weights[-1] = logit(shares)
        for _ in track(range(self.n_rounds), f"rounds, rank_penalty = {settings:g}", self.n_rounds):
            weights = soft_logistic_regressions(X, Q, float(self.C), weights)
            Q = regularised_posterior(_scores(X, weights) + annotations, settings)
        self.coef_, self.intercept_ = weights[:-1].T.copy(), weights[-1].copy()
        self.posterior_ = Q
        return settings


def soft_logistic_regressions(X: Samples, Q: Array, C: float, start: Array) -> Array:
    """Return the weights (d + 1, L), the last row the intercepts, that minimise the cross-entropy with targets Q.

    Σᵢₗ [log(1 + exp sᵢₗ) − qᵢₗsᵢₗ] + |W|²/(2C) with s = XW + b; all labels at once, from ``start``.
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

    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return np.asarray(found.x).reshape(start.shape)


def regularised_posterior(scores: Array, rank_penalty: float) -> Array:
    """Return argmin over Q in [0, 1] of KL(Q ‖ σ(scores)) + τ‖Q‖_*, shape (n, L); ±∞ scores are kept as 0 and 1.

    Splitting Q = Z (ADMM): Q minimises KL + ρ/2|Q − Z + U|², a scalar equation in each logit; Z has the singular values
    of Q + U less τ/ρ; U sums the differences.
    """
    if rank_penalty == 0:
        return expit(scores)
    free = np.isfinite(scores)
    targets = np.where(free, scores, 0.0)
    Q = expit(scores)
    U, Z = np.zeros_like(Q), Q
    for _ in range(SPLITTINGS):
        before, Z = Z, shrink_singular_values(Q + U, rank_penalty / PENALTY)
        t = logit(np.clip(Q, 1e-12, 1 - 1e-12))
        wanted = targets + PENALTY * (Z - U)
        for _ in range(NEWTON_STEPS):  # t + ρσ(t) = logit p′ + ρ(Z − U), increasing in t
            q = expit(t)
            t -= (t + PENALTY * q - wanted) / (1 + PENALTY * q * (1 - q))
        Q = np.where(free, expit(t), Q)
        U += Q - Z
        if max(np.max(np.abs(Q - Z)), np.max(np.abs(Z - before))) < AGREEMENT:
            break
    return Q


def shrink_singular_values(A: Array, by: float) -> Array:
    """Return A with singular values max(s − by, 0): argmin ½|Z − A|² + by·‖Z‖_*. From AᵀA, of order L."""
    squares, V = eigh(A.T @ A, check_finite=False)
    values = np.sqrt(np.maximum(squares, 0))
    kept = values > by
    V = V[:, kept]
    return (A @ (V * (1 - by / values[kept]))) @ V.T


def _scores(X: Samples, weights: Array) -> Array:
    return np.asarray(safe_sparse_dot(X, weights[:-1])) + weights[-1]
