"""Many logistic regressions at once on a torch device, by Newton's method with conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logit

from psilearn._backend import Compute, to_numpy
from psilearn._linalg import Array
from psilearn.utils import Samples

MAX_NEWTON_STEPS = 50
MAX_GRADIENT_STEPS = 100  # of conjugate gradients, for each Newton step
MAX_HALVINGS = 30
FORCING = 0.1  # relative residual of a Newton step
SUFFICIENT_DECREASE = 1e-4


def fit_labels_at_once(
    X: Samples, Y: Array, C: float, tolerance: float, compute: Compute, allowed: Array | None = None
) -> tuple[Array, Array]:
    """Return the weights (L, d) and the intercepts (L,) of one logistic regression per label.

    All labels share the matrix products: 4nd flops per label and step of conjugate gradients that the label needs. A
    label stops when no entry of its gradient, divided by n, exceeds the tolerance. A label of all examples or of none
    keeps its start: zero weights and the log-odds of (count + ½)/(n + 1). ``allowed`` (d, L) tells which features a
    label may use.
    """
    features = np.hstack([X.toarray() if sparse.issparse(X) else X, np.ones((X.shape[0], 1))])
    A = compute.asarray(features, np.float64)
    coef, counts = np.zeros((features.shape[1], Y.shape[1])), Y.sum(axis=0)
    coef[-1] = logit((counts + 0.5) / (len(Y) + 1))
    varying = np.flatnonzero((counts > 0) & (counts < len(Y)))
    for block in compute.iter_blocks(len(varying), 8 * 16 * sum(features.shape)):
        labels = varying[block]
        mask = np.ones((features.shape[1], len(labels)))
        if allowed is not None:
            mask[:-1] = allowed[:, labels]
        penalty = np.full((features.shape[1], 1), 1 / C)
        penalty[-1] = 0  # of the intercepts
        T, W, P, M = (compute.asarray(part, np.float64) for part in (Y[:, labels], coef[:, labels], penalty, mask))
        problem = _Problem(A, T, P, M)
        coef[:, labels] = to_numpy(_newton(problem, W, tolerance * len(Y)))
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
