"""The base class of kernels on strings: counts of patterns as CSR rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.string.columns import PatternColumns, check_alphabet, make_columns
from psilearn.kernels.string.tokens import TokenRows, check_strings, read_tokens

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
