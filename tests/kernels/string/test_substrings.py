"""The spectrum kernel: double loops over substrings, texts as words, weights by rarity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from psilearn import IOKR, OEL, Landmarks, load_model, save_model
from psilearn._backend import computing, to_numpy
from psilearn.kernels import GappySubstrings, Gaussian, Linear, MismatchSubstrings, Substrings
from tests.kernels.string.pattern_counts import ALPHABET, PROPERTY, block_of, count_substrings, strings

LONG_WORDS = ["banana", "bandana", "ananas", "cabana", "savanna", "panama", "manna", "anna"]


@pytest.mark.parametrize("alphabet", [None, ALPHABET])
@PROPERTY
@given(A=strings, B=strings, lengths=st.tuples(st.integers(1, 3), st.integers(0, 2)))
def test_inner_products_of_counts_of_substrings(alphabet, A, B, lengths):
    shortest, longest = lengths[0], sum(lengths)
    kernel = Substrings(longest, min_length=shortest, alphabet=alphabet, normalize=False)
    expected = block_of(lambda string: count_substrings(string, shortest, longest), A, B)
    assert np.array_equal(kernel(A, B), expected)
    assert np.array_equal(kernel.diag(A), np.diagonal(block_of(lambda s: count_substrings(s, shortest, longest), A, A)))


def test_hashing_into_few_columns_sums_the_counts_of_a_column():
    exact = Substrings(2, alphabet="abn", normalize=False).features(["banana"])
    hashed = Substrings(2, n_features=3, normalize=False).features(["banana"])
    assert hashed.shape == (1, 3)
    assert hashed.sum() == exact.sum() == 5


def test_rows_are_scaled_to_length_one_unless_they_are_zero():
    kernel = Substrings(3)
    np.testing.assert_allclose(kernel.diag(["banana", "ba"]), [1, 0])
    np.testing.assert_allclose(kernel(LONG_WORDS), Substrings(3, normalize=False).normalized()(LONG_WORDS), atol=1e-15)


def test_idf_equals_scikit_learns_weights_of_character_grams():
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False).fit(LONG_WORDS)
    kernel = Substrings(3, min_length=1, idf=True).fit(LONG_WORDS)
    new = ["bana", "manna"]  # TfidfVectorizer ignores grams that it has not seen
    expected = (vectors.transform(new) @ vectors.transform(LONG_WORDS).T).toarray()
    np.testing.assert_allclose(kernel(new, LONG_WORDS), expected, atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Substrings(2), Substrings(2, n_features=4), GappySubstrings(2, 4), MismatchSubstrings("abcdmnpsv", 2)]
)
def test_positive_semidefinite_on_numpy_and_torch(kernel):
    values = kernel.gram(LONG_WORDS)
    assert np.linalg.eigvalsh(values)[0] > -1e-12
    pytest.importorskip("torch")
    with computing(device="cpu"):
        np.testing.assert_allclose(to_numpy(kernel(LONG_WORDS)), values, atol=1e-14)


def test_chunks_have_the_same_weights():
    bag = pytest.importorskip("dask.bag")
    landmarks = {"input_landmarks": Landmarks(6, random_state=0), "output_landmarks": Landmarks(6, random_state=0)}
    model = IOKR(Substrings(2, idf=True), Substrings(2, base=Gaussian()), alpha=1e-6, **landmarks)
    chunks = bag.from_sequence(LONG_WORDS, npartitions=2)
    together, apart = clone(model).fit(LONG_WORDS, LONG_WORDS), clone(model).fit(chunks, chunks)
    np.testing.assert_allclose(apart.regression_.kernel.idf_, together.regression_.kernel.idf_)
    assert list(apart.predict(LONG_WORDS)) == list(together.predict(LONG_WORDS))


def test_a_second_fit_replaces_the_weights():
    kernel = Substrings(2, idf=True).fit(LONG_WORDS)
    kernel(LONG_WORDS)
    kernel.fit(LONG_WORDS[:3])
    expected = Substrings(2, idf=True).fit(LONG_WORDS[:3]).features(LONG_WORDS)
    assert (kernel.features(LONG_WORDS) != expected).nnz == 0


def test_idf_requires_fit():
    with pytest.raises(ValueError, match="call fit"):
        Substrings(2, idf=True)(["ab"])


@pytest.mark.parametrize("form", [list, tuple, lambda words: np.array(words, dtype=object), np.array])
def test_characters_are_tokens_in_every_container(form):
    kernel = Substrings(2, normalize=False)
    words = ["tea", "eat", "ate"]
    expected = kernel(words)
    assert np.array_equal(kernel(form(words)), expected)
    assert np.array_equal(kernel(form([list(word) for word in words])), expected)


def test_sequences_of_integers():
    kernel = Substrings(2, normalize=False)
    rows = np.array([[1, 2, 1], [2, 1, 2]])
    assert np.array_equal(kernel(rows), kernel(["aba", "bab"]))
    assert np.array_equal(kernel(rows.tolist()), kernel(rows))


def test_strings_as_inputs_and_as_outputs(tmp_path):
    inputs = [word[::-1] for word in LONG_WORDS]
    kernel = Substrings(3, min_length=1)
    model = IOKR(kernel, kernel, alpha=1e-9).fit(inputs, LONG_WORDS)
    assert list(model.predict(inputs)) == LONG_WORDS
    assert list(model.predict(inputs[:1], candidates=["cabana", "bananas", "manna"])) == ["bananas"]
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert list(loaded.predict(inputs)) == LONG_WORDS


def test_every_route_of_an_estimator_takes_strings():
    inputs = [word[::-1] for word in LONG_WORDS] * 3
    model = OEL(
        Substrings(2, idf=True, base=Gaussian(0.5)),
        Gaussian(base=Substrings(2)),
        alpha=1e-6,
        n_components=8,
        input_landmarks=8,
        output_landmarks=10,
    )
    model.fit(inputs, LONG_WORDS * 3, unlabeled=["grape", "plum"])
    assert list(model.predict(inputs[:8])) == LONG_WORDS


def test_wide_collections_are_counted_in_parts(monkeypatch):
    from psilearn.kernels.string import substrings

    expected = Substrings(2).features(LONG_WORDS)
    monkeypatch.setattr(substrings, "MAX_TOKENS", 7)
    found = Substrings(2).features(LONG_WORDS)
    assert found.shape == expected.shape
    assert (found != expected).nnz == 0


@pytest.mark.parametrize(
    ("kernel", "A", "message"),
    [
        (Substrings(), ["abc", ""], r"A\[1\] is an empty string"),
        (Substrings(), [["a"], []], r"A\[1\] is an empty sequence"),
        (Substrings(), ["abc", None], r"A\[1\] must be a string"),
        (Substrings(), [["a", 0.5]], r"A\[0\] contains 0.5 of type float"),
        (Substrings(), [[["a"]]], r"A\[0\] must be a string"),
        (Substrings(), np.zeros((2, 3)), r"A must be a sequence of strings.*shape \(2, 3\)"),
        (Substrings(), [], "A is empty"),
        (Substrings(), "abc", "A must be an array or a sequence"),
        (Substrings(2, alphabet="ab"), ["ab", "abc"], r"A\[1\] contains 'c', which is not in alphabet='ab'"),
        (Substrings(2, alphabet="aba"), ["ab"], "alphabet must be a string of distinct characters"),
        (Substrings(2, alphabet=3), ["ab"], "alphabet must be a string of distinct characters"),
        (Substrings(30, alphabet="ab"), ["ab"], "n_features=262144"),
        (Substrings(2, n_features=2**30), ["ab"], "n_features=1073741824, but at most"),
        (Substrings(2, min_length=3), ["ab"], "min_length=3 must not exceed max_length=2"),
        (Substrings(0), ["ab"], "max_length"),
        (Substrings(10**30), ["ab"], "max_length=10+ must be at most 1000"),
        (Substrings(normalize=1), ["ab"], "normalize"),
        (Substrings(idf="yes"), ["ab"], "idf"),
        (Substrings(base=Linear), ["ab"], "base of Substrings must be a kernel"),
    ],
)
def test_bad_input_is_named(kernel, A, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel(A)
