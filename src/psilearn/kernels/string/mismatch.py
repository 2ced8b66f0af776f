"""The mismatch kernel: substrings that agree up to a few characters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np

from psilearn._utils import validation
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.string.columns import PatternColumns, check_alphabet, pattern_keys
from psilearn.kernels.string.string_kernel import Occurrences, StringKernel
from psilearn.kernels.string.tokens import TokenRows

MAX_NEIGHBORS = 10_000  # patterns that one substring counts for


class MismatchSubstrings(StringKernel):
    """The (p, m)-mismatch kernel: φ(a) counts the patterns of p characters that a contains with at most m mismatches.

    Each substring of length p adds 1 to each pattern over the alphabet that differs from it in at most m places.

    Cost: O(t N) operations for t characters, where N = Σₑ C(p, e)(S − 1)ᵉ for e ≤ m is the number of patterns that one
    substring counts for, with an alphabet of S characters.

    Parameters
    ----------
    alphabet : str or sequence of str and int
        All characters or tokens, such as "ACGT".
    length : int, default=3
        The length p of patterns.
    mismatches : int, default=1
        The largest number m of mismatches, less than ``length``.
    n_features : int, default=None
        The number of columns of hashed features. None stands for one column per pattern, at most 2²² of them.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    See Also
    --------
    Substrings : Without mismatches.
    GappySubstrings : Subsequences with gaps.

    References
    ----------
    Leslie, Eskin, Cohen, Weston and Noble, *Mismatch string kernels for discriminative protein classification*, 2004.

    Examples
    --------
    >>> from psilearn.kernels import MismatchSubstrings
    >>> MismatchSubstrings("ACGT", 3, 1, normalize=False)(["ACG"], ["ACG", "ACT", "TTT"])
    array([[10.,  4.,  0.]])
    """

    def __init__(
        self,
        alphabet: Any,
        length: int = 3,
        mismatches: int = 1,
        *,
        n_features: int | None = None,
        normalize: bool = True,
        base: Kernel | None = None,
    ) -> None:
        self.alphabet = alphabet
        self.length = length
        self.mismatches = mismatches
        self.n_features = n_features
        self.normalize = normalize
        self.base = base

    def _lengths(self) -> range:
        length, alphabet = validation.check_count(self.length, "length"), check_alphabet(self.alphabet)
        mismatches = validation.check_index(self.mismatches, "mismatches")
        if mismatches >= length:
            raise ValueError(f"mismatches={mismatches} must be less than length={length}.")
        neighbors = sum(comb(length, e) * (len(alphabet) - 1) ** e for e in range(mismatches + 1))
        if neighbors > MAX_NEIGHBORS:
            raise ValueError(
                f"With length={length}, mismatches={mismatches} and {len(alphabet)} characters each substring counts "
                f"for {neighbors:,} patterns, at most {MAX_NEIGHBORS:,} are supported: allow fewer mismatches."
            )
        return range(length, length + 1)

    def _occurrences(self, tokens: TokenRows, columns: PatternColumns) -> Iterator[Occurrences]:
        length = int(self.length)  # Python's integers do not overflow
        first, rows = tokens.windows(length)
        keys = pattern_keys(tokens.values, first, range(length), columns.multiplier)
        values = np.array([columns.value_of(token) for token in check_alphabet(self.alphabet)], np.uint64)
        for n_changed in range(self.mismatches + 1):
            for places in combinations(range(length), n_changed):
                factors = [np.uint64(pow(columns.multiplier, length - 1 - i, 2**64)) for i in places]
                old = [tokens.values[first + i] for i in places]
                for new in product(values, repeat=n_changed):
                    changed, differs = keys, np.ones(len(keys), bool)
                    for factor, before, after in zip(factors, old, new, strict=True):
                        changed = changed + (after - before) * factor
                        differs &= before != after
                    yield Occurrences(rows[differs], columns.find(changed[differs], length))
