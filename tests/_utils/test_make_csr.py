"""CSR matrices from parts of unknown origin: valid parts are taken as they are, all others are rejected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from psilearn._utils.samples import make_csr

GOOD = (np.array([1.0, 2.0, 3.0]), np.array([0, 2, 1], dtype=np.int32), np.array([0, 2, 2, 3], dtype=np.int32))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_valid_parts(container):
    matrix = make_csr(container, GOOD, [3, 3])
    assert type(matrix) is container
    np.testing.assert_array_equal(matrix.toarray(), [[1, 0, 2], [0, 0, 0], [0, 3, 0]])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (2, np.array([0, 2, 1, 0], dtype=np.int32)),  # SciPy accepts these three
        (2, np.array([0, 2**31 - 1, 4, 0], dtype=np.int32)),
        (2, np.array([0, 2, 4, -(2**31)], dtype=np.int32)),
        (2, np.array([0, 2, 2, 4], dtype=np.int32)),
        (2, np.array([1, 2, 2, 3], dtype=np.int32)),
        (2, np.array([0, 2, 3], dtype=np.int32)),
        (2, np.array([0.0, 2.0, 2.0, 3.0])),
        (1, np.array([0, 3, 1])),
        (1, np.array([0, -1, 1])),
        (1, np.array([0, 1])),
        (0, np.array([1.0, 2.0, 3.0], dtype=">f8")),
        (0, np.array([1.0, 2.0, 3.0], dtype=np.float16)),  # SciPy cannot compute with it
        (0, np.array(["a", "b", "c"])),
        (0, np.ones((3, 1))),
    ],
)
def test_other_parts_are_rejected(place, value):
    parts = [*GOOD[:place], value, *GOOD[place + 1 :]]
    with pytest.raises(ValueError, match="CSR matrix"):
        make_csr(sparse.csr_matrix, parts, [3, 3])


@pytest.mark.parametrize("shape", [[-1, 3], [3, -1], [3, 2.0], [True, 3]])
def test_other_shapes_are_rejected(shape):
    with pytest.raises(ValueError, match="is not the shape of a matrix"):
        make_csr(sparse.csr_matrix, GOOD, shape)


@given(st.lists(st.integers(-4, 5), min_size=4, max_size=4), st.lists(st.integers(-2, 4), min_size=3, max_size=3))
def test_accepted_parts_describe_a_matrix(indptr, indices):
    is_valid = indptr == sorted(indptr) and indptr[0] == 0 and indptr[-1] <= 3 and 0 <= min(indices) <= max(indices) < 3
    try:
        matrix = make_csr(sparse.csr_matrix, (GOOD[0], np.array(indices), np.array(indptr)), [3, 3])
    except ValueError:
        assert not is_valid
    else:
        assert is_valid
        dense = np.zeros((3, 3))
        for i in range(3):
            for k in range(indptr[i], indptr[i + 1]):
                dense[i, indices[k]] += GOOD[0][k]
        np.testing.assert_array_equal(matrix.toarray(), dense)
