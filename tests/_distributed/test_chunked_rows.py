"""Dask collections as collections of objects: rows by number, chunks, and sums in a fixed order."""

import numpy as np
import pytest
from scipy import sparse

from psilearn._distributed import ChunkedRows, as_chunks, check_aligned, is_dask, map_chunks, reduce_chunks, sum_chunks
from psilearn._distributed.chunk_tasks import BRANCHES, add_results
from psilearn._utils.samples import n_columns, n_samples, take
from tests.dask_data import to_dask

da = pytest.importorskip("dask.array")
SIZES = (3, 4, 2, 1)


@pytest.mark.parametrize("form", ["rows", "numbers", "csr", "list", "strings"])
def test_rows_are_gathered_by_number_in_the_order_asked_for(form):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (10, 3))
    A = {
        "rows": rows,
        "numbers": rows[:, 0],
        "csr": sparse.csr_matrix(rows),
        "list": rows.tolist(),
        "strings": np.array(list("abcdefghij"), dtype=object),
    }[form]
    chunks = as_chunks(to_dask(A, SIZES), "A")
    assert n_samples(chunks) == 10 and (form in ("list",) or n_columns(chunks) == n_columns(A))
    for index in (np.array([9, 0, 4, 4, 2]), np.array([5]), np.arange(10), slice(2, 8), slice(0, 1)):
        got, expected = take(chunks, index), take(A, index)
        got, expected = (part.toarray() if sparse.issparse(part) else np.asarray(part) for part in (got, expected))
        np.testing.assert_array_equal(got, expected)


def test_unknown_sizes_are_computed_and_empty_chunks_dropped():
    A = da.arange(12, chunks=4)
    chunks = as_chunks(A[A % 12 > 7], "A")  # sizes unknown; the first two chunks are empty
    assert chunks.sizes == (4,) and chunks.shape == (4,)
    with pytest.raises(ValueError, match="A is empty"):
        as_chunks(A[A < 0], "A")


def test_data_frames_have_the_rows_of_their_partitions():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(5.0), "b": np.ones(5)}), npartitions=2)
    chunks = as_chunks(frame, "X")
    assert chunks.shape == (5, 2)
    assert sum_chunks(lambda chunk: (chunk.to_numpy().sum(),), chunks) == (15.0,)


def test_wrong_collections_are_refused_with_the_line_to_type():
    X = da.ones((6, 4), chunks=(2, 2))
    with pytest.raises(ValueError, match=r"X has 2 chunks of columns.*Type: X = X\.rechunk\(\{1: -1\}\)"):
        as_chunks(X, "X")
    assert len(as_chunks(X.rechunk({1: -1}), "X").blocks) == 3
    with pytest.raises(ValueError, match="one or two dimensions"):
        as_chunks(da.ones((2, 2, 2)), "X")
    with pytest.raises(TypeError, match=r"must be a dask\.array, a dask\.dataframe or a dask\.bag"):
        as_chunks(da.ones(3).sum().to_delayed().ravel()[0], "X")
    A, B = as_chunks(da.ones(6, chunks=2), "A"), as_chunks(da.ones(6, chunks=3), "B")
    with pytest.raises(ValueError, match=r"3 chunks of 2, 2, 2 rows.*Type: B = B\.rechunk\(\{0: A\.chunks\[0\]\}\)"):
        check_aligned(A, "A", B, "B")
    with pytest.raises(ValueError, match="A has 6, B 5"):
        check_aligned(A, "A", as_chunks(da.ones(5), "B"), "B")


def test_only_dask_collections_are_dask():
    assert is_dask(da.ones(2)) and not any(map(is_dask, (np.ones(2), [1], "a", None, sparse.eye(2))))


def _trace(chunk, order):
    return f"{int(chunk[0])}"


def test_merges_follow_the_chunk_numbers():
    chunks = as_chunks(da.arange(11, chunks=1), "A")
    merged = reduce_chunks(_trace, lambda parts: "(" + " ".join(parts) + ")", chunks, common=(None,))
    assert BRANCHES == 4 and merged == "((0 1 2 3) (4 5 6 7) (8 9 10))"


def test_sums_are_the_same_on_every_scheduler():
    import dask

    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 7)) * 10.0 ** rng.integers(-8, 8, (1000, 1))
    chunks = as_chunks(da.from_array(A, chunks=(37, 7)), "A")
    totals = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler, num_workers=3):
            totals.append(sum_chunks(lambda chunk: (chunk.sum(axis=0), chunk.T @ chunk, len(chunk)), chunks))
    assert all(np.array_equal(a, b) for a, b in zip(*totals, strict=True)) and totals[0][2] == 1000
    np.testing.assert_allclose(totals[0][1], A.T @ A, rtol=1e-9)


def test_adding_changes_no_part():
    parts = [(np.ones(2), 1), (np.full(2, 2.0), 2)]
    total = add_results(parts)
    assert total[1] == 3 and np.array_equal(total[0], [3, 3]) and np.array_equal(parts[0][0], [1, 1])


def test_a_collection_in_memory_is_one_chunk():
    assert map_chunks(lambda A, b: A.sum() + b, np.arange(3), common=(1,)) == [4]


def test_steps_run_in_the_tasks_and_know_their_chunk():
    seen = []
    chunks = as_chunks(da.arange(6, chunks=2), "A").map(lambda chunk, number: seen.append(number) or chunk * 2)
    assert isinstance(chunks, ChunkedRows) and seen == []
    assert sum_chunks(lambda chunk: (int(chunk.sum()),), chunks) == (30,) and sorted(seen) == [0, 1, 2]


def test_the_budget_of_blocks_travels_with_the_tasks():
    from sklearn import config_context, get_config

    chunks = as_chunks(da.arange(4, chunks=2), "A")
    with config_context(working_memory=17):
        assert map_chunks(lambda chunk: get_config()["working_memory"], chunks) == [17, 17]
