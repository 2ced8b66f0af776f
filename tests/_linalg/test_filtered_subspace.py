"""Filtered subspace iteration finds the leading eigenpairs, or says that it does not."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psilearn._backend import Compute
from psilearn._linalg import eigen
from psilearn._linalg.eigen import RESIDUAL, filtered_eigh

SPECTRA = {
    "powers": lambda n: 1.0 / np.arange(1, n + 1) ** 1.5,
    "exponential": lambda n: np.exp(-np.arange(n) / 8),
    "pairs": lambda n: np.repeat(0.8 ** np.arange(n // 2), 2),
    "low rank": lambda n: np.where(np.arange(n) < 25, 1.0 / (1 + np.arange(n)), 0),
}


def matrix(spectrum, seed=0):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(spectrum), len(spectrum))))
    M = (Q * spectrum) @ Q.T
    return (M + M.T) / 2


def start(n, width, seed=1):
    return np.random.default_rng(seed).standard_normal((n, width))


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [1, 8, 20])
def test_the_leading_pairs_are_those_of_a_dense_solver(name, k):
    M = matrix(SPECTRA[name](160))
    values, vectors = filtered_eigh(M.__matmul__, start(160, k + max(10, k // 2)), k)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M)[::-1][:k], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    assert np.linalg.norm(M @ vectors - vectors * values, axis=0).max() <= 1.01 * RESIDUAL * values[0]


@given(st.integers(0, 2**32 - 1), st.floats(-900, 900))
@settings(max_examples=20)
def test_the_scale_of_the_matrix_does_not_matter(seed, exponent):
    M = matrix(SPECTRA["powers"](60), seed)
    scaled = M * 2.0 ** round(exponent)
    for left, right in zip(
        filtered_eigh(M.__matmul__, start(60, 15), 5), filtered_eigh(scaled.__matmul__, start(60, 15), 5), strict=True
    ):
        factor = 2.0 ** round(exponent) if left.ndim == 1 else 1.0
        np.testing.assert_allclose(np.abs(right), np.abs(left) * factor, rtol=1e-7, atol=1e-9 * factor)


def test_eigenvalues_that_are_too_close_are_left_to_a_dense_solver():
    assert filtered_eigh(matrix(1 - 1e-5 * np.arange(100)).__matmul__, start(100, 15), 5) is None
    assert filtered_eigh(matrix(np.ones(100)).__matmul__, start(100, 15), 5) is not None  # any vectors are right


def test_the_zero_operator_has_zero_eigenvalues():
    values, vectors = filtered_eigh(np.zeros((40, 40)).__matmul__, start(40, 12), 3)
    assert not values.any() and np.isfinite(vectors).all()


def test_an_indefinite_operator_is_left_to_a_dense_solver():
    assert filtered_eigh(matrix(np.r_[np.ones(3), np.zeros(80), -np.ones(30)]).__matmul__, start(113, 20), 5) is None


def test_any_array_namespace_can_be_used():
    M, block = matrix(SPECTRA["exponential"](50)), start(50, 14)
    strict = array_api_strict.asarray(M)
    values, vectors = filtered_eigh(lambda V: strict @ V, array_api_strict.asarray(block), 4)
    expected = filtered_eigh(M.__matmul__, block, 4)
    np.testing.assert_allclose(np.asarray(values), expected[0], atol=1e-13)
    np.testing.assert_allclose(np.abs(np.asarray(vectors)), np.abs(expected[1]), atol=1e-7)


@pytest.mark.parametrize("flat", [False, True])
def test_on_a_gpu_the_answer_is_that_of_a_dense_solver(flat, monkeypatch):
    n, k = 160, 8
    M = matrix(1 - 1e-5 * np.arange(n) if flat else SPECTRA["powers"](n))
    expected = eigen.top_eigh(M.__matmul__, n, k, Compute(), lambda: M)
    monkeypatch.setattr(eigen, "is_filtered", lambda *_: True)
    used = []
    monkeypatch.setattr(eigen, "filtered_eigh", lambda *arguments: used.append(1) or filtered_eigh(*arguments))
    found = eigen.top_eigh(M.__matmul__, n, k, Compute(), lambda: M)
    assert used
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(np.abs(found[1].T @ expected[1]), np.eye(k), atol=1e-6)
