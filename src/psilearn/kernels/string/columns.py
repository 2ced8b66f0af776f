"""Numbers of columns for patterns of tokens: exact for a known alphabet, hashed otherwise.

A pattern of tokens with the values v₁, …, vₗ has the key Σᵢ vᵢ Mˡ⁻ⁱ modulo 2⁶⁴. With an alphabet of S tokens, values
are the numbers of the tokens and M = S, so that keys of one length are distinct and below Sˡ. Otherwise values are
hashes, M is a constant, and the bits of the key are mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psilearn._utils import validation
from psilearn._utils.samples import Index
from psilearn.kernels.string.tokens import Words, hash_token

DEFAULT_COLUMNS = 2**18  # of hashed features
MAX_COLUMNS = 2**22  # arrays with one entry per column take part in each product of CSR rows
HASH_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, from the golden ratio
MIX_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of SplitMix64


@dataclass(frozen=True)
class HashedColumns:
    """Columns of any tokens: a hash modulo the number of columns."""

    n_columns: int
    multiplier: int = HASH_MULTIPLIER

    def value_of(self, token: Any) -> int:
        """Return 64 bits of a token."""
        return hash_token(token)

    def find(self, keys: Words, length: int) -> Index:
        """Return the column of each key: the bits are mixed by SplitMix64, and reduced to the number of columns."""
        mixed = keys + np.uint64(int(length) * HASH_MULTIPLIER % 2**64)
        for shift, factor in zip((30, 27), MIX_MULTIPLIERS, strict=True):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.n_columns)).astype(np.intp)


@dataclass(frozen=True)
class ExactColumns:
    """Columns of all patterns of some lengths over an alphabet, without collisions."""

    alphabet: tuple[Any, ...]
    lengths: range
    _numbers: dict[Any, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {token: i for i, token in enumerate(self.alphabet)})

    @property
    def multiplier(self) -> int:
        """The number of tokens."""
        return len(self.alphabet)

    @property
    def n_columns(self) -> int:
        """The number of patterns."""
        return sum(len(self.alphabet) ** length for length in self.lengths)

    def value_of(self, token: Any) -> int:
        """Return the number of a token in the alphabet."""
        return self._numbers[token]

    def find(self, keys: Words, length: int) -> Index:
        """Return the keys, after the patterns of smaller lengths."""
        before = sum(len(self.alphabet) ** shorter for shorter in self.lengths if shorter < length)
        return keys.astype(np.intp) + before


PatternColumns = HashedColumns | ExactColumns


def pattern_keys(values: Words, first: Index, offsets: Iterable[int], multiplier: int) -> Words:
    """Return the keys of the patterns of tokens at ``first + offset`` for the given offsets."""
    keys = np.zeros(len(first), np.uint64)
    for offset in offsets:
        keys = keys * np.uint64(multiplier) + values[first + offset]
    return keys


def make_columns(alphabet: Any, n_features: int | None, lengths: range) -> PatternColumns:
    """Return the columns for the parameters ``alphabet`` and ``n_features`` of a kernel."""
    if n_features is not None:
        n_columns = validation.check_count(n_features, "n_features")
        if n_columns > MAX_COLUMNS:
            raise ValueError(f"n_features={n_columns}, but at most {MAX_COLUMNS:,} columns are supported.")
        return HashedColumns(n_columns)
    if alphabet is None:
        return HashedColumns(DEFAULT_COLUMNS)
    columns = ExactColumns(check_alphabet(alphabet), lengths)
    if len(columns.alphabet) ** min(lengths.stop - 1, 64) > MAX_COLUMNS or columns.n_columns > MAX_COLUMNS:
        raise ValueError(
            f"There are more than {MAX_COLUMNS:,} patterns of up to {lengths.stop - 1} tokens over an alphabet of "
            f"{len(columns.alphabet)}: hash them, n_features={DEFAULT_COLUMNS}, or use shorter patterns."
        )
    return columns


def check_alphabet(alphabet: Any) -> tuple[Any, ...]:
    """Return the tokens of an alphabet; raise if they are not distinct texts or integers."""
    is_sequence = isinstance(alphabet, str | Sequence)
    tokens = tuple(alphabet) if is_sequence else ()
    is_valid = all(isinstance(token, str | int) and not isinstance(token, bool) for token in tokens)
    if not tokens or not is_valid or len(set(tokens)) < len(tokens):
        raise ValueError(
            f"alphabet must be a string of distinct characters or a sequence of distinct tokens (texts or integers); "
            f"got {alphabet!r:.80}."
        )
    return tokens
