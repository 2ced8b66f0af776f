"""Every line of advice, typed as it is, gives collections that are aligned."""

import re

import numpy as np
import pytest
from scipy import sparse

from psilearn._distributed import as_chunks, check_aligned, line_from_memory
from tests.dask_data import to_dask

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
ROWS = np.arange(12.0).reshape(6, 2)


def unknown(A):
    """Return the same array with unknown sizes of chunks."""
    return A[da.ones(len(A), chunks=A.chunks[0]) > 0]


def frame_of(values):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    return dd.from_pandas(pd.DataFrame(values) if np.ndim(values) == 2 else pd.Series(values), npartitions=2)


COLLECTIONS = {
    "array": lambda sizes: to_dask(ROWS, sizes),
    "numbers": lambda sizes: to_dask(ROWS[:, 0], sizes),
    "empty chunk": lambda sizes: to_dask(ROWS, (0, *sizes)),
    "unknown": lambda sizes: unknown(to_dask(ROWS, sizes)),
    "frame": lambda sizes: frame_of(ROWS),
    "series": lambda sizes: frame_of(ROWS[:, 0]),
    "bag": lambda sizes: to_dask(ROWS.tolist(), sizes),
}


@pytest.mark.parametrize("y_kind", COLLECTIONS)
@pytest.mark.parametrize("x_kind", COLLECTIONS)
def test_the_advice_aligns_collections(x_kind, y_kind):
    X, y = COLLECTIONS[x_kind]((4, 2)), COLLECTIONS[y_kind]((1, 3, 2))
    with dask.config.set(scheduler="synchronous"):
        chunks = as_chunks(X, "X"), as_chunks(y, "y")
        if chunks[0].sizes == chunks[1].sizes:
            return
        with pytest.raises(ValueError, match="same row chunks") as raised:
            check_aligned(chunks[0], "X", chunks[1], "y")
        if x_kind == y_kind == "bag":
            assert "partition_size" in str(raised.value)
            return
        names = {"X": X, "y": y}
        exec(re.search(r"Type: (.*)", str(raised.value))[1], names)
        check_aligned(as_chunks(names["X"], "X"), "X", as_chunks(names["y"], "y"), "y")


@pytest.mark.parametrize("kind", COLLECTIONS)
@pytest.mark.parametrize(
    "values",
    [ROWS, ROWS[:, 0], ROWS.tolist(), list("abcdef"), [[1], [1, 2], [3], [4], [5], [6]], sparse.csr_matrix(ROWS)],
    ids=["rows", "numbers", "lists", "words", "ragged", "csr"],
)
def test_the_advice_for_data_in_memory_aligns_them(kind, values):
    X = COLLECTIONS[kind]((4, 2))
    names = {"X": X, "y": values, "dask": dask, "numpy": np}
    with dask.config.set(scheduler="synchronous"):
        chunks = as_chunks(X, "X")
        exec(line_from_memory(chunks, "X", values, "y"), names)
        check_aligned(chunks, "X", as_chunks(names["y"], "y"), "y")
    with pytest.raises(ValueError, match="X has 6, y 5"):
        line_from_memory(chunks, "X", values[:5], "y")
