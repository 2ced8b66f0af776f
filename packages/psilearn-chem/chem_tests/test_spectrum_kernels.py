"""Kernels on spectra, compared with a double loop over peaks; invalid spectra and parameters."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chem_tests.test_kernel_properties import spectra
from psilearn import computing
from psilearn.kernels import Linear
from psilearn_chem import PrecursorMass, ProbabilityProduct, spectrum_kernel
from psilearn_chem import spectrum_kernels as module
from psilearn_chem.spectra import Spectrum
from tests.kernels.kernel_cases import PROPERTY


def double_loop(a, b, of="peaks", width=0.005, unit="Da", power=0.5):
    """Return the sum over all pairs of peaks, computed as in the definition."""
    total = 0.0
    for m, h in zip(a.mz, a.intensity, strict=True):
        for n, i in zip(b.mz, b.intensity, strict=True):
            u, v = (m, n) if of == "peaks" else (a.precursor_mz - m, b.precursor_mz - n)
            if u < 0 or v < 0:
                continue
            s, t = (width, width) if unit == "Da" else (width * m / 1e6, width * n / 1e6)
            # the integral of the product of two densities, divided by the lengths of both
            product = math.exp(-((u - v) ** 2) / (2 * (s * s + t * t))) / math.sqrt(2 * math.pi * (s * s + t * t))
            lengths = [1 / math.sqrt(2 * w * math.sqrt(math.pi)) for w in (s, t)]
            total += h**power * i**power * product / (lengths[0] * lengths[1])
    return total


@pytest.mark.parametrize("of", ["peaks", "losses"])
@pytest.mark.parametrize(("width", "unit"), [(0.02, "Da"), (0.3, "Da"), (200.0, "ppm")])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@PROPERTY
@given(spectra=spectra)
def test_probability_product_equals_the_double_loop(of, width, unit, power, spectra):
    kernel = ProbabilityProduct(of, width, unit, power)
    expected = [[double_loop(a, b, of, width, unit, power) for b in spectra] for a in spectra]
    np.testing.assert_allclose(kernel(spectra), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(spectra), np.diagonal(expected), rtol=1e-12, atol=1e-14)


def random_spectra(n, seed=0, peaks=30):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, peaks, n)
    return [
        Spectrum(50 + rng.choice(400, k) / 7 + rng.normal(0, 0.004, k), rng.random(k) + 0.01, precursor_mz=120 + i % 9)
        for i, k in enumerate(sizes)
    ]


@pytest.mark.parametrize("of", ["peaks", "losses"])
def test_threads_and_block_sizes_do_not_change_the_kernel(of, monkeypatch):
    A, B = random_spectra(60), random_spectra(45, seed=1)
    kernel = ProbabilityProduct(of)
    expected = [[double_loop(a, b, of) for b in B] for a in A]
    for max_cells, max_pairs, min_work, n_threads in [
        (2**20, 2**17, 2**28, 1),
        (2**20, 1, 2**28, 1),
        (100, 2**17, 0, 2),
        (7, 9, 0, 3),
    ]:
        monkeypatch.setattr(module, "MAX_CELLS", max_cells)
        monkeypatch.setattr(module, "MAX_PAIRS", max_pairs)
        monkeypatch.setattr(module, "MIN_THREADED_WORK", min_work)
        monkeypatch.setattr(module, "n_threads", lambda n_threads=n_threads: n_threads)
        np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-12, atol=1e-14)


def test_one_peak_each_is_the_gaussian_of_the_paper():
    a, b = Spectrum([100.0], [4.0]), Spectrum([100.007], [9.0])
    assert ProbabilityProduct(width=0.005)([a], [b])[0, 0] == pytest.approx(6 * math.exp(-(0.007**2) / (4 * 0.005**2)))


def test_single_precision_blocks():
    A = random_spectra(20)
    with computing("float32"):
        K = spectrum_kernel()(A)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, spectrum_kernel()(A), rtol=1e-4)


def test_the_scale_of_intensities_and_repeated_peaks_do_not_matter_if_normalized():
    A = random_spectra(12)
    scaled = [Spectrum(s.mz, 100 * s.intensity, s.precursor_mz) for s in A]
    np.testing.assert_allclose(spectrum_kernel()(scaled), spectrum_kernel()(A), rtol=1e-12)
    repeated = [Spectrum(np.repeat(s.mz, 4), np.repeat(s.intensity / 16, 4), s.precursor_mz) for s in A]
    np.testing.assert_allclose(ProbabilityProduct()(repeated), ProbabilityProduct()(A), rtol=1e-12, atol=1e-14)


def test_a_spectrum_without_losses_is_orthogonal_to_all_others():
    above = Spectrum([90.0, 95.0], [1.0, 1.0], precursor_mz=80.0)
    K = ProbabilityProduct("losses").normalized()([above, *random_spectra(3)])
    assert not K[0].any()


def test_other_objects_and_missing_precursors_are_rejected():
    a = Spectrum([50.0], [1.0])
    with pytest.raises(TypeError, match=r"Spectrum; X\[1\] is of type ndarray"):
        ProbabilityProduct().check([a, np.ones(3)], "X")
    with pytest.raises(ValueError, match=r"needs the precursor of each spectrum, but A\[0\] \('mine'\)"):
        ProbabilityProduct("losses")([Spectrum([50.0], [1.0], name="mine")])
    with pytest.raises(ValueError, match="precursor"):
        PrecursorMass()([a])
    with pytest.raises(ValueError, match="empty"):
        ProbabilityProduct()([])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"of": "ions"}, "of of ProbabilityProduct must be one of peaks, losses; got 'ions'"),
        ({"unit": "mDa"}, "unit of ProbabilityProduct must be one of Da, ppm; got 'mDa'"),
        ({"width": 0}, "width"),
        ({"power": -1}, "power"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        ProbabilityProduct(**parameters)(random_spectra(2))


def test_a_sum_with_a_kernel_on_rows_rejects_spectra():
    with pytest.raises((TypeError, ValueError)):
        (ProbabilityProduct() + Linear())(random_spectra(2))


@PROPERTY
@given(st.floats(1.0, 100.0))
def test_precursor_kernel(width):
    a, b = (Spectrum([50.0], [1.0], precursor_mz=m) for m in (100.0, 130.0))
    assert PrecursorMass(width)([a], [b])[0, 0] == pytest.approx(math.exp(-900 / (2 * width**2)))
