"""The gap-weighted kernel equals the loop over all subsequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilearn.kernels import GappySubstrings, Substrings
from psilearn.kernels.string import substrings
from tests.kernels.string.pattern_counts import ALPHABET, PROPERTY, block_of, count_subsequences, strings


@pytest.mark.parametrize("alphabet", [None, ALPHABET])
@PROPERTY
@given(A=strings, B=strings, length=st.integers(1, 3), gaps=st.integers(0, 3), decay=st.sampled_from([0.5, 1.0]))
def test_inner_products_of_weights_of_subsequences(alphabet, A, B, length, gaps, decay):
    kernel = GappySubstrings(length, length + gaps, decay=decay, alphabet=alphabet, normalize=False)
    expected = block_of(lambda string: count_subsequences(string, length, length + gaps, decay), A, B)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-14)


def test_occurrences_are_summed_in_batches_of_limited_size(monkeypatch):
    words, kernel = ["banana" * 5, "bandana", "ab"], GappySubstrings(3, 6, normalize=False)
    expected, sizes = kernel.features(words), []
    original = substrings._to_csr
    monkeypatch.setattr(substrings, "_to_csr", lambda *a: sizes.append(sum(len(f.rows) for f in a[0])) or original(*a))
    monkeypatch.setattr(substrings, "MAX_OCCURRENCES", 50)
    counts = GappySubstrings(3, 6, normalize=False).features(words)
    assert len(sizes) > 5 and max(sizes) <= 50
    assert counts.has_canonical_format and abs(counts - expected).max() < 1e-12


def test_without_gaps_it_is_the_spectrum_kernel():
    words = ["banana", "bandana", "ananas"]
    assert np.array_equal(GappySubstrings(3, 3)(words), Substrings(3)(words))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (GappySubstrings(3, 2), "max_span=2 must be at least length=3"),
        (GappySubstrings(10, 40), "use a smaller max_span"),
        (GappySubstrings(2, 3, decay=1.5), "decay=1.5 must be at most 1"),
        (GappySubstrings(2, 3, decay=0.0), "decay"),
        (GappySubstrings(1.5, 3), "length"),
    ],
)
def test_bad_parameters_are_named(kernel, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel(["abab"])
