"""Label sets as CSR rows of zeros and ones, and back in the form in which a model knows its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._backend import is_tensor, to_device, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples
from psilearn.kernels import Kernel


def is_packed(kernel: Kernel) -> bool:
    """Return whether a kernel, or a part of it, takes rows of packed bits."""
    params = kernel.get_params(deep=True)
    return any(value is True for name, value in params.items() if name.split("__")[-1] == "packed")


def count_labels(outputs: Samples, packed: bool) -> int:
    """Return the number L of labels of 0/1 rows, 8 per byte of packed rows; raise if the outputs are not rows."""
    if getattr(outputs, "ndim", 0) != 2:
        raise ValueError(
            f"Label sets are 0/1 rows, one column per label, but the outputs of the model are {type(outputs).__name__}"
            f"{f' of shape {tuple(outputs.shape)}' if hasattr(outputs, 'shape') else ''}: give a list of candidates, "
            "or StringBeam() if they are strings."
        )
    return int(outputs.shape[1]) * (8 if packed else 1)


def to_label_rows(outputs: Samples, packed: bool) -> Any:
    """Return 0/1 rows as a CSR matrix (n, L) of float64 with sorted indices; raise for other numbers."""
    n_labels = count_labels(outputs, packed)
    if sparse.issparse(outputs):
        rows = sparse.csr_matrix(outputs, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
    else:
        dense = to_numpy(outputs)
        i, j = np.nonzero(np.unpackbits(dense, axis=1) if packed else dense)
        values = np.ones(len(i)) if packed else dense[i, j].astype(np.float64)
        rows = sparse.csr_matrix((values, (i, j)), shape=(len(dense), n_labels))
    _require_ones(rows.data)
    return rows


def check_label_rows(outputs: Samples, packed: bool) -> None:
    """Raise if outputs are not 0/1 rows."""
    count_labels(outputs, packed)
    if not packed:
        values = outputs.data if sparse.issparse(outputs) else to_numpy(outputs)
        _require_ones(values[values != 0])


def _require_ones(values: Any) -> None:
    if (values != 1).any():
        value = values[np.argmax(values != 1)]
        raise ValueError(
            f"Label sets are 0/1 rows, but the outputs of the model contain {value.item()!r}: give candidates."
        )


def rows_of_labels(labels: Index, sizes: Index, n_labels: int) -> Any:
    """Return the CSR rows (n, L) of sets whose labels are given one set after the other, with ascending labels."""
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_matrix((np.ones(len(labels)), labels, indptr), shape=(len(sizes), n_labels))


def to_form_of(rows: Any, known: Samples, packed: bool) -> Samples:
    """Return CSR rows of sets in the form of known outputs: their class, dtype and device, or packed bits."""
    if sparse.issparse(known):
        return type(known)(rows.astype(known.dtype))
    dtype = to_numpy(known[:0]).dtype
    dense = rows.astype(np.uint8).toarray()
    dense = np.packbits(dense, axis=1) if packed else dense.astype(dtype, copy=False)
    return to_device(dense, known.device) if is_tensor(known) else dense


class FoundSets(NamedTuple):
    """The nearest sets of q queries."""

    rows: Any  # CSR (q·k, L), the sets of one query after those of another
    distances: Array  # (q, k), ascending

    @classmethod
    def join(cls, parts: Sequence[FoundSets], k: int, n_labels: int) -> FoundSets:
        """Return the sets of consecutive blocks of queries; distances that rounding made negative become 0."""
        if not parts:
            return cls(sparse.csr_matrix((0, n_labels)), np.zeros((0, k)))
        rows = sparse.vstack([part.rows for part in parts], "csr")
        return cls(rows, np.maximum(np.concatenate([part.distances for part in parts]), 0))
