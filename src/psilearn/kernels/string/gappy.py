"""The gap-weighted kernel: subsequences of characters that are close to each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Any

from psilearn._utils import validation
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.string.columns import PatternColumns, pattern_keys
from psilearn.kernels.string.string_kernel import Occurrences, StringKernel
from psilearn.kernels.string.tokens import TokenRows

MAX_SPAN = 1000
MAX_PATTERNS = 10_000  # ways to choose the characters of a subsequence in a window


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
