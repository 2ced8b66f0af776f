"""Validated strings and sequences, and their tokens as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.samples import Index, Samples, check_not_empty

Words = NDArray[np.uint64]  # arithmetic modulo 2⁶⁴


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
