"""Features of strings by loops over their characters, as the definitions say."""

from collections import Counter
from itertools import combinations, product

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

ALPHABET = "abé"
PROPERTY = settings(max_examples=25, deadline=None, derandomize=True)
strings = st.lists(st.text(ALPHABET, min_size=1, max_size=7), min_size=1, max_size=5)


def inner_product(a, b):
    return sum(count * b[pattern] for pattern, count in a.items())


def block_of(count, A, B):
    """Return ⟨φ(a), φ(b)⟩ for all pairs, where ``count`` returns the features of a string as a dictionary."""
    return np.array([[inner_product(count(a), count(b)) for b in B] for a in A], dtype=float)


def count_substrings(string, shortest, longest):
    return Counter(
        string[i : i + length] for length in range(shortest, longest + 1) for i in range(len(string) - length + 1)
    )


def count_mismatches(string, length, mismatches):
    windows = [string[i : i + length] for i in range(len(string) - length + 1)]
    return Counter(
        "".join(pattern)
        for window in windows
        for pattern in product(ALPHABET, repeat=length)
        if sum(x != y for x, y in zip(window, pattern, strict=True)) <= mismatches
    )


def count_subsequences(string, length, max_span, decay):
    counts = Counter()
    for places in combinations(range(len(string)), length):
        span = places[-1] - places[0] + 1
        if span <= max_span:
            counts["".join(string[i] for i in places)] += decay ** (span - length)
    return counts
