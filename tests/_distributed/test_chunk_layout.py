"""Chunks that are not what their collection declares: cast to its dtype and form, or an error that names the chunk."""

import numpy as np
import pytest
from scipy import sparse

from psilearn import OEL
from psilearn._distributed import as_chunks, map_chunks
from psilearn._utils.samples import concat
from psilearn.kernels import Gaussian
from tests.dask_data import to_dask

da = pytest.importorskip("dask.array")
ROWS = np.arange(12.0).reshape(6, 2)
OPTIONS = {"alpha": 0.1, "n_components": 2, "input_landmarks": 4, "output_landmarks": 4}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def chunks_of(*blocks, dtype=float, meta=None, width=2):
    """Return a Dask array that declares three rows per chunk, whatever its blocks are."""
    from dask.delayed import delayed

    parts = [da.from_delayed(delayed(block), (3, width), dtype, meta) for block in blocks]
    return da.concatenate(parts)


def gathered(A):
    return concat(map_chunks(_identity, as_chunks(A, "A")))


def _identity(chunk):
    return chunk


def _without_last_row(block):
    return block[:-1] if len(block) == 2 else block


def test_a_chunk_with_other_rows_than_declared_is_refused_in_fit_and_predict():
    X = to_dask(ROWS, (0, 4, 2))
    shorter = X.map_blocks(_without_last_row, dtype=float, meta=np.empty((0, 2)))
    assert shorter.shape == X.shape
    message = r"chunk 2 of {} has 1 rows, but 2 are declared.*{} = {}\.compute_chunk_sizes\(\)"
    for pair, name in (((shorter, X), "X"), ((X, shorter), "y")):
        with pytest.raises(ValueError, match=message.format(name, name, name)):
            OEL(Gaussian(), Gaussian(), **OPTIONS).fit(*pair)
    with pytest.raises(ValueError, match="chunk 2 of unlabeled has 1 rows"):
        OEL(Gaussian(), Gaussian(), **OPTIONS).fit(X, X, unlabeled=shorter)
    model = OEL(Gaussian(), Gaussian(), **OPTIONS).fit(X, X)
    for lazy in (model.embed(shorter), model.predict(shorter), model.predict_topk(shorter, 2).indices):
        with pytest.raises(ValueError, match="chunk 2 of X has 1 rows"):
            lazy.compute()


def test_shards_are_not_built_from_chunks_with_other_rows(tmp_path):
    model = OEL(Gaussian(), Gaussian(), n_components=2).fit(ROWS, ROWS)
    shorter = to_dask(ROWS, (4, 2)).map_blocks(_without_last_row, dtype=float, meta=np.empty((0, 2)))
    with pytest.raises(ValueError, match="chunk 1 of outputs has 1 rows"):
        model.candidate_set(shorter, tmp_path / "set")


def test_a_chunk_with_other_columns_is_refused():
    with pytest.raises(ValueError, match=r"chunk 1 of A has shape \(3, 3\), but 2 columns are declared"):
        gathered(chunks_of(np.ones((3, 2)), np.ones((3, 3))))
    with pytest.raises(ValueError, match=r"chunk 0 of A has shape \(3,\), but 2 columns are declared"):
        gathered(chunks_of(np.ones(3), np.ones((3, 2))))


def test_equal_outputs_of_different_dtypes_are_one_candidate(tmp_path):
    y = chunks_of(ROWS[:3].astype(np.float32), ROWS[:3])
    model = OEL(Gaussian(), Gaussian(), **OPTIONS).fit(to_dask(ROWS, (3, 3)), y)
    assert len(model.candidates_) == 3 and model.candidates_.outputs.dtype == float
    shards = model.candidate_set(chunks_of(ROWS[:3].astype(int), ROWS[:3]), tmp_path / "set")
    assert {part.dtype for part in shards.outputs.parts} == {np.dtype(float)}


def test_dense_chunks_of_a_sparse_collection_become_csr():
    meta = sparse.csr_matrix((0, 2))
    y = chunks_of(sparse.csr_matrix(ROWS[:3]), ROWS[:3], meta=meta)
    assert sparse.issparse(gathered(y))
    model = OEL(Gaussian(), Gaussian(), **OPTIONS).fit(to_dask(ROWS, (3, 3)), y)
    assert len(model.candidates_) == 3
    mixed = chunks_of(ROWS[:3], sparse.csr_matrix(ROWS[:3]))
    with pytest.raises(ValueError, match=r"chunk 1 of A is a sparse matrix.*A = A\.map_blocks\(scipy"):
        gathered(mixed)
    declared = mixed.map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 2)))  # the line of the advice
    np.testing.assert_array_equal(gathered(declared).toarray(), np.vstack([ROWS[:3], ROWS[:3]]))


@pytest.mark.parametrize(("declared", "block"), [(int, ROWS[:3] + 0.5), ("U1", np.full((3, 2), "abc"))])
def test_values_that_the_declared_dtype_cannot_hold_are_refused(declared, block):
    with pytest.raises(ValueError, match=rf"chunk [01] of A has dtype {block.dtype}, but .* is declared"):
        gathered(chunks_of(block, block, dtype=declared))


def test_bags_have_one_dtype():
    bag = to_dask([[1, 0], [0, 1], [1, 0.5], [1, 0]], (2, 2))
    model = OEL(Gaussian(), Gaussian(), **{**OPTIONS, "output_landmarks": 2})
    assert len(model.fit(to_dask(ROWS[:4], (2, 2)), bag).candidates_) == 3
    assert gathered(bag) == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.5], [1.0, 0.0]]
    same, words = to_dask([[1, 0], [0, 1]], (1, 1)), to_dask(["a", "bc", "d"], (2, 1))
    assert type(gathered(same)[0][0]) is int and gathered(words) == ["a", "bc", "d"]
    assert gathered(to_dask([[1, 2], [3, 4, 5], [6, 7]], (1, 2))) == [[1, 2], [3, 4, 5], [6, 7]]


def test_partitions_of_arrays_have_one_form():
    bag = to_dask([[1, 0], [0, 1]], (1, 1))
    arrays = bag.map_partitions(_array_or_csr)
    assert sparse.issparse(gathered(arrays)) and gathered(arrays).dtype == float
    with pytest.raises(ValueError, match="chunks of A have different widths"):
        as_chunks(bag.map_partitions(_array_of_width), "A")


def _array_or_csr(rows):
    return sparse.csr_matrix(np.array(rows)) if rows[0][0] else np.array(rows, float)


def _array_of_width(rows):
    return np.ones((1, 1 + rows[0][0]))


def test_data_frames_have_the_declared_columns_and_dtypes():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    from dask.delayed import delayed

    whole = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    meta = pd.DataFrame({"a": [1.0], "b": [1.0]})[:0]
    frame = dd.from_delayed([delayed(whole), delayed(whole.astype(float))], meta=meta, verify_meta=False)
    parts = map_chunks(_identity, as_chunks(frame, "A"))
    assert [list(map(str, part.dtypes)) for part in parts] == [["float64"] * 2] * 2
    swapped = dd.from_delayed([delayed(whole[["b", "a"]])], meta=meta, verify_meta=False)
    with pytest.raises(ValueError, match=r"chunk 0 of A has columns \['b', 'a'\], declared are \['a', 'b'\]"):
        map_chunks(_identity, as_chunks(swapped, "A"))
    series = dd.from_pandas(pd.Series([1.0, 2.0, 3.0]), npartitions=2)
    assert as_chunks(series, "y").shape == (3,)
