"""Arrays of the laboratory: their type, blocks of rows that fit into memory, and arrays from any device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.utils import gen_batches

from psilearn.utils import Samples

Array: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Pairs: TypeAlias = tuple[Samples, Array]  # inputs and outputs (n, L)
ErrorMetric: TypeAlias = Callable[[Array, Array], float]  # of truth and prediction


def block_rows(bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows fit into scikit-learn's ``working_memory``, at least one."""
    return max(1, min(n_rows, int(get_config()["working_memory"] * 2**20) // max(1, bytes_per_row)))


def iter_blocks(n_rows: int, bytes_per_row: int, max_rows: int | None = None) -> Iterator[slice]:
    """Split ``range(n_rows)`` into slices of at most ``max_rows`` rows that each fit into ``working_memory``."""
    yield from gen_batches(n_rows, block_rows(bytes_per_row, max_rows or max(1, n_rows)))


def to_numpy(A: Any) -> Any:
    """Return an array, or the array of a tensor on any device."""
    return A.detach().cpu().numpy() if hasattr(A, "detach") else np.asarray(A)
