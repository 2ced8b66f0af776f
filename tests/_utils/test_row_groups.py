"""Equal rows found by hashes against a dictionary of keys: the same groups in the same order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from psilearn._utils import row_groups, samples
from psilearn._utils.row_groups import canonical_csr, group_rows
from psilearn._utils.samples import distinct, object_keys

PROPERTY = settings(max_examples=30, deadline=None, derandomize=True)
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.uint64, bool]
NUMBERS = [0.0, -0.0, 1.0, 2.0, 100.0]
NUMBERS_AND_NAN = [*NUMBERS, np.nan, np.inf, 1e-300]


def group_keys(A):
    """The groups of rows with equal keys."""
    return samples._distinct_keys(object_keys(A), A.shape[0])


def check_same_groups(A, expected=None):
    found = group_rows(canonical_csr(A) if sparse.issparse(A) else A)
    expected = group_keys(A) if expected is None else expected
    for part, expected_part in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, expected_part)
        assert part.dtype == np.intp


@st.composite
def rows_of_numbers(draw, dtype):
    elements = st.sampled_from(NUMBERS_AND_NAN if np.dtype(dtype).kind == "f" else NUMBERS)
    shape = draw(st.integers(1, 30)), draw(st.integers(1, 3))
    values = draw(hnp.arrays(np.float64, shape, elements=elements))
    with np.errstate(under="ignore"):
        return values.astype(dtype)


@st.composite
def csr_rows(draw, dtype, index_dtype):
    """Rows with explicit zeros, duplicates, NaN, empty rows, and columns in any order."""
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(st.integers(0, width - 1), max_size=4), min_size=1, max_size=30))
    n_entries = sum(map(len, rows))
    numbers = NUMBERS_AND_NAN if np.dtype(dtype).kind == "f" else NUMBERS
    data = np.array(draw(st.lists(st.sampled_from(numbers), min_size=n_entries, max_size=n_entries)))
    indices = np.array([column for row in rows for column in row], dtype=index_dtype)
    indptr = np.cumsum([0, *map(len, rows)]).astype(index_dtype)
    A = sparse.csr_matrix((len(rows), width), dtype=dtype)
    A.data, A.indices, A.indptr = data.astype(dtype), indices, indptr
    return A


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunk", [8, 64, 2**20])
@PROPERTY
@given(data=st.data())
def test_dense_rows(dtype, chunk, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_groups, "CHUNK_BYTES", chunk)
        A = data.draw(rows_of_numbers(dtype))
        check_same_groups(A)
        check_same_groups(np.asfortranarray(A))
        check_same_groups(A[:, 0])


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("chunk", [8, 64, 2**20])
@PROPERTY
@given(data=st.data())
def test_csr_rows(dtype, index_dtype, chunk, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_groups, "CHUNK_BYTES", chunk)
        A = data.draw(csr_rows(dtype, index_dtype))
        before = A.copy()
        check_same_groups(A)
        check_same_groups(sparse.csr_array(A), group_keys(A))
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(A, part), getattr(before, part))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("width", [1, 5, 40])
def test_distinct_takes_many_rows_in_groups(form, width):
    rng = np.random.default_rng(width)
    A = rng.integers(0, 3, (50, width))[rng.integers(0, 50, 3000)].astype(float)
    A[:10] = np.nan
    found, expected = distinct(form(A)), group_keys(form(A))
    np.testing.assert_array_equal(found.first, expected.first)
    np.testing.assert_array_equal(found.inverse, expected.inverse)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_with_the_same_hash_are_told_apart(form, monkeypatch):
    A = np.random.default_rng(0).integers(0, 2, (200, 4)).astype(float)
    expected = group_keys(form(A))
    for name in ("_hash_dense", "_hash_csr"):
        monkeypatch.setattr(row_groups, name, lambda A: np.zeros(A.shape[0], dtype=np.uint64))
    assert group_rows(form(A)) is None
    found = distinct(form(A))
    np.testing.assert_array_equal(found.first, expected.first)
    np.testing.assert_array_equal(found.inverse, expected.inverse)


@pytest.mark.parametrize("dtype", [float, np.float32, np.int64, np.uint8])
def test_hashes_of_different_rows_differ(dtype):
    bits = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    numbers = np.arange(100)
    for A in (bits, np.stack(np.meshgrid(numbers, numbers), axis=-1).reshape(-1, 2)):
        rows = A.astype(dtype)
        assert len(np.unique(row_groups._hash_dense(rows))) == len(rows)
        assert len(np.unique(row_groups._hash_csr(canonical_csr(sparse.csr_matrix(rows))))) == len(rows)


@pytest.mark.parametrize("dtype", [np.longdouble, complex, "U3", object])
def test_other_entries_are_left_to_keys(dtype):
    A = np.array([1, 2, 1] * 30).astype(dtype)
    assert group_rows(A) is None
    assert distinct(A).first.tolist() == [0, 1]


def test_rows_without_columns_are_one_group():
    assert distinct(np.empty((100, 0))).inverse.tolist() == [0] * 100
    assert distinct(sparse.csr_matrix((100, 5))).inverse.tolist() == [0] * 100
