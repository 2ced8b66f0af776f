"""Collections of objects: arrays, tensors, CSR matrices and sequences.

A collection is a 1-D or 2-D array or tensor (its rows), a CSR matrix (its rows) or any sequence (its items). Inputs,
outputs and candidates are collections. Only kernels use the contents of an object.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn._backend import array_namespace, is_tensor, take_rows, tensor_to_numpy, to_device
from psilearn._utils.row_groups import canonical_csr, group_rows

Samples = Any
Index = NDArray[np.intp]

NOT_COLLECTIONS = (str, bytes, dict, set, frozenset)  # of outputs, although they have a length
KEY_BYTES = 32  # longer rows are compared by their digests
CHUNK_BYTES = 2**20  # size of the rows that are converted to keys at a time
MIN_GROUPED_ROWS = 64  # fewer rows are compared faster by a dictionary of keys


def n_samples(A: Samples) -> int:
    """Return the number of objects in a collection."""
    return int(A.shape[0]) if hasattr(A, "shape") else len(A)


def is_empty(A: Samples) -> bool:
    """Return whether an object is an empty collection."""
    is_array = isinstance(getattr(A, "shape", None), tuple)
    sized = is_array or (hasattr(type(A), "__len__") and not isinstance(A, NOT_COLLECTIONS))
    return sized and getattr(A, "ndim", 1) > 0 and n_samples(A) == 0


def check_collection(A: Samples, name: str) -> int:
    """Return the number of objects in a collection; raise if A is not one."""
    try:
        size = n_samples(A)
    except (TypeError, IndexError, ValueError):
        size = -1
    is_other = isinstance(A, NOT_COLLECTIONS) and not hasattr(A, "shape")
    if size < 0 or is_other or isinstance(A, memoryview):
        raise TypeError(f"{name} must be an array or a sequence of objects; got {type(A).__name__}.")
    return size


def check_not_empty(A: Samples, name: str) -> None:
    """Raise unless A is a collection of at least one object."""
    if check_collection(A, name) == 0:
        raise ValueError(f"{name} is empty: at least one object is needed.")


def check_not_masked(A: Samples, name: str) -> None:
    """Raise if A is a masked array: most operations would use the values under the mask."""
    if isinstance(A, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array with {int(np.sum(A.mask))} masked entries. Give {name}.filled(value) or drop "
            f"the masked rows."
        )


def check_real(A: Samples, name: str) -> None:
    """Raise if A is an array, tensor or CSR matrix of complex numbers, dates or durations."""
    dtype = getattr(A, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return
    if "complex" in str(dtype):
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Give real numbers, such as {name}.real, or the "
            f"real and the imaginary parts as columns."
        )
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        kind, duration = ("dates", f"({name} - {name}.min())") if dtype.kind == "M" else ("durations", name)
        raise ValueError(
            f"{name} holds {kind} (dtype {dtype}). Convert them to numbers, such as days: "
            f"{duration} / numpy.timedelta64(1, 'D')."
        )


def check_csr(A: Samples, name: str) -> None:
    """Raise if a CSR matrix has columns that do not exist: products would read or write beyond its memory."""
    if sparse.issparse(A) and A.format == "csr" and A.nnz:
        unsigned = A.indices.view(f"u{A.indices.itemsize}")  # a negative column is a large one: one pass finds both
        if int(unsigned.max()) >= A.shape[1]:
            lowest, highest = int(A.indices.min()), int(A.indices.max())
            raise ValueError(
                f"{name} is a damaged CSR matrix of shape {A.shape}: it has columns {lowest} to {highest}."
            )


def n_columns(A: Samples) -> int | None:
    """Return the width of a collection of rows; None if the objects are not rows."""
    return int(A.shape[1]) if getattr(A, "ndim", 0) == 2 else None


def has_nonzero(A: Samples) -> bool:
    """Return whether rows of numbers, as an array, tensor or CSR matrix, have an entry other than 0."""
    return bool(((A.data if sparse.issparse(A) else A) != 0).any())


def collection_bytes(A: Samples) -> int:
    """Return the memory of a collection in bytes; 0 if it is not known."""
    if sparse.issparse(A):
        return int(A.data.nbytes + A.indices.nbytes + A.indptr.nbytes)
    return int(getattr(A, "nbytes", 0))


def describe_shape(A: Samples) -> str:
    """Return the shape of a collection in words, for error messages."""
    return f"shape {tuple(A.shape)}" if hasattr(A, "shape") else f"{len(A)} objects"


def take(A: Samples, index: Index | slice) -> Samples:
    """Return the chosen objects as a collection of the same form."""
    if isinstance(index, slice) or isinstance(A, np.ndarray) or sparse.issparse(A):
        return A[index]
    if is_tensor(A):
        return take_rows(A, index)
    return A[index] if hasattr(A, "shape") else [A[i] for i in index]


def concat(parts: Sequence[Samples]) -> Samples:
    """Return one collection of all objects; it is a CSR matrix if one of the parts is."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if is_tensor(parts[0]):
        like = parts[0]
        dense = [part.toarray() if sparse.issparse(part) else part for part in parts]
        return array_namespace(like).concat([to_device(part, like.device) for part in dense])
    parts = [tensor_to_numpy(part) for part in parts]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([part if sparse.issparse(part) else sparse.csr_matrix(part) for part in parts], "csr")
    return [item for part in parts for item in part]


