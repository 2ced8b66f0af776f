"""The mismatch kernel equals the count over all patterns of the alphabet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilearn.kernels import MismatchSubstrings, Substrings
from tests.kernels.string.pattern_counts import ALPHABET, PROPERTY, block_of, count_mismatches, strings


@pytest.mark.parametrize("n_features", [None, 2**20])
@PROPERTY
@given(A=strings, B=strings, length=st.integers(1, 3), mismatches=st.integers(0, 2))
def test_inner_products_of_counts_of_patterns(n_features, A, B, length, mismatches):
    mismatches = min(mismatches, length - 1)
    kernel = MismatchSubstrings(ALPHABET, length, mismatches, n_features=n_features, normalize=False)
    expected = block_of(lambda string: count_mismatches(string, length, mismatches), A, B)
    assert np.array_equal(kernel(A, B), expected)


def test_without_mismatches_it_is_the_spectrum_kernel():
    words = ["banana", "bandana", "ananas"]
    assert np.array_equal(MismatchSubstrings("abdns", 3, 0)(words), Substrings(3, alphabet="abdns")(words))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (MismatchSubstrings("ab", 2, 2), "mismatches=2 must be less than length=2"),
        (MismatchSubstrings("ab", 2, -1), "mismatches"),
        (MismatchSubstrings(range(50), 6, 3), "allow fewer mismatches"),
        (MismatchSubstrings(None), "alphabet must be"),
        (MismatchSubstrings("b"), r"A\[0\] contains 'a'"),
    ],
)
def test_bad_parameters_are_named(kernel, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel(["abab"])
