"""Kernels of features: what is kept between blocks, and what the base kernel decides."""

import pickle
from threading import Thread

import numpy as np
import pytest

from psilearn.kernels import FeatureKernel, Gaussian, Linear, Normalized, Polynomial


class Letters(FeatureKernel):
    """Counts of three letters, and how often they were computed."""

    n_calls = 0

    def __init__(self, letters="abc", normalize=False, base=None):
        self.letters = letters
        self.normalize = normalize
        self.base = base

    def _features(self, A):
        type(self).n_calls += 1
        return np.array([[float(a.count(letter)) for letter in self.letters] for a in A])


WORDS = ["abc", "aab", "cb", "ca"]


@pytest.mark.parametrize(
    "base", [None, Gaussian(0.3), Polynomial(2), Normalized(Linear()), Gaussian(0.1, Polynomial(2))]
)
def test_the_base_kernel_compares_features(base):
    kernel, rows = Letters(base=base), Letters().features(WORDS)
    on_rows = Linear() if base is None else base
    assert np.array_equal(kernel(WORDS, WORDS[:2]), on_rows(rows, rows[:2]))
    np.testing.assert_allclose(kernel.diag(WORDS), on_rows.diag(rows))
    np.testing.assert_allclose(kernel.squared_distances(WORDS), on_rows.squared_distances(rows))
    np.testing.assert_allclose(Gaussian(0.2, kernel)(WORDS), Gaussian(0.2, on_rows)(rows))


def test_features_of_landmarks_are_computed_once():
    kernel, before = Letters(), Letters.n_calls
    for block in (WORDS[:1], WORDS[1:2], WORDS[2:]):
        kernel(block, list(WORDS))
    assert Letters.n_calls - before == 4
    assert np.array_equal(kernel.set_params(letters="a")(WORDS), [[1, 2, 0, 1], [2, 4, 0, 2], [0] * 4, [1, 2, 0, 1]])
    assert "_recent" not in vars(kernel)
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(WORDS), kernel(WORDS))


def test_a_changed_list_has_new_features():
    kernel, words = Letters(), list(WORDS)
    kernel(words)
    words[0] = "ccc"
    assert np.array_equal(kernel(words), Letters()(["ccc", *WORDS[1:]]))


def test_medians_are_those_of_the_features():
    assert Letters(base=Gaussian()).fit(WORDS).base.gamma_ == Gaussian().fit(Letters().features(WORDS)).gamma_


def test_features_must_be_implemented():
    class Nothing(FeatureKernel):
        normalize, base = False, None

    with pytest.raises(TypeError, match="must implement _features"):
        Nothing()(["a"])


class Slow(str):
    """A text whose third hash, that of a kept key, lets another thread compute other features."""

    n_hashes = 0

    def __hash__(self):
        self.n_hashes += 1
        if self.n_hashes == 3:
            thread = Thread(target=lambda: [Letters.features(KERNEL, [word]) for word in WORDS])
            thread.start()
            thread.join(0.2)  # it may have to wait for this thread
        return super().__hash__()


KERNEL = Letters()


def test_threads_may_share_a_kernel():
    item = Slow("abca")
    KERNEL.features(["abca"])
    np.testing.assert_array_equal(KERNEL.features([item]), [[2.0, 1.0, 1.0]])
    assert item.n_hashes >= 3
