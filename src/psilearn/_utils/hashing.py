"""Hashes of contents: what names a collection of outputs, or a kernel, from one process to another."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from psilearn._backend import off_device, row_blocks
from psilearn._utils.samples import Samples, n_columns, n_samples
from psilearn.kernels.kernel import Kernel


def content_hash(A: Samples) -> str:
    """Return the SHA-256 of a collection's contents, as hexadecimal digits.

    Equal collections have equal hashes, whatever their memory layout, byte order, order of CSR entries or sign of zero.
    Arrays are read block by block. Other sequences must hold what can be compared by content (the equality of
    :func:`psilearn._utils.samples.distinct`): numbers, strings, bytes, None, and arrays, lists, tuples, sets and dicts of
    them. Neither ``hash`` nor ``repr`` nor a pickle is used: they change from one process to another.
    """
    return digest(A, strict=True).hex()


def digest(A: Samples, strict: bool) -> bytes:
    """Return the SHA-256 of a collection; unless ``strict``, an object without known contents counts by its class."""
    digest = hashlib.sha256()
    for part in _pieces(A, strict):
        digest.update(part)
    return digest.digest()


def _pieces(A: Samples, strict: bool) -> Iterator[bytes]:
    A = tensor_to_numpy(A)
    if sparse.issparse(A):
        A = A.tocsr()
        yield f"csr {A.shape} {A.dtype.newbyteorder('<').str};".encode()
        streams = [hashlib.sha256() for _ in range(3)]  # row lengths, columns, values: blocks leave no trace
        for rows in iter_blocks(A.shape[0], 64 * (1 + A.nnz // max(1, A.shape[0]))):
            part = A[rows].copy()
            part.sum_duplicates()  # sorts the columns too
            part.eliminate_zeros()
            entries = np.diff(part.indptr).astype("<i8"), part.indices.astype("<i8"), _plain(part.data)
            for stream, values in zip(streams, entries, strict=True):
                stream.update(values.tobytes())
        yield from (stream.digest() for stream in streams)
    elif isinstance(A, np.ndarray) and not A.dtype.hasobject:
        yield f"array {A.shape} {A.dtype.newbyteorder('<').str};".encode()
        for rows in iter_blocks(len(A), 3 * A.dtype.itemsize * (n_columns(A) or 1)):
            yield _plain(A[rows]).tobytes()
    else:
        yield f"objects {n_samples(A)};".encode()
        for item in A:
            yield encode(item, strict)


def _plain(A: Any) -> Any:
    """Return the entries in little-endian order, with −0.0 as 0.0."""
    A = np.asarray(A).astype(A.dtype.newbyteorder("<"), copy=False)
    return A + A.dtype.type(0) if A.dtype.kind in "fc" else A


def encode(item: Any, strict: bool) -> bytes:
    """Return the contents of one object, with its length in front so that no two objects read alike."""
    if isinstance(item, np.bool_):
        item = bool(item)
    if item is None:
        kind, body = "none", b""
    elif isinstance(item, str):
        kind, body = "str", str(item).encode("utf-8", "surrogatepass")
    elif isinstance(item, bytes):
        kind, body = "bytes", bytes(item)
    elif isinstance(item, numbers.Integral):
        kind, body = "number", str(int(item)).encode()
    elif isinstance(item, numbers.Real):
        value = float(item)  # 1, 1.0 and True are equal
        kind, body = "number", (str(int(value)) if value.is_integer() else value.hex()).encode()
    elif not strict and (isinstance(item, np.ndarray) or sparse.issparse(item)):  # a matrix that a kernel holds
        kind, body = "matrix", digest(item if item.ndim else item[None], strict)
    elif isinstance(item, np.ndarray):
        kind = f"array {item.shape}"
        body = b"".join(encode(part, strict) for part in item.ravel().tolist())
    elif isinstance(item, list | tuple):
        kind, body = type(item).__name__, b"".join(encode(part, strict) for part in item)
    elif isinstance(item, set | frozenset):
        kind, body = "set", b"".join(sorted(encode(part, strict) for part in item))
    elif isinstance(item, dict):
        pairs = (encode(key, strict) + encode(value, strict) for key, value in item.items())
        kind, body = "dict", b"".join(sorted(pairs))
    elif isinstance(item, BaseEstimator):
        kind = f"estimator {type(item).__module__}.{type(item).__qualname__}"
        body = encode({name: value for name, value in vars(item).items() if not name.startswith("_")}, strict=False)
    elif strict:
        raise TypeError(
            f"An object of type {type(item).__name__} has no contents that can be hashed: outputs must be rows of "
            f"numbers, numbers, strings, bytes, or lists, tuples, sets, dicts and arrays of these."
        )
    else:
        named = item if callable(item) and hasattr(item, "__qualname__") else type(item)
        kind, body = "object", f"{named.__module__}.{named.__qualname__}".encode()
    return f"{kind}:{len(body)}:".encode() + body
