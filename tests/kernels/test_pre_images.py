"""Pre-images in closed form are nearer to a combination of features than any other object."""

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import trapezoid

from psilearn.kernels import Curves, Gaussian, Hellinger, Linear, Substrings, has_pre_image, pre_image

RNG = np.random.default_rng(0)
GRID = np.sort(RNG.random(6))
CASES = {
    "linear": (Linear(), RNG.standard_normal((5, 6))),
    "numbers": (3 * Linear(), RNG.standard_normal(5)),
    "curves": (Curves(GRID), RNG.standard_normal((5, 6))),
    "smooth curves": (Curves(GRID, width=0.2), RNG.standard_normal((5, 6))),
    "hellinger": (Hellinger(), RNG.random((5, 6)) ** 4),
    "sparse hellinger": (Hellinger(), sparse.csr_matrix(RNG.integers(0, 2, (5, 6)) + np.eye(5, 6))),
}


def squared_distances(kernel, A, weights, Y):
    """Return |Σ_l w_l ψ(a_l) − ψ(y)|² for one row of weights and all y, from values of the kernel."""
    return weights @ kernel(A) @ weights - 2 * kernel(Y, A) @ weights + kernel.diag(Y)


@pytest.mark.parametrize("name", CASES)
def test_no_other_object_is_nearer(name):
    kernel, A = CASES[name]
    W = RNG.standard_normal((4, 5))
    found = pre_image(kernel, A, W)
    for weights, y in zip(W, found, strict=True):
        noise = RNG.standard_normal((500, *found.shape[1:])) * 10.0 ** RNG.uniform(
            -4, 0, (500, *[1] * (found.ndim - 1))
        )
        others = np.abs(y + noise) if "hellinger" in name else y + noise
        best = squared_distances(kernel, A, weights, y[None])[0]
        assert best <= squared_distances(kernel, A, weights, others).min() + 1e-9


def test_a_histogram_without_positive_weights_has_all_its_mass_in_one_bin():
    assert pre_image(Hellinger(), [[0.2, 0.8]], [[-1.0]]).tolist() == [[1.0, 0.0]]
    np.testing.assert_allclose(pre_image(Hellinger(), [[4, 4, 2]], [[1e-200], [1e200]]), [[0.4, 0.4, 0.2]] * 2)


def test_curves_are_integrated_by_the_trapezoidal_rule():
    t = np.concatenate([np.linspace(0, 1, 50), np.linspace(1.5, 3, 20)])
    f, g = np.sin(t), t**2
    assert Curves(t)([f], [g])[0, 0] == pytest.approx(trapezoid(f * g, t))
    smoothed = [trapezoid(np.exp(-((s - t) ** 2) / (2 * 0.3**2)) * g, t) for s in t]
    assert Curves(t, 0.3)([f], [g])[0, 0] == pytest.approx(trapezoid(f * smoothed, t))
    assert Curves()([[2.0]], [[3.0]])[0, 0] == 6.0


def test_a_shift_is_a_small_distance_with_a_width():
    t = np.linspace(0, 1, 100)
    bumps = [np.exp(-((t - center) ** 2) / 2e-4) for center in (0.3, 0.35, 0.7)]
    near, far = Curves(t, width=0.1).squared_distances(bumps)[0, 1:]
    assert near < far / 3
    near, far = Curves(t).squared_distances(bumps)[0, 1:]
    assert near > 0.9 * far


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pre_image(Gaussian(1.0), [[1.0]], [[1.0]]), "kernel=Gaussian.* has no pre-images"),
        (lambda: pre_image(Linear(), [[1.0]], [[1.0, 2.0]]), "weights has 2 columns, but A has 1 objects"),
        (lambda: pre_image(Linear(), [[1.0]], [[np.nan]]), "weights"),
        (lambda: Curves([0, 1])([[1.0, 2.0, 3.0]]), "grid has 2 points, but A has 3 columns"),
        (lambda: Curves([0, 1, 1])([[1.0, 2.0, 3.0]]), "grid must be ascending"),
        (lambda: Curves([0, 1e308])([[1.0, 2.0]]), "grid contains numbers beyond 1e\\+100"),
        (lambda: Curves(width=-1)([[1.0, 2.0]]), "width"),
        (lambda: Curves(width=1.0)(np.ones((1, 5001))), "A width needs at most 5000 points"),
        (lambda: Curves()([[1.0, np.nan]]), "A contains NaN"),
        (lambda: Hellinger()([[1.0, -1.0]]), "A must be histograms, but it contains the negative number -1"),
        (lambda: Hellinger()([[1.0, 1.0], [0.0, 0.0]]), "A in row 1 is an empty histogram"),
        (lambda: Hellinger()([[1.0, np.nan]]), "A contains NaN"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_kernels_without_pre_images():
    assert not has_pre_image(Substrings())
    assert not has_pre_image(2 * Gaussian(1.0))
    with pytest.raises(TypeError, match="Substrings has no pre-images"):
        Substrings()._pre_image(["a"], np.ones((1, 1)))
