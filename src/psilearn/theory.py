"""The theory of the paper as functions: eigenvalue decay, the excess-risk bound, and the λ and p that it suggests.

Notation of the theorem: n pairs, m unlabeled outputs, λ (``alpha``), p (``n_components``), c (``supervision``), κ = sup
k_x(x,x)^½, Q = sup k(y,y)^½, R = |h*| in the space of the regression, and eigenvalues ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ of M_c.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gamma

from psilearn._utils import validation

__all__ = ["Bound", "Decay", "Suggestion", "comparison_constant", "excess_risk_bound", "fit_decay", "suggest"]

MIN_CONSTANT, MAX_CONSTANT = 1e-50, 1e50  # of the constants of a bound, whose fourth powers must be finite
NEGLIGIBLE = 1e-12  # eigenvalues below this part of the largest one are rounding errors


@dataclass(frozen=True)
class Decay:
    """Polynomial law ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ that holds for every eigenvalue that it was fitted to.

    Parameters
    ----------
    rate : float
        The rate r.
    lower : float
        The constant ω of the lower bound.
    upper : float
        The constant Ω of the upper bound.

    See Also
    --------
    fit_decay : Fit the law to a spectrum.

    Examples
    --------
    >>> from psilearn.theory import Decay
    >>> decay = Decay(rate=2.0, lower=1.0, upper=4.0)
    >>> float(decay(2))
    0.5
    """

    rate: float
    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("rate", "lower", "upper"):
            validation.check_real(getattr(self, name), name)

    def __call__(self, j: ArrayLike) -> NDArray[np.float64]:
        """Return the middle of the band between both bounds, √(ωΩ) j⁻ʳ.

        Parameters
        ----------
        j : array-like of int
            The indices of eigenvalues, from 1.

        Returns
        -------
        ndarray of the shape of ``j``
            The value of the law at each index.

        See Also
        --------
        fit_decay : Fit the law to a spectrum.

        Examples
        --------
        >>> from psilearn.theory import Decay
        >>> Decay(rate=2.0, lower=1.0, upper=4.0)([1, 2])
        array([2. , 0.5])
        """
        indices = validation.check_array_of_numbers([j], "j")[0]
        if (indices < 1).any():
            raise ValueError(f"j must be indices from 1; got {j!r:.80}.")
        middle: NDArray[np.float64] = sqrt(self.lower * self.upper) * indices**-self.rate
        return middle


def fit_decay(eigenvalues: ArrayLike) -> Decay:
    """Fit the polynomial decay ω j⁻ʳ ≤ σⱼ ≤ Ω j⁻ʳ (Assumption 1 of the paper) to a spectrum.

    The rate r is minus the slope of the least-squares line through (log j, log σⱼ); ω and Ω are the tightest constants
    for it. Eigenvalues below 1e-12·σ₁ are rounding errors and are left out. If only the first p eigenvalues are given,
    r describes that range.

    Parameters
    ----------
    eigenvalues : array-like of shape (p,)
        The eigenvalues in any order, such as ``model.eigenvalues_``; at least two of them must be positive.

    Returns
    -------
    Decay
        The fitted law.

    See Also
    --------
    suggest : The λ and p that the theory suggests for a decay.
    psilearn.plotting.plot_spectrum : Draw a spectrum with its decay.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.theory import fit_decay
    >>> round(fit_decay(3.0 / np.arange(1, 50) ** 2).rate, 6)
    2.0
    """
    sigma = np.sort(validation.check_array_of_numbers(eigenvalues, "eigenvalues").ravel())[::-1]
    sigma = sigma[sigma > NEGLIGIBLE * sigma[0]] if sigma.size and sigma[0] > 0 else sigma[:0]
    if len(sigma) < 2:
        raise ValueError(f"A decay needs at least 2 positive eigenvalues; got {len(sigma)}.")
    log_j = np.log(np.arange(1, len(sigma) + 1))
    rate = -float(np.polyfit(log_j, np.log(sigma), 1)[0])
    log_constants = np.log(sigma) + rate * log_j
    return Decay(rate, exp(float(log_constants.min())), exp(float(log_constants.max())))


@dataclass(frozen=True)
class Suggestion:
    """Choice of λ and p by the corollary, up to a constant factor that the theory does not determine.

    Parameters
    ----------
    alpha : float
        The regularization λ = 1/√n.
    n_components : int
        The dimension p = ⌈n^(1/2r)⌉ of the embedding.
    excess_risk_rate : float
        The rate n^(−(1−1/r)/4) of the excess risk.

    See Also
    --------
    suggest : Return the suggestion for a sample size and a decay.

    Examples
    --------
    >>> from psilearn.theory import Decay, suggest
    >>> suggest(10_000, Decay(rate=2.0, lower=1.0, upper=1.0)).n_components
    10
    """

    alpha: float
    n_components: int
    excess_risk_rate: float


def suggest(n: int, decay: Decay) -> Suggestion:
    """Return λ = 1/√n and p = ⌈n^{1/2r}⌉, for which the excess risk is O(n^{−(1−1/r)/4}).

    Parameters
    ----------
    n : int
        The number of training pairs.
    decay : Decay
        The decay of the eigenvalues, with a rate r > 1.

    Returns
    -------
    Suggestion
        The regularization, the dimension and the rate of the excess risk.

    See Also
    --------
    fit_decay : Fit the decay to a spectrum.
    excess_risk_bound : The bound from which the corollary follows.

    Examples
    --------
    >>> from psilearn.theory import Decay, suggest
    >>> suggest(10_000, Decay(rate=2.0, lower=1.0, upper=1.0))
    Suggestion(alpha=0.01, n_components=10, excess_risk_rate=0.31622776601683794)
    """
    n = validation.check_count(n, "n")
    r = _check_rate(decay)
    p = n ** (1 / (2 * r))
    return Suggestion(1 / sqrt(n), ceil(p - 1e-9), n ** (-(1 - 1 / r) / 4))


def comparison_constant(Q: float) -> float:
    """Return c(ψ) = 2√(2Q² + Q⁴ + 1), the factor from the distance to h* to the excess risk.

    This is the constant of the comparison inequality. Q is sup|ψ(y)|, as in the proof; the statement of the lemma
    squares it, which contradicts the proof.

    Parameters
    ----------
    Q : float
        The largest norm sup|ψ(y)| of an embedded output; 1 for a normalized kernel.

    Returns
    -------
    float
        The constant c(ψ).

    See Also
    --------
    excess_risk_bound : The bound that contains this constant.

    Examples
    --------
    >>> from psilearn.theory import comparison_constant
    >>> comparison_constant(1.0)
    4.0
    """
    Q = _check_magnitude(Q, "Q")
    return 2 * sqrt(2 * Q**2 + Q**4 + 1)


@dataclass(frozen=True)
class Bound:
    """Excess-risk bound of the theorem, term by term; it holds with probability 1 − 4δ if ``valid`` is true.

    Parameters
    ----------
    variance : float
        The term C (Q+R)/√(λn) · log²(10/δ).
    bias : float
        The term R √λ.
    reconstruction : float
        The term √(Ω q_r / p^(r−1)).
    max_components : float
        The largest p that the condition of the theorem allows.
    valid : bool
        Whether p ≤ ``max_components``.
    excess_risk : float
        The comparison constant times the sum of the three terms.

    See Also
    --------
    excess_risk_bound : Evaluate the bound.

    Examples
    --------
    >>> from psilearn.theory import Decay, excess_risk_bound
    >>> bound = excess_risk_bound(n=10**6, m=10**6, alpha=1e-4, n_components=10, supervision=0.5,
    ...                           decay=Decay(2.0, 0.1, 0.2), R=1.0)
    >>> bound.bias
    0.01
    """

    variance: float
    bias: float
    reconstruction: float
    max_components: float
    valid: bool
    excess_risk: float

    @property
    def distance(self) -> float:
        """Bound on the distance √E|G*Gĥ(x) − h*(x)|²: the sum of the three terms."""
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
    n : int
        The number of training pairs.
    m : int
        The number of unlabeled outputs, at least 2 unless ``supervision`` is 1.
    alpha : float
        The regularization λ ≤ κ².
    n_components : int
        The dimension p of the embedding.
    supervision : float
        The weight c in [0, 1] of the labeled part of the moment M_c.
    decay : Decay
        The decay of the eigenvalues of M_c, with a rate r > 1.
    R : float
        The norm |h*|, a property of the problem.
    Q : float, default=1.0
        The largest norm sup|ψ(y)| of an embedded output; 1 for a normalized output kernel.
    kappa : float, default=1.0
        The largest norm κ = sup|k_x(x, ·)| of an embedded input; 1 for a normalized input kernel.
    delta : float, default=0.01
        The number δ in (0, 1); the bound holds with probability 1 − 4δ.

    Returns
    -------
    Bound
        The terms of the bound, and whether its condition on p holds.

    See Also
    --------
    suggest : The λ and p for which the terms are balanced.
    fit_decay : Fit the decay to a spectrum.

    Notes
    -----
    q_r = 36 Γ(1−1/r)Γ(1+1/r)Γ(1/r). The condition on p is pʳ ≤ min{ωm / (9(1−c) log(m/δ)), ω / (8c t_n)}, where the
    unknown v_n = E|ĥ(x) − h*(x)|² inside t_n is replaced by its own bound, (variance + bias)².
    The bound is a statement about rates; its constants are far from sharp.

    Examples
    --------
    >>> from psilearn.theory import Decay, excess_risk_bound
    >>> bound = excess_risk_bound(n=10**6, m=10**6, alpha=1e-3, n_components=10, supervision=0.5,
    ...                           decay=Decay(2.0, 0.1, 0.2), R=1.0)
    >>> bound.valid
    False
    """
    n, p = validation.check_count(n, "n"), validation.check_count(n_components, "n_components")
    c, lam = validation.check_fraction(supervision, "supervision"), _check_magnitude(alpha, "alpha")
    R, Q, kappa = _check_magnitude(R, "R"), _check_magnitude(Q, "Q"), _check_magnitude(kappa, "kappa")
    delta = validation.check_open_fraction(_check_magnitude(delta, "delta"), "delta")
    r = _check_rate(decay)
    if lam > kappa**2:
        raise ValueError(f"The theorem requires alpha ≤ kappa² = {kappa**2:g}; got {lam:g}.")
    if c < 1 and validation.check_count(m, "m") < 2:
        raise ValueError(f"m must be at least 2 if supervision < 1; got {m}.")

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


def _check_magnitude(value: object, name: str) -> float:
    """Return a positive number whose powers in the bound do not overflow; raise an error about ``name`` otherwise."""
    number = validation.check_positive(value, name)
    if not MIN_CONSTANT <= number <= MAX_CONSTANT:
        raise ValueError(f"{name} must be between {MIN_CONSTANT:g} and {MAX_CONSTANT:g}; got {value!r}.")
    return number


def _check_rate(decay: Decay) -> float:
    """Return the rate r of a decay; raise an error unless r > 1."""
    if not isinstance(decay, Decay):
        raise TypeError(f"decay must be a Decay, such as fit_decay(eigenvalues); got {decay!r:.80}.")
    if not decay.rate > 1:
        raise ValueError(
            f"The theory requires a decay rate r > 1 (a finite trace); got r = {decay.rate:.3g}. Fit the decay to more "
            f"eigenvalues, or choose a smoother output kernel."
        )
    return decay.rate
