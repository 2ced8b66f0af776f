"""The spectrum kernel: substrings of given lengths that two strings share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from psilearn._distributed import map_chunks
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, n_samples
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.string.columns import PatternColumns, pattern_keys
from psilearn.kernels.string.string_kernel import Occurrences, StringKernel
from psilearn.kernels.string.tokens import TokenRows

MAX_LENGTH = 1000  # of substrings


class Substrings(StringKernel):
    """The spectrum kernel of strings: φ(a) counts the substrings of ``min_length`` to ``max_length`` characters.

    k(a, b) is the inner product of the counts, divided by their lengths if ``normalize`` is set, or ``base`` of them.
    Objects are strings, or lists, tuples or integer arrays of tokens: ``text.split()`` compares texts by words. A
    string that is shorter than ``min_length`` has no substrings, and its features are 0.

    Cost: O(t) operations per length for t characters.

    Parameters
    ----------
    max_length : int, default=3
        The largest length p of substrings.
    min_length : int, default=None
        The smallest length. None stands for ``max_length``: the p-spectrum kernel. 1 is the blended spectrum.
    alphabet : str or sequence of str and int, default=None
        All characters or tokens. Substrings then have one column each, and others raise an error. None accepts any
        token, and substrings are hashed.
    n_features : int, default=None
        The number of columns of hashed features. Two substrings in one column count as the same one; the kernel is
        positive semi-definite in any case. None stands for exact columns with an alphabet, for 2¹⁸ without.
    idf : bool, default=False
        Whether counts are multiplied by log((1 + n)/(1 + nⱼ)) + 1, where nⱼ of the n strings passed to ``fit`` contain
        the substring j.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length: k(a, a) = 1 with the default ``base``.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    Attributes
    ----------
    idf_ : ndarray of shape (n_columns,)
        The factors found by ``fit``, if ``idf`` is set.

    See Also
    --------
    MismatchSubstrings : Substrings with a few mismatches.
    GappySubstrings : Subsequences with gaps.

    References
    ----------
    Leslie, Eskin and Noble, *The spectrum kernel: a string kernel for SVM protein classification*, 2002.

    Examples
    --------
    >>> from psilearn.kernels import Gaussian, Substrings
    >>> Substrings(2, normalize=False)(["banana"], ["bandana", "abba"])
    array([[7., 1.]])
    >>> Substrings(3, min_length=1, base=Gaussian(0.5))(["banana"], ["bandana"]).round(3)
    array([[0.854]])
    >>> Substrings(2)([["the", "red", "tea"]], [["the", "red", "cup"]]).round(3)
    array([[0.5]])
    """

    def __init__(
        self,
        max_length: int = 3,
        *,
        min_length: int | None = None,
        alphabet: Any = None,
        n_features: int | None = None,
        idf: bool = False,
        normalize: bool = True,
        base: Kernel | None = None,
    ) -> None:
        self.max_length = max_length
        self.min_length = min_length
        self.alphabet = alphabet
        self.n_features = n_features
        self.idf = idf
        self.normalize = normalize
        self.base = base

    def _lengths(self) -> range:
        longest = validation.check_count(self.max_length, "max_length")
        if longest > MAX_LENGTH:
            raise ValueError(f"max_length={longest} must be at most {MAX_LENGTH}.")
        shortest = longest if self.min_length is None else validation.check_count(self.min_length, "min_length")
        if shortest > longest:
            raise ValueError(f"min_length={shortest} must not exceed max_length={longest}.")
        return range(shortest, longest + 1)

    def _occurrences(self, tokens: TokenRows, columns: PatternColumns) -> Iterator[Occurrences]:
        for length in self._lengths():
            first, rows = tokens.windows(length)
            keys = pattern_keys(tokens.values, first, range(length), columns.multiplier)
            yield Occurrences(rows, columns.find(keys, length))

    def _fit_features(self, A: Samples) -> None:
        if validation.check_bool(self.idf, "idf"):
            counts = sum(map_chunks(self._document_counts, A))
            self.idf_ = np.log((1 + n_samples(A)) / (1 + counts)) + 1

    def _document_counts(self, A: Samples) -> Index:
        """Return how many strings have a nonzero entry in each column."""
        return np.bincount(StringKernel._features(self, A).indices, minlength=self._columns().n_columns)

    def _features(self, A: Any) -> Any:
        counts = super()._features(A)
        if validation.check_bool(self.idf, "idf"):
            if not hasattr(self, "idf_"):
                raise ValueError("Substrings(idf=True) takes its factors from data: call fit(A) first.")
            counts.data *= self.idf_[counts.indices]
        return counts
