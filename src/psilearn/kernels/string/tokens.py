"""Validated strings and sequences, their tokens as numbers, and the numbers of columns for patterns of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, check_not_empty

Words = NDArray[np.uint64]  # arithmetic modulo 2⁶⁴
DEFAULT_COLUMNS = 2**18  # of hashed features
MAX_COLUMNS = 2**22  # arrays with one entry per column take part in each product of CSR rows
HASH_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, from the golden ratio
MIX_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of SplitMix64


def check_strings(A: Samples, name: str) -> Samples:
    """Return a collection of strings or of sequences of tokens; raise if an item is empty or something else."""
    check_not_empty(A, name)
    if hasattr(A, "iloc"):
        A = A.to_numpy()
    ndim, dtype = getattr(A, "ndim", 1), getattr(A, "dtype", np.dtype(object))
    if ndim != 1 and not (ndim == 2 and getattr(dtype, "kind", "") in "iuUO"):
        raise ValueError(
            f"{name} must be a sequence of strings or of sequences of tokens; got an array of shape {tuple(A.shape)} "
            f"and dtype {dtype}."
        )
    items: Iterable[Any] = A if isinstance(A, list | tuple) else list(A)
    for i, item in enumerate(items):
        if not isinstance(item, str):
            _check_tokens(item, f"{name}[{i}]")
        elif not item:
            raise ValueError(f"{name}[{i}] is an empty string, which has no features: remove it or give a placeholder.")
    return A


def _check_tokens(item: Any, name: str) -> None:
    """Raise if an object is not a sequence of texts and integers with at least one of them."""
    if not isinstance(item, list | tuple | np.ndarray) or np.ndim(item) != 1:
        shown = f"{type(item).__name__} {item!r:.40}"
        raise TypeError(f"{name} must be a string, or a list or tuple of tokens (texts or integers); got {shown}.")
    if len(item) == 0:
        raise ValueError(f"{name} is an empty sequence, which has no features: remove it or give a placeholder.")
    for token in item:
        if not isinstance(token, str | int | np.integer) or isinstance(token, bool):
            raise TypeError(
                f"{name} contains {token!r:.40} of type {type(token).__name__}: tokens must be texts or integers."
            )


@dataclass(frozen=True)
class TokenRows:
    """The tokens of many sequences, one after the other, as numbers."""

    values: Words  # (t,)
    starts: Index  # (n + 1,)

    @property
    def lengths(self) -> Index:
        """The number of tokens of each sequence."""
        return np.diff(self.starts)

    def windows(self, span: int) -> tuple[Index, Index]:
        """Return the first positions of all windows of ``span`` tokens, and the sequence of each window."""
        counts = np.maximum(self.lengths - span + 1, 0)
        rows = np.repeat(np.arange(len(counts)), counts)
        ends = np.cumsum(counts)
        first = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        return first + self.starts[rows], rows


def read_tokens(A: Sequence[Any], value_of: Callable[[Any], int]) -> TokenRows:
    """Return the tokens of validated sequences; ``value_of`` is called once per distinct token."""
    items = [item if isinstance(item, str) else _to_list(item) for item in A]
    starts = np.concatenate([[0], np.cumsum([len(item) for item in items])]).astype(np.intp)
    if all(isinstance(item, str) for item in items):
        points = np.frombuffer("".join(items).encode("utf-32-le", "surrogatepass"), np.uint32)  # type: ignore[arg-type]
        return TokenRows(_map_points(points, value_of), starts)
    numbers: dict[Any, int] = {}
    tokens = list(chain.from_iterable(items))
    values = [numbers[token] if token in numbers else numbers.setdefault(token, value_of(token)) for token in tokens]
    return TokenRows(np.array(values, np.uint64), starts)


def _to_list(item: Any) -> list[Any]:
    """Return a sequence of tokens as a list of Python texts and integers."""
    return (
        item.tolist() if isinstance(item, np.ndarray) else [t.item() if isinstance(t, np.generic) else t for t in item]
    )


def _map_points(points: NDArray[np.uint32], value_of: Callable[[Any], int]) -> Words:
    """Return the value of each character, given as code points."""
    present = np.flatnonzero(np.bincount(points))
    table = np.zeros(int(present[-1]) + 1, np.uint64)
    table[present] = np.array([value_of(chr(point)) for point in present.tolist()], np.uint64)
    return table[points]


@lru_cache(maxsize=2**16)
def hash_token(token: str | int) -> int:
    """Return 64 bits of a token, the same in each process; a character equals the text that consists of it."""
    text = token if isinstance(token, str) else f"\0{int(token)}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


# Numbers of columns for patterns of tokens: exact for a known alphabet, hashed otherwise.
#
# A pattern of tokens with the values v₁, …, vₗ has the key Σᵢ vᵢ Mˡ⁻ⁱ modulo 2⁶⁴. With an alphabet of S tokens, values
# are the numbers of the tokens and M = S, so that keys of one length are distinct and below Sˡ. Otherwise values are
# hashes, M is a constant, and the bits of the key are mixed.
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