def rows_by_part(rows: Index, starts: Index) -> tuple[dict[int, Index], Index]:
    """Divide row numbers among consecutive parts that start at ``starts``.

    Returns the row numbers within each part that has some of them, and where each row is in the concatenated answers.
    """
    owner = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(owner, kind="stable")
    numbers, first = np.unique(owner[order], return_index=True)
    groups = np.split(order, first[1:])
    local = {int(number): rows[group] - starts[number] for number, group in zip(numbers, groups, strict=True)}
    return local, np.argsort(order, kind="stable")


class Distinct(NamedTuple):
    """The distinct objects of a collection, in the order in which they first appear."""

    first: Index  # (d,)  index of the first occurrence of each distinct object
    inverse: Index  # (n,)  number of the distinct object that equals each object


def distinct(A: Samples) -> Distinct:
    """Find the distinct objects of a collection.

    Rows are equal if all their entries are equal. Hashable objects are compared by ``==``; lists, tuples, sets, dicts
    and arrays are compared item by item. All other objects are distinct from each other.

    Rows of numbers, dense or CSR, are grouped by 64-bit hashes and then compared entry by entry if there are at least
    64 of them. Fewer rows, and rows of other entries, are compared by their 128-bit BLAKE2b digests if they have more
    than 32 bytes. The probability that two different rows among n have the same digest is n²/2¹²⁹, less than 1e-25 for
    a million rows.
    """
    A = A if isinstance(A, np.ndarray) else tensor_to_numpy(A)
    A = canonical_csr(A) if sparse.issparse(A) else A
    if n_samples(A) >= MIN_GROUPED_ROWS and (sparse.issparse(A) or isinstance(A, np.ndarray)):
        groups = group_rows(A)
        if groups is not None:
            return Distinct(*groups)
    return _distinct_keys(object_keys(A), n_samples(A))


def _distinct_keys(keys: Iterable[Hashable], n: int) -> Distinct:
    seen: dict[Hashable, int] = {}
    first: list[int] = []
    inverse = np.empty(n, dtype=np.intp)
    for i, key in enumerate(keys):
        j = seen.setdefault(key, len(first))
        if j == len(first):
            first.append(i)
        inverse[i] = j
    return Distinct(np.array(first, dtype=np.intp), inverse)


def match(A: Samples, B: Samples) -> Index:
    """Return, for each object of A, the index of the first equal object in B; −1 if B does not contain it."""
    A, B = tensor_to_numpy(A), tensor_to_numpy(B)
    if hasattr(B, "parts"):  # stacked rows: the first part that contains an object decides
        found = np.full(n_samples(A), -1, dtype=np.intp)
        for part, start in zip(B.parts, B.starts.tolist(), strict=False):
            place = match(A, part)
            found = np.where((found < 0) & (place >= 0), place + start, found)
        return found
    if _are_plain(A, B):
        dtype = _coarser_dtype(A, B) or np.result_type(A, B)
        places: dict[Hashable, int] = {}
        for i, key in enumerate(_row_keys(B, dtype)):
            places.setdefault(key, i)
        return np.fromiter((places.get(key, -1) for key in _row_keys(A, dtype)), np.intp, len(A))
    if sparse.issparse(A) or sparse.issparse(B):
        dtype = _coarser_dtype(A, B)
        A, B = (part if dtype is None else part.astype(dtype) for part in (A, B))
    first, inverse = distinct(concat([B, A]))  # the first occurrence is in B if B has an equal object
    place = first[inverse[n_samples(B) :]]
    return np.where(place < n_samples(B), place, -1)


def _coarser_dtype(A: Samples, B: Samples) -> Any:
    """Return the lower of two floating precisions, in which a float64 number equals its float32 rounding.

    None unless both collections have a floating dtype.
    """
    dtypes = [np.dtype(getattr(part, "dtype", object)) for part in (A, B)]
    return min(dtypes, key=lambda dtype: dtype.itemsize) if all(dtype.kind == "f" for dtype in dtypes) else None


