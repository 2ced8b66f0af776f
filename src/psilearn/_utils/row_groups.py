"""Groups of equal rows: 64-bit hashes propose them, and a comparison of all entries confirms them.

The bits of numbers are compared: NaNs are equal if their bits are. −0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Index = NDArray[np.intp]
Words = NDArray[np.uint64]

CHUNK_BYTES = 2**20  # size of the words that are hashed or compared at a time
WORD_BYTES = 8
MULTIPLIERS = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # of the finalizer of MurmurHash3
COLUMN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio


def group_rows(A: Any) -> tuple[Index, Index] | None:
    """Find equal rows of an array or a canonical CSR matrix of real numbers without explicit zeros.

    Returns the first row of each group, ascending, and the group of each row. None if the entries are not numbers of at
    most 64 bits, or if two different rows have the same hash, which happens with a probability of about n²/2⁶⁵.

    Cost: O(entries + n log n); memory: 64 bytes per row, a few MB, and up to twice the CSR matrix.
    """
    entries = A.data if sparse.issparse(A) else A
    if entries.dtype.kind not in "biuf" or entries.dtype.itemsize > WORD_BYTES:
        return None
    hash_rows, are_equal = (_hash_csr, _are_equal_csr) if sparse.issparse(A) else (_hash_dense, _are_equal_dense)
    first, inverse = _group_hashes(hash_rows(A))
    repeated = np.flatnonzero(first[inverse] != np.arange(len(inverse)))
    return (first, inverse) if are_equal(A, repeated, first[inverse[repeated]]) else None


def canonical_csr(A: Any) -> Any:
    """Return a CSR matrix with sorted columns, without duplicates and explicit zeros; a copy if it is another one."""
    A = A.tocsr()
    if not A.has_canonical_format or np.count_nonzero(A.data) < len(A.data):
        A = A.copy()
        A.sum_duplicates()
        A.eliminate_zeros()
    return A


def _group_hashes(hashes: Words) -> tuple[Index, Index]:
    """Return the first occurrence of each hash, ascending, and the number of the hash at each place."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    first = np.minimum.reduceat(order, starts)
    by_appearance = np.argsort(first)
    numbers = np.empty(len(first), dtype=np.intp)
    numbers[by_appearance] = np.arange(len(first))
    inverse = np.empty(len(hashes), dtype=np.intp)
    inverse[order] = np.repeat(numbers, np.diff(starts, append=len(hashes)))
    return first[by_appearance], inverse


def _hash_dense(A: NDArray[Any]) -> Words:
    hashes, n_columns = np.empty(len(A), dtype=np.uint64), int(np.prod(A.shape[1:], dtype=np.intp))
    multipliers = _mix(np.arange(n_columns, dtype=np.uint64) * COLUMN_MULTIPLIER, *MULTIPLIERS) | np.uint64(1)
    for rows in _iter_chunks(len(A), n_columns):
        words = _words(A[rows]).reshape(rows.stop - rows.start, n_columns)
        hashes[rows] = _mix(words, MULTIPLIERS[0], multipliers).sum(axis=1)
    return hashes


def _are_equal_dense(A: NDArray[Any], rows: Index, others: Index) -> bool:
    """Return whether each of the rows equals the one of the others at the same place."""
    n_columns = int(np.prod(A.shape[1:], dtype=np.intp))
    chunks = _iter_chunks(len(rows), n_columns)
    return all(np.array_equal(_words(A[rows[chunk]]), _words(A[others[chunk]])) for chunk in chunks)


def _hash_csr(A: Any) -> Words:
    hashes = np.empty(A.shape[0], dtype=np.uint64)
    for rows, entries in _iter_csr_chunks(A.indptr):
        words = A.indices[entries].astype(np.uint64)
        words *= COLUMN_MULTIPLIER
        words += _words(A.data[entries])
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(_mix(words, *MULTIPLIERS))])
        hashes[rows] = np.diff(sums[A.indptr[rows.start : rows.stop + 1] - entries.start])
    return hashes


def _are_equal_csr(A: Any, rows: Index, others: Index) -> bool:
    left, right = A[rows], A[others]
    return (
        np.array_equal(left.indptr, right.indptr)
        and np.array_equal(left.indices, right.indices)
        and np.array_equal(_words(left.data), _words(right.data))
    )


def _words(values: NDArray[Any]) -> Words:
    """Return a copy of numbers as unsigned integers of 64 bits, equal for equal numbers of one dtype."""
    values = np.ascontiguousarray(values)
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # converts −0.0 to 0.0
    return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)


def _mix(words: Words, first: Any, second: Any) -> Words:
    """Change words so that every bit depends on all bits, in place."""
    shift = np.uint64(33)
    words ^= words >> shift
    words *= first
    words ^= words >> shift
    words *= second
    return words


def _iter_chunks(n_rows: int, n_columns: int) -> Iterator[slice]:
    step = max(1, CHUNK_BYTES // (WORD_BYTES * max(1, n_columns)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _iter_csr_chunks(indptr: NDArray[Any]) -> Iterator[tuple[slice, slice]]:
    """Yield consecutive rows and their entries, about as many as fit into a chunk."""
    start, n_rows = 0, len(indptr) - 1
    while start < n_rows:
        last_entry = int(indptr[start]) + CHUNK_BYTES // WORD_BYTES
        stop = max(start + 1, int(np.searchsorted(indptr, last_entry, side="right")) - 1)
        yield slice(start, stop), slice(int(indptr[start]), int(indptr[stop]))
        start = stop
