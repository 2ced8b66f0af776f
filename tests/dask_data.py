"""Collections in memory as Dask collections of a few chunks."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse


def to_dask(A: Any, sizes: Sequence[int]) -> Any:
    """Return a Dask array, with CSR blocks if A is a CSR matrix, or a bag if A is a list; chunks of these sizes."""
    import dask.array as da
    import dask.bag as db

    assert sum(sizes) == (A.shape[0] if hasattr(A, "shape") else len(A))
    bounds = np.cumsum([0, *sizes])
    if isinstance(A, list):
        return db.concat([db.from_sequence(A[i:j], npartitions=1) for i, j in itertools.pairwise(bounds)])
    if sparse.issparse(A):
        dense = da.from_array(A.toarray(), chunks=(tuple(sizes), -1))
        return dense.map_blocks(sparse.csr_matrix)
    return da.from_array(A, chunks=(tuple(sizes), *[-1] * (A.ndim - 1)))
