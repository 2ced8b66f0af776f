"""The paper's theory as functions: eigenvalue decay, the excess-risk bound, and the λ and p that it suggests.

Notation of the theorem: n pairs, m unlabeled outputs, λ (``alpha``), p (``n_components``), c (``supervision``), κ = sup
k_x(x,x)^½, Q = sup k(y,y)^½, R = |h*| in the space of the regression, and M_c's eigenvalues ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt
from typing import Any

import numpy as np
from scipy.special import gamma

from psilearn._utils import validation


@dataclass(frozen=True)
class Decay:
    """A polynomial law ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ that holds for every eigenvalue it was fitted to."""

    rate: float  # r
    lower: float  # ω
    upper: float  # Ω

    def __call__(self, j: Any) -> Any:
        """Return the middle of the band, √(ωΩ) j⁻ʳ."""
        return sqrt(self.lower * self.upper) * np.asarray(j, dtype=float) ** -self.rate


def fit_decay(eigenvalues: Any) -> Decay:
    """Fit ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ (Assumption 1) to a spectrum such as ``model.eigenvalues_``.

    r is minus the slope of the least-squares line through (log j, log σⱼ); ω and Ω are the tightest constants for it.
    Eigenvalues below 1e-12·σ₁ are rounding errors and left out. A spectrum cut at p shows its first p values only, so
    r describes that range.

    Examples
    --------
    >>> import numpy as np
    >>> fit_decay(3.0 / np.arange(1, 50) ** 2).rate.__round__(6)
    2.0
    """
    sigma = np.sort(np.asarray(eigenvalues, dtype=float).ravel())[::-1]
    if not np.isfinite(sigma).all():
        raise ValueError("eigenvalues must be finite.")
    sigma = sigma[sigma > 1e-12 * sigma[0]] if sigma.size and sigma[0] > 0 else sigma[:0]
    if len(sigma) < 2:
        raise ValueError(f"A decay needs at least 2 positive eigenvalues; got {len(sigma)}.")
    log_j = np.log(np.arange(1, len(sigma) + 1))
    rate = -float(np.polyfit(log_j, np.log(sigma), 1)[0])
    scaled = np.log(sigma) + rate * log_j
    return Decay(rate, exp(float(scaled.min())), exp(float(scaled.max())))


@dataclass(frozen=True)
class Suggestion:
    """The corollary's choice for n pairs, up to a constant that the theory leaves open."""

    alpha: float  # λ = 1/√n
    n_components: int  # p = ⌈n^(1/2r)⌉
    excess_risk_rate: float  # n^(−(1−1/r)/4)


def suggest(n: int, decay: Decay) -> Suggestion:
    """Return λ = 1/√n and p = ⌈n^{1/2r}⌉, for which the excess risk is O(n^{−(1−1/r)/4}).

    Examples
    --------
    >>> suggest(10_000, Decay(rate=2.0, lower=1.0, upper=1.0))
    Suggestion(alpha=0.01, n_components=10, excess_risk_rate=0.31622776601683794)
    """
    n = validation.check_count(n, "n")
    r = _rate_above_one(decay)
    p = n ** (1 / (2 * r))
    return Suggestion(1 / sqrt(n), ceil(p - 1e-9), n ** (-(1 - 1 / r) / 4))


def comparison_constant(Q: float) -> float:
    """Return c(ψ) = 2√(2Q² + Q⁴ + 1), which turns the distance to h* into excess risk (comparison inequality).

    Q is sup|ψ(y)|, as in the proof; the lemma's statement squares it, which contradicts its own proof.
    """
    return 2 * sqrt(2 * Q**2 + Q**4 + 1)


@dataclass(frozen=True)
class Bound:
    """The excess-risk bound of the theorem, term by term; it holds with probability 1 − 4δ if ``valid``."""

    variance: float  # C (Q+R)/√(λn) · log²(10/δ)
    bias: float  # R √λ
    reconstruction: float  # √(Ω q_r / p^(r−1))
    max_components: float  # the largest p that the theorem's condition allows
    valid: bool  # p ≤ max_components
    excess_risk: float  # comparison constant × the sum of the three terms

    @property
    def distance(self) -> float:
        """The bound on E|G*Gĥ(x) − h*(x)|², square-rooted: the sum of the three terms."""
        return self.variance + self.bias + self.reconstruction


