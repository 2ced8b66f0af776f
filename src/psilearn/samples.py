"""Collections of objects, whatever they are made of.

A collection is a 1-D or 2-D array (its rows), a CSR matrix (its rows) or any sequence (its items). Inputs, outputs and
candidates are collections; only a kernel looks inside an object.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Samples = Any
Index = NDArray[np.intp]


def n_samples(A: Samples) -> int:
    """Return the number of objects in a collection."""
    return int(A.shape[0]) if hasattr(A, "shape") else len(A)


def is_empty(A: Samples) -> bool:
    """Return whether something is a collection of no objects."""
    return (hasattr(A, "shape") or hasattr(A, "__len__")) and n_samples(A) == 0


def n_columns(A: Samples) -> int | None:
    """Return the width of a collection of rows; None where objects are not rows."""
    return int(A.shape[1]) if getattr(A, "ndim", 0) == 2 else None


def describe(A: Samples) -> str:
    """Return the shape of a collection in words, for error messages."""
    return f"shape {tuple(A.shape)}" if hasattr(A, "shape") else f"{len(A)} objects"


def take(A: Samples, index: Index | slice) -> Samples:
    """Return the chosen objects, in the form in which the collection came."""
    if hasattr(A, "shape") or isinstance(index, slice):
        return A[index]
    return [A[i] for i in index]


def concat(parts: Sequence[Samples]) -> Samples:
    """Return one collection of all objects; one CSR part makes the whole CSR."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([part if sparse.issparse(part) else sparse.csr_matrix(part) for part in parts], "csr")
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [item for part in parts for item in part]


class Distinct(NamedTuple):
    """The distinct objects of a collection, in the order in which they first appear."""

    first: Index  # (d,)  where each distinct object first stands
    inverse: Index  # (n,)  which distinct object each one is


def distinct(A: Samples) -> Distinct:
    """Find the distinct objects of a collection.

    Rows are equal when all their entries are; other objects when they are hashable and equal, or are lists, sets,
    dicts or arrays of equal things. Any other object that cannot be hashed is equal to itself alone.
    """
    seen: dict[Hashable, int] = {}
    first: list[int] = []
    inverse = np.empty(n_samples(A), dtype=np.intp)
    for i, key in enumerate(_keys(A)):
        j = seen.setdefault(key, len(first))
        if j == len(first):
            first.append(i)
        inverse[i] = j
    return Distinct(np.array(first, dtype=np.intp), inverse)


def match(A: Samples, B: Samples) -> Index:
    """Return, for each object of A, the first place of an equal one in B; −1 where there is none."""
    if isinstance(A, np.ndarray) and isinstance(B, np.ndarray) and np.issubdtype(B.dtype, np.floating):
        A = A.astype(B.dtype)  # a float32 and the float64 it came from are one number
    first, inverse = distinct(concat([B, A]))  # an object of B stands before its equals of A
    place = first[inverse[n_samples(B) :]]
    return np.where(place < n_samples(B), place, -1)


def _keys(A: Samples) -> list[Hashable]:
    if sparse.issparse(A):
        A = A.tocsr(copy=True)
        A.sum_duplicates()
        A.eliminate_zeros()
        ends = list(zip(A.indptr[:-1], A.indptr[1:], strict=True))
        return [(A.indices[i:j].tobytes(), A.data[i:j].tobytes()) for i, j in ends]
    if isinstance(A, np.ndarray) and A.dtype != object:
        if np.issubdtype(A.dtype, np.floating):
            A = A + 0.0  # −0.0 and 0.0 are one number
        return [row.tobytes() for row in np.ascontiguousarray(A)]
    items = list(A)  # all alive at once, so that no two share an id
    return [_object_key(item) for item in items]


def _object_key(item: Any) -> Hashable:
    if isinstance(item, np.ndarray):
        return ("array", item.shape, tuple(map(_object_key, item.ravel().tolist())))
    if isinstance(item, list | tuple):
        return (type(item), tuple(map(_object_key, item)))
    if isinstance(item, set | frozenset):
        return ("set", frozenset(map(_object_key, item)))
    if isinstance(item, dict):
        return ("dict", frozenset((_object_key(key), _object_key(value)) for key, value in item.items()))
    try:
        hash(item)
    except TypeError:
        return ("id", id(item))
    return ("value", item)
