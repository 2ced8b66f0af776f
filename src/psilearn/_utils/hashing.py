"""Hashes of contents, which identify a collection of outputs or a kernel across processes."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from psilearn._backend import iter_blocks, tensor_to_numpy
from psilearn._utils.samples import Samples, n_columns, n_samples
from psilearn._utils.stacked_rows import StackedRows


def content_hash(A: Samples) -> str:
    """Return the SHA-256 of the contents of a collection as hexadecimal digits.

    Equal collections have equal hashes, whatever their memory layout, byte order, order of CSR entries or sign of zero.
    Arrays are read block by block. Other sequences must hold objects that can be compared by content (the equality of
    :func:`psilearn._utils.samples.distinct`): numbers, strings, bytes, None, and arrays, lists, tuples, sets and dicts
    of them. Neither ``hash`` nor ``repr`` nor pickle is used, because they differ between processes.
    """
    return digest(A, strict=True).hex()


def digest(A: Samples, strict: bool) -> bytes:
    """Return the SHA-256 of a collection; if not ``strict``, objects of unknown contents are hashed by class."""
    sha256 = hashlib.sha256()
    for piece in _pieces(A, strict):
        sha256.update(piece)
    return sha256.digest()


def _pieces(A: Samples, strict: bool) -> Iterator[bytes]:
    A = tensor_to_numpy(A)
    first = A.parts[0] if isinstance(A, StackedRows) else A
    if sparse.issparse(first):
        yield from _csr_pieces(A if isinstance(A, StackedRows) else A.tocsr())
    elif isinstance(first, np.ndarray) and not first.dtype.hasobject:
        yield f"array {A.shape} {A.dtype.newbyteorder('<').str};".encode()
        for rows in iter_blocks(len(A), 3 * A.dtype.itemsize * (n_columns(A) or 1)):
            yield _normalized(A[rows]).tobytes()
    else:
        yield f"objects {n_samples(A)};".encode()
        for item in A:
            yield encode(item, strict)


def _csr_pieces(A: Any) -> Iterator[bytes]:
    yield f"csr {A.shape} {A.dtype.newbyteorder('<').str};".encode()
    streams = [hashlib.sha256() for _ in range(3)]  # row lengths, columns, values: independent of the block sizes
    nnz = sum(part.nnz for part in getattr(A, "parts", [A]))
    for rows in iter_blocks(A.shape[0], 64 * (1 + nnz // max(1, A.shape[0]))):
        block = A[rows].copy()
        block.sum_duplicates()  # also sorts the columns
        block.eliminate_zeros()
        entries = np.diff(block.indptr).astype("<i8"), block.indices.astype("<i8"), _normalized(block.data)
        for stream, values in zip(streams, entries, strict=True):
            stream.update(values.tobytes())
    yield from (stream.digest() for stream in streams)


def _normalized(A: Any) -> Any:
    """Return the entries in little-endian order, with −0.0 as 0.0."""
    A = np.asarray(A).astype(A.dtype.newbyteorder("<"), copy=False)
    return A + A.dtype.type(0) if A.dtype.kind in "fc" else A


def encode(item: Any, strict: bool) -> bytes:
    """Return the contents of one object, preceded by its length so that different objects have different codes."""
    kind, body = _kind_and_body(item, strict)
    return f"{kind}:{len(body)}:".encode() + body


def _kind_and_body(item: Any, strict: bool) -> tuple[str, bytes]:
    if not strict and (isinstance(item, np.ndarray) or sparse.issparse(item)):  # a matrix that a kernel holds
        return "matrix", digest(item if item.ndim else item[None], strict)
    for types, encoder in _ENCODERS:
        if isinstance(item, types):
            return encoder(item, strict)
    if strict:
        raise TypeError(
            f"An object of type {type(item).__name__} has no contents that can be hashed: outputs must be rows of "
            f"numbers, numbers, strings, bytes, or lists, tuples, sets, dicts and arrays of these."
        )
    named = item if callable(item) and hasattr(item, "__qualname__") else type(item)
    return "object", f"{named.__module__}.{named.__qualname__}".encode()


def _encode_real(item: Any, _: bool) -> tuple[str, bytes]:
    value = float(item)  # 1, 1.0 and True are equal
    return "number", (str(int(value)) if value.is_integer() else value.hex()).encode()


def _encode_dict(item: Any, strict: bool) -> tuple[str, bytes]:
    pairs = (encode(key, strict) + encode(value, strict) for key, value in item.items())
    return "dict", b"".join(sorted(pairs))


def _encode_array(item: Any, strict: bool) -> tuple[str, bytes]:
    return f"array {item.shape}", b"".join(encode(part, strict) for part in item.ravel().tolist())


def _encode_estimator(item: Any, _: bool) -> tuple[str, bytes]:
    """Encode a kernel or landmarks by class, parameters and fitted values."""
    state = {name: value for name, value in vars(item).items() if not name.startswith("_")}
    return f"estimator {type(item).__module__}.{type(item).__qualname__}", encode(state, strict=False)


Encoder = Callable[[Any, bool], tuple[str, bytes]]

_ENCODERS: list[tuple[Any, Encoder]] = [
    (type(None), lambda item, _: ("none", b"")),
    (str, lambda item, _: ("str", str(item).encode("utf-8", "surrogatepass"))),
    (bytes, lambda item, _: ("bytes", bytes(item))),
    (numbers.Integral | np.bool_, lambda item, _: ("number", str(int(item)).encode())),
    (numbers.Real, _encode_real),
    (np.ndarray, _encode_array),
    (list | tuple, lambda item, strict: (type(item).__name__, b"".join(encode(part, strict) for part in item))),
    (set | frozenset, lambda item, strict: ("set", b"".join(sorted(encode(part, strict) for part in item)))),
    (dict, _encode_dict),
    (BaseEstimator, _encode_estimator),
]