def excess_risk_bound(
    *,
    n: int,
    m: int,
    alpha: float,
    n_components: int,
    supervision: float,
    decay: Decay,
    R: float,
    Q: float = 1.0,
    kappa: float = 1.0,
    delta: float = 0.01,
) -> Bound:
    """Evaluate the theorem: √E|G*Gĥ(x) − h*(x)|² ≤ variance + bias + reconstruction.

    Parameters
    ----------
    n, m : int
        pairs and unlabeled outputs (m ≥ 2 unless ``supervision`` is 1).
    alpha : float
        λ ≤ κ².
    n_components : int
        p.
    supervision : float
        c.
    decay : Decay
        of M_c, with r > 1; see :func:`fit_decay`.
    R : float
        |h*|, a property of the problem.
    Q, kappa : float
        sup|ψ(y)| and sup|k_x(x, ·)|; 1 for normalised kernels.
    delta : float in (0, 1)

    Notes
    -----
    q_r = 36 Γ(1−1/r)Γ(1+1/r)Γ(1/r). The condition on p is pʳ ≤ min{ωm / (9(1−c) log(m/δ)), ω / (8c t_n)}, where the
    unknown v_n = E|ĥ(x) − h*(x)|² inside t_n is replaced by its own bound, (variance + bias)².
    The bound is a statement about rates; its constants are far from sharp.

    Examples
    --------
    >>> bound = excess_risk_bound(n=10**6, m=10**6, alpha=1e-3, n_components=10, supervision=0.5,
    ...                           decay=Decay(2.0, 0.1, 0.2), R=1.0)
    >>> bound.valid
    False
    """
    n, p, c = (
        validation.check_count(n, "n"),
        validation.check_count(n_components, "n_components"),
        validation.check_fraction(supervision, "supervision"),
    )
    lam, R, Q, kappa = (
        validation.check_positive(v, k) for v, k in ((alpha, "alpha"), (R, "R"), (Q, "Q"), (kappa, "kappa"))
    )
    r = _rate_above_one(decay)
    if lam > kappa**2:
        raise ValueError(f"The theorem asks for alpha ≤ kappa² = {kappa**2:g}; got {lam:g}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1); got {delta!r}.")
    if c < 1 and validation.check_count(m, "m") < 2:
        raise ValueError(f"m must be at least 2 where supervision < 1; got {m}.")

    C = 4 * kappa * (1 + sqrt(4 * kappa**2 / sqrt(lam * n)))
    variance = C * (Q + R) / sqrt(lam * n) * log(10 / delta) ** 2
    bias = R * sqrt(lam)
    q_r = 36 * float(gamma(1 - 1 / r) * gamma(1 + 1 / r) * gamma(1 / r))
    reconstruction = sqrt(decay.upper * q_r / p ** (r - 1))

    u = 4 * kappa**2 * log(2 / delta) / sqrt(n)
    v = (variance + bias) ** 2
    w = Q / (lam * kappa) * u * (1 + R) + lam * R
    t = 5 * max(4 * c**2 * v, 2 * c * v, 4 * c * R * w * u, 2 * c * w**2 * u, 2 * R**2 * u)
    from_unlabeled = decay.lower * m / (9 * (1 - c) * log(m / delta)) if c < 1 else inf
    from_labeled = decay.lower / (8 * c * t) if c > 0 else inf
    max_components = min(from_unlabeled, from_labeled) ** (1 / r)
    return Bound(
        variance=variance,
        bias=bias,
        reconstruction=reconstruction,
        max_components=max_components,
        valid=p <= max_components,
        excess_risk=comparison_constant(Q) * (variance + bias + reconstruction),
    )


def _rate_above_one(decay: Decay) -> float:
    if not decay.rate > 1:
        raise ValueError(
            f"The theory asks for a decay rate r > 1 (a finite trace); got r = {decay.rate:.3g}. Fit the decay to more "
            f"eigenvalues, or choose a smoother output kernel."
        )
    return decay.rate
