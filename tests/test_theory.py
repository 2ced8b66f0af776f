"""The decay of spectra and the terms of the excess-risk bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilearn import KDE, OEL
from psilearn.kernels import Gaussian, Linear
from psilearn.theory import Decay, comparison_constant, excess_risk_bound, fit_decay, suggest

TERMS = {
    "n": 10**6,
    "m": 10**6,
    "alpha": 1e-3,
    "n_components": 20,
    "supervision": 0.5,
    "decay": Decay(2.0, 0.1, 0.2),
    "R": 1.0,
}


def bound(**changes):
    return excess_risk_bound(**(TERMS | changes))


@given(st.floats(0.2, 4), st.floats(1e-3, 1e3))
def test_a_power_law_is_recovered(rate, scale):
    decay = fit_decay(scale * np.arange(1.0, 60.0) ** -rate)
    assert decay.rate == pytest.approx(rate, rel=1e-6)
    assert decay.lower == pytest.approx(scale, rel=1e-6) == decay.upper
    assert decay(3) == pytest.approx(scale * 3.0**-rate, rel=1e-5)


@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=40))
def test_every_eigenvalue_is_inside_the_band(values):
    sigma = np.sort(values)[::-1]
    decay = fit_decay(values)
    power = np.arange(1, len(sigma) + 1) ** -decay.rate
    assert (decay.lower * power <= sigma * (1 + 1e-9)).all() and (sigma <= decay.upper * power * (1 + 1e-9)).all()


def test_decay_of_a_fitted_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    model = OEL(Gaussian(0.5), Gaussian(0.5), alpha=1e-3, n_components=30).fit(X, np.sin(X))
    decay = fit_decay(model.eigenvalues_)
    assert decay.rate > 1
    suggestion = suggest(80, decay)
    assert suggestion.alpha == pytest.approx(1 / np.sqrt(80))
    assert suggestion.n_components == np.ceil(80 ** (1 / (2 * decay.rate)))


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [1.0, np.nan]])
def test_spectra_without_a_decay_raise(values):
    with pytest.raises(ValueError, match="eigenvalues"):
        fit_decay(values)


def test_slow_decay_raises():
    with pytest.raises(ValueError, match="r > 1"):
        suggest(100, Decay(0.9, 1.0, 1.0))


def test_rate_of_the_corollary_approaches_the_usual_one():
    rates = [suggest(10**6, Decay(r, 1.0, 1.0)).excess_risk_rate for r in (1.1, 2.0, 5.0, 1e6)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx((10**6) ** -0.25, rel=1e-4)


def test_the_corollary_balances_the_terms_of_the_theorem():
    # With λ = 1/√n and p = n^(1/2r) every term of the distance shrinks like n^(−(1−1/r)/4) or faster.
    def distances(n):
        s = suggest(n, TERMS["decay"])
        b = bound(n=n, m=n, alpha=s.alpha, n_components=s.n_components)
        return np.array([b.variance, b.bias, b.reconstruction]), s.excess_risk_rate

    (small, rate_small), (large, rate_large) = distances(10**8), distances(10**16)
    assert (large / small <= 1.05 * rate_large / rate_small).all()


def test_terms_depend_on_the_settings_as_in_the_theorem():
    assert bound(alpha=1e-2).bias > bound(alpha=1e-3).bias
    assert bound(alpha=1e-2).variance < bound(alpha=1e-3).variance
    assert bound(n_components=80).reconstruction == pytest.approx(bound(n_components=20).reconstruction / 2)  # r = 2
    assert bound(n=10**8).variance < bound(n=10**6).variance
    assert bound().excess_risk == pytest.approx(comparison_constant(1.0) * bound().distance)
    assert comparison_constant(1.0) == 4.0


def test_terms_computed_by_hand():
    # n = 10⁴, λ = 10⁻², so λn = 100; κ = Q = R = 1, δ = 0.1, r = 2, ω = 0.1, Ω = 0.2, p = 9, c = ½.
    b = bound(n=10**4, m=10**4, alpha=1e-2, n_components=9, delta=0.1)
    log_100, log_20 = 4.605170186, 2.995732274
    C = 4 * (1 + np.sqrt(4 / 10))
    assert b.variance == pytest.approx(C * 2 / 10 * log_100**2)
    assert b.bias == pytest.approx(0.1)
    # Γ(½)Γ(3/2)Γ(½) = π^{3/2}/2
    assert b.reconstruction == pytest.approx(np.sqrt(0.2 * 36 * np.pi**1.5 / 2 / 9))
    u = 4 * log_20 / 100
    v = (b.variance + b.bias) ** 2
    w = 100 * u * 2 + 0.01
    t = 5 * max(v, v, 2 * w * u, w**2 * u, 2 * u)  # 4c²v = 2cv = v, 4cRwu, 2cw²u, 2R²u
    from_unlabeled = 0.1 * 10**4 / (9 * 0.5 * np.log(10**5))
    assert b.max_components == pytest.approx(np.sqrt(min(from_unlabeled, 0.1 / (8 * 0.5 * t))))
    # with hardly any noise in h, the last term of t decides
    quiet = bound(supervision=1e-9, n=10**4, m=10**12, alpha=1e-2, n_components=1, delta=0.1)
    assert quiet.max_components == pytest.approx(np.sqrt(0.1 / (8e-9 * 5 * max(2 * u, 2e-9 * v))), rel=1e-6)


def test_condition_on_p():
    # c = 0: only the unlabeled outputs limit p, pʳ ≤ ωm / (9 log(m/δ)).
    limit = np.sqrt(0.1 * 10**6 / (9 * np.log(10**6 / 0.01)))
    unsupervised = bound(supervision=0.0)
    assert unsupervised.max_components == pytest.approx(limit) and unsupervised.valid
    assert not bound(supervision=0.0, n_components=int(limit) + 1).valid
    # c = 1: the unlabeled outputs have no effect.
    assert bound(supervision=1.0, m=0).max_components == bound(supervision=1.0, m=10**9).max_components


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha": 2.0}, "alpha ≤ kappa²"),
        ({"alpha": 0}, "alpha"),
        ({"delta": 0}, "delta"),
        ({"m": 1}, "m must be at least 2"),
        ({"supervision": 2}, "supervision"),
        ({"R": -1}, "R must be"),
        ({"decay": Decay(1.0, 1.0, 1.0)}, "r > 1"),
    ],
)
def test_settings_outside_the_theorem_raise(changes, words):
    with pytest.raises(ValueError, match=words):
        bound(**changes)


def test_supervision_keeps_the_direction_that_can_be_predicted():
    # The paper's remark: ψ(y) = (x, z), z independent of x with the larger variance.
    rng = np.random.default_rng(0)
    x, z = rng.normal(0, 1, 400), rng.normal(0, 3, 400)
    X, Y = x[:, None], np.column_stack([x, z])
    directions = {
        name: model.fit(X, Y).transform_outputs(np.eye(2))[:, 0]  # the direction kept, in the plane of (x, z)
        for name, model in {
            "supervised": OEL(Linear(), Linear(), alpha=1e-3, n_components=1, supervision=1.0),
            "unsupervised": KDE(Linear(), Linear(), alpha=1e-3, n_components=1),
        }.items()
    }
    assert abs(directions["supervised"][0]) > 0.95
    assert abs(directions["unsupervised"][1]) > 0.99


@pytest.mark.parametrize("wrong", [None, "a", 0, [1, -2], [np.nan], [[1], [2, 3]], 10**400])
def test_wrong_indices_of_eigenvalues_are_named(wrong):
    with pytest.raises((TypeError, ValueError), match=r"\bj\b"):
        Decay(2.0, 0.1, 0.2)(wrong)

    with pytest.raises(ValueError, match="upper must be"):
        Decay(2.0, 0.1, np.nan)
