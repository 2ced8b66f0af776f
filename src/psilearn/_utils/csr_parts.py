"""CSR matrices from parts of unknown origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray


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
