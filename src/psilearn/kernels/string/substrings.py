"""Kernels on strings by their shared substrings: exact (the spectrum kernel), with gaps, and up to a few characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations, product
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._distributed import map_chunks
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, n_samples
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.string.tokens import (
    PatternColumns,
    TokenRows,
    check_alphabet,
    check_strings,
    make_columns,
    pattern_keys,
    read_tokens,
)

MAX_LENGTH = 1000  # of substrings
MAX_SPAN = 1000
MAX_PATTERNS = 10_000  # ways to choose the characters of a subsequence in a window
MAX_LENGTH = 1000
MAX_NEIGHBORS = 10_000  # patterns that one substring counts for
MAX_TOKENS = 2**18  # of the sequences whose patterns are counted at a time
MAX_OCCURRENCES = 2**23  # of patterns that are summed at a time


class Occurrences(NamedTuple):
    """Occurrences of patterns: the sequence and the column of each, and a common or individual weight."""

    rows: Index
    columns: Index
    weight: float | Array = 1.0


class StringKernel(FeatureKernel):
    """A kernel by weighted counts of patterns in strings, or in sequences of tokens."""

    alphabet: Any
    n_features: Any

    def _lengths(self) -> range:
        """Return the validated lengths of patterns."""
        raise NotImplementedError

    def _occurrences(self, tokens: TokenRows, columns: PatternColumns) -> Iterator[Occurrences]:
        """Yield all occurrences of patterns in sequences."""
        raise NotImplementedError

    def _columns(self) -> PatternColumns:
        return make_columns(self.alphabet, self.n_features, self._lengths())

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        self._columns()
        strings = check_strings(A, name)
        if self.alphabet is not None:
            _check_in_alphabet(strings, name, self.alphabet)
        return strings

    def _features(self, A: Any) -> Any:
        columns = self._columns()
        parts = [self._count(part, columns) for part in _parts(A)]
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, "csr")

    def _count(self, A: Any, columns: PatternColumns) -> Any:
        """Return the weighted counts of patterns as CSR rows in canonical format."""
        tokens = read_tokens(A, columns.value_of)
        shape = (len(A), columns.n_columns)
        return sum(_to_csr(found, shape) for found in _batches(self._occurrences(tokens, columns)))


def _batches(occurrences: Iterable[Occurrences]) -> Iterator[list[Occurrences]]:
    """Yield lists of at most ``MAX_OCCURRENCES`` occurrences, or of one item, so that memory is limited."""
    batch: list[Occurrences] = []
    n_found = 0
    for item in occurrences:
        if batch and n_found + len(item.rows) > MAX_OCCURRENCES:
            yield batch
            batch, n_found = [], 0
        batch.append(item)
        n_found += len(item.rows)
    yield batch


def _to_csr(found: list[Occurrences], shape: tuple[int, int]) -> Any:
    """Return the sums of weights by sequence and column as CSR rows in canonical format."""
    rows = np.concatenate([part.rows for part in found])
    columns = np.concatenate([part.columns for part in found])
    weights = np.concatenate([np.broadcast_to(part.weight, part.rows.shape) for part in found]).astype(np.float64)
    counts = sparse.coo_matrix((weights, (rows, columns)), shape=shape).tocsr()
    counts.sort_indices()
    return counts


def _parts(A: Any) -> Iterator[Any]:
    """Yield consecutive parts of a collection with a limited number of tokens each."""
    lengths = np.array([len(item) for item in A])
    part = (np.cumsum(lengths) - lengths) // MAX_TOKENS
    starts = np.flatnonzero(np.diff(part, prepend=-1)).tolist()
    for start, stop in zip(starts, [*starts[1:], len(lengths)], strict=True):
        yield A[start:stop]


def _check_in_alphabet(A: Any, name: str, alphabet: Any) -> None:
    """Raise if a token is not in the alphabet; the error names the first such item."""
    allowed = set(check_alphabet(alphabet))
    texts = all(isinstance(item, str) for item in A)
    if allowed.issuperset("".join(A) if texts else chain.from_iterable(map(_tokens_of, A))):
        return
    for i, item in enumerate(A):
        unknown = next((token for token in _tokens_of(item) if token not in allowed), None)
        if unknown is not None:
            raise ValueError(f"{name}[{i}] contains {unknown!r}, which is not in alphabet={alphabet!r:.60}.")


def _tokens_of(item: Any) -> Iterable[Any]:
    return item.tolist() if isinstance(item, np.ndarray) else item


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


class GappySubstrings(StringKernel):
    """The gap-weighted kernel: φ(a) counts subsequences of p characters that span at most g characters of a.

    An occurrence that spans s ≥ p characters counts decayˢ⁻ᵖ: 1 for a substring, less with gaps.

    Cost: O(t C(g, p)) operations for t characters.

    Parameters
    ----------
    length : int, default=3
        The length p of subsequences.
    max_span : int, default=5
        The largest span g, at least ``length``.
    decay : float, default=0.5
        The factor per skipped character, greater than 0 and at most 1.
    alphabet : str or sequence of str and int, default=None
        All characters or tokens. Subsequences then have one column each. None accepts any token, and subsequences are
        hashed.
    n_features : int, default=None
        The number of columns of hashed features. None stands for exact columns with an alphabet, for 2¹⁸ without.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    See Also
    --------
    Substrings : Without gaps.
    MismatchSubstrings : Substrings with a few mismatches.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins, *Text classification using string kernels*, 2002, with a
    bound on the span as in Leslie and Kuang, *Fast string kernels using inexact matching for protein sequences*, 2004.

    Examples
    --------
    >>> from psilearn.kernels import GappySubstrings
    >>> GappySubstrings(2, 3, decay=0.5, normalize=False)(["cat"], ["cat", "cut", "at"])
    array([[2.25, 0.25, 1.  ]])
    """

    def __init__(
        self,
        length: int = 3,
        max_span: int = 5,
        *,
        decay: float = 0.5,
        alphabet: Any = None,
        n_features: int | None = None,
        normalize: bool = True,
        base: Kernel | None = None,
    ) -> None:
        self.length = length
        self.max_span = max_span
        self.decay = decay
        self.alphabet = alphabet
        self.n_features = n_features
        self.normalize = normalize
        self.base = base

    def _lengths(self) -> range:
        length, span = (validation.check_count(getattr(self, name), name) for name in ("length", "max_span"))
        if span < length:
            raise ValueError(f"max_span={span} must be at least length={length}.")
        if span > MAX_SPAN:
            raise ValueError(f"max_span={span} must be at most {MAX_SPAN}.")
        if comb(span - 1, length - 1) > MAX_PATTERNS:
            raise ValueError(
                f"With length={length} and max_span={span} a subsequence can be chosen in "
                f"{comb(span - 1, length - 1):,} ways, at most {MAX_PATTERNS:,} are supported: use a smaller max_span."
            )
        if validation.check_positive(self.decay, "decay") > 1:
            raise ValueError(f"decay={self.decay} must be at most 1.")
        return range(length, length + 1)

    def _occurrences(self, tokens: TokenRows, columns: PatternColumns) -> Iterator[Occurrences]:
        for span in range(self.length, self.max_span + 1):
            first, rows = tokens.windows(span)
            weight = float(self.decay) ** (span - self.length)
            for offsets in self._offsets(span):
                keys = pattern_keys(tokens.values, first, offsets, columns.multiplier)
                yield Occurrences(rows, columns.find(keys, self.length), weight)

    def _offsets(self, span: int) -> Iterator[tuple[int, ...]]:
        """Yield the places of the characters of subsequences with exactly this span."""
        if self.length == 1:
            yield from [(0,)] if span == 1 else []
            return
        for inner in combinations(range(1, span - 1), self.length - 2):
            yield (0, *inner, span - 1)


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
        if length > MAX_LENGTH:
            raise ValueError(f"length={length} must be at most {MAX_LENGTH}.")
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