def _are_plain(*collections: Samples) -> bool:
    """Return whether all collections are arrays of numbers or strings whose rows have the same shape."""
    arrays = all(isinstance(A, np.ndarray) and A.dtype != object for A in collections)
    return arrays and len({A.shape[1:] for A in collections}) == 1


def object_keys(A: Samples) -> Iterable[Hashable]:
    """Return an iterable with one hashable key per object; equal objects have equal keys."""
    A = A if isinstance(A, np.ndarray) else tensor_to_numpy(A)
    if sparse.issparse(A):
        return _csr_keys(A)
    if hasattr(A, "parts"):  # stacked rows
        return chain.from_iterable(map(object_keys, A.parts))
    if _are_plain(A):
        return _row_keys(A, A.dtype)
    return _object_keys(A)


def _row_keys(A: NDArray[Any], dtype: Any) -> Iterator[bytes]:
    if dtype == np.longdouble:
        dtype = np.float64  # a long double has bytes without a meaning
    n_bytes = np.dtype(dtype).itemsize * int(np.prod(A.shape[1:], dtype=np.intp))
    step = max(1, CHUNK_BYTES // max(1, n_bytes))
    for start in range(0, len(A), step):
        with np.errstate(over="ignore"):  # of numbers that are too large for a lower precision
            rows = np.ascontiguousarray(A[start : start + step], dtype=dtype)
        if np.issubdtype(rows.dtype, np.inexact):
            rows = rows + 0.0  # converts −0.0 to 0.0
        if n_bytes == 0:
            yield from [b""] * len(rows)
        else:
            yield from map(_digest, rows.reshape(len(rows), -1).view(f"V{n_bytes}").ravel().tolist())


def _csr_keys(A: Any) -> list[bytes]:
    A = canonical_csr(A)
    keys = [b""] * A.shape[0]
    sizes = np.diff(A.indptr)
    bytes_per_entry = A.indices.itemsize + A.data.itemsize
    for size in np.unique(sizes[sizes > 0]).tolist():  # rows with as many entries are read together
        rows = np.flatnonzero(sizes == size)
        for part in np.array_split(rows, -(-len(rows) * size * bytes_per_entry // CHUNK_BYTES)):
            entries = A.indptr[part][:, None] + np.arange(size)
            contents = [np.ascontiguousarray(values[entries]).view(np.uint8) for values in (A.indices, A.data)]
            joined = np.hstack(contents).view(f"V{size * bytes_per_entry}").ravel()
            for row, key in zip(part.tolist(), joined.tolist(), strict=True):
                keys[row] = _digest(key)
    return keys


def _digest(key: bytes) -> bytes:
    return key if len(key) <= KEY_BYTES else blake2b(key, digest_size=16).digest()


def _object_keys(A: Samples) -> Iterator[Hashable]:
    items = list(A)  # keeps all items alive, so that ids are unique
    for item in items:
        yield _object_key(item)


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


def make_csr(container: type, parts: Sequence[NDArray[Any]], shape: Sequence[int], *, copy: bool = False) -> Any:
    """Return a CSR matrix of the given class from data, indices and indptr; raise a ValueError if they do not fit.

    SciPy's own check is not sufficient: if the last number of indptr is not positive, it accepts any other numbers,
    with which later calls read and write other memory.
    """
    data, indices, indptr = parts
    n_rows, n_columns = shape
    if not (type(n_rows) is int and type(n_columns) is int and n_rows >= 0 and n_columns >= 0):
        raise ValueError(f"{shape!r:.80} is not the shape of a matrix")
    if not all(part.dtype.isnative for part in parts):
        raise ValueError("the numbers of a CSR matrix have another byte order than this machine")
    is_number = data.dtype.kind in "biufc" and data.dtype != "f2"  # SciPy does not compute with float16
    if not (is_number and indices.dtype.kind == indptr.dtype.kind == "i"):
        raise ValueError(f"a CSR matrix has data of {data.dtype}, indices of {indices.dtype}, indptr of {indptr.dtype}")
    if not (data.ndim == indices.ndim == indptr.ndim == 1 and len(data) == len(indices) and len(indptr) == n_rows + 1):
        raise ValueError(
            f"a CSR matrix of {n_rows} rows has data, indices and indptr of shapes {data.shape}, {indices.shape} and "
            f"{indptr.shape}"
        )
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] > len(indices):
        raise ValueError(f"indptr of a CSR matrix does not ascend from 0 to its {len(indices)} entries")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n_columns:
        raise ValueError(f"a CSR matrix of {n_columns} columns has indices from {indices.min()} to {indices.max()}")
    return container((data, indices, indptr), shape=(n_rows, n_columns), copy=copy)
