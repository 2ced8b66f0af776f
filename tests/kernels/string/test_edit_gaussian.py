"""The Gaussian of the edit distance through landmarks: equal where it is a kernel, a kernel where it is not."""

import numpy as np
import pytest

pytest.importorskip("rapidfuzz", reason="edit distances need the extra psilearn[strings]")

from psilearn import IOKR, load_model, save_model
from psilearn.kernels import EditGaussian, Gaussian
from psilearn.kernels.string.edit_gaussian import edit_distances, paired_edit_distances

WORDS = ["banana", "bandana", "ananas", "cabana", "savanna", "panama"]


def count_edits(a, b):
    """Return the edit distance by the recursion of its definition."""
    if not a or not b:
        return len(a) + len(b)
    return min(count_edits(a[1:], b) + 1, count_edits(a, b[1:]) + 1, count_edits(a[1:], b[1:]) + (a[0] != b[0]))


@pytest.mark.parametrize("form", [str, list, tuple])
def test_edit_distances_follow_their_definition(form):
    words = ["abca", "bc", "aab", "c"]
    expected = [[count_edits(a, b) for b in words] for a in words]
    assert edit_distances(list(map(form, words)), list(map(form, words))).tolist() == expected
    assert paired_edit_distances(words, words[::-1]).tolist() == [expected[i][3 - i] for i in range(4)]


def test_it_is_the_gaussian_where_that_is_positive_definite():
    kernel = EditGaussian(gamma=0.5).fit(WORDS)
    assert kernel.negative_share_ == 0
    np.testing.assert_allclose(kernel(WORDS), np.exp(-0.5 * edit_distances(WORDS, WORDS) ** 2), atol=1e-10)


def test_it_is_a_kernel_where_the_gaussian_is_none():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), rng.integers(1, 6))) for _ in range(60)]
    values = np.exp(-0.05 * edit_distances(words, words) ** 2)
    assert np.linalg.eigvalsh(values)[0] < -1e-3
    kernel = EditGaussian(gamma=0.05, n_landmarks=30).fit(words)
    assert 0 < kernel.negative_share_ < 0.5
    assert len(kernel.landmarks_) <= 30
    assert np.linalg.eigvalsh(kernel.gram(words))[0] > -1e-10
    np.testing.assert_allclose(kernel.diag(words), 1)


def test_models_with_landmarks_of_strings_are_saved(tmp_path):
    X = [word[::-1] for word in WORDS]
    model = IOKR(EditGaussian(), EditGaussian(base=Gaussian()), alpha=1e-6).fit(X, WORDS)
    assert list(model.predict(X)) == WORDS
    save_model(model, tmp_path / "model")
    assert list(load_model(tmp_path / "model").predict(X)) == WORDS


def test_equal_strings_have_a_width():
    assert EditGaussian().fit(["a", "a"]).gamma_ == 1.0


@pytest.mark.parametrize(
    ("kernel", "A", "message"),
    [
        (EditGaussian(gamma="wide"), ["a", "b"], "gamma of EditGaussian"),
        (EditGaussian(gamma=-1.0), ["a", "b"], "gamma"),
        (EditGaussian(n_landmarks=0), ["a", "b"], "n_landmarks"),
        (EditGaussian(), ["a", ""], r"A\[1\] is an empty string"),
    ],
)
def test_bad_input_is_named(kernel, A, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel.fit(A)


def test_landmarks_come_from_fit():
    with pytest.raises(ValueError, match="call fit"):
        EditGaussian()(["a"])
