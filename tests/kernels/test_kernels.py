"""What every kernel must satisfy, whatever it computes."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from psilearn._backend import to_numpy
from psilearn._utils.samples import concat, n_samples, take
from psilearn.kernels import (
    GappySubstrings,
    Gaussian,
    Graph,
    Laplacian,
    MismatchSubstrings,
    Substrings,
    WeisfeilerLehman,
)
from tests.kernels.kernel_cases import CASES, PROPERTY, SPARSE_CASES
from tests.problems import block

on_backends = pytest.mark.usefixtures("backend")
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_sparse_case = pytest.mark.parametrize("case", SPARSE_CASES, ids=str)


def fitted(case, data):
    """Draw a collection; return the kernel fitted to it, and the collection."""
    A = data.draw(case.collections)
    return clone(case.kernel).fit(A), A


def halves(A, data):
    cut = data.draw(st.integers(1, n_samples(A) - 1))
    return take(A, slice(0, cut)), take(A, slice(cut, None))


def shuffled(A, data):
    return take(A, np.array(data.draw(st.permutations(range(n_samples(A))))))


def same(A):
    """An equal collection that is another object."""
    return A.copy()


def assert_close(actual, expected):
    actual, expected = to_numpy(actual), to_numpy(expected)
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-11 * max(1.0, np.abs(expected).max()))


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_symmetric(case, data):
    kernel, A = fitted(case, data)
    K = to_numpy(kernel(A))
    assert K.dtype == np.float64
    assert K.shape == (n_samples(A), n_samples(A))
    assert_close(K, K.T)


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_swapping_the_arguments_transposes_the_block(case, data):
    kernel, C = fitted(case, data)
    A, B = halves(C, data)
    assert_close(kernel(A, B), kernel(B, A).T)


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_positive_semidefinite(case, data):
    kernel, A = fitted(case, data)
    eigenvalues = np.linalg.eigvalsh(block(kernel, A))
    assert eigenvalues[-1] >= 0
    assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_diag_is_the_diagonal_of_the_block(case, data):
    kernel, A = fitted(case, data)
    assert_close(kernel.diag(A), np.diagonal(block(kernel, A)))


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_one_argument_means_twice_the_same(case, data):
    kernel, A = fitted(case, data)
    assert_close(kernel(A), kernel(A, same(A)))


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_a_block_is_a_part_of_the_block_over_all(case, data):
    kernel, C = fitted(case, data)
    A, B = halves(C, data)
    whole = kernel(concat([A, B]))
    cut = n_samples(A)
    assert_close(kernel(A), whole[:cut, :cut])
    assert_close(kernel(A, B), whole[:cut, cut:])


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_paired_is_the_diagonal_of_the_block(case, data):
    kernel, A = fitted(case, data)
    B = shuffled(A, data)
    assert_close(kernel.paired(A, B), np.diagonal(block(kernel, A, B)))


@every_case
@PROPERTY
@given(data=st.data())
def test_paired_does_not_depend_on_how_pairs_are_grouped(case, data):
    kernel, C = fitted(case, data)
    A = concat([C] * 40)  # more pairs than one inner block holds
    B = concat([shuffled(C, data)] * 40)
    assert_close(kernel.paired(A, B), np.tile(kernel.paired(take(A, slice(n_samples(C))), B[: n_samples(C)]), 40))


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_squared_distances_are_those_of_feature_vectors(case, data):
    kernel, C = fitted(case, data)
    A, B = halves(C, data)
    cut = n_samples(A)
    eigenvalues, vectors = np.linalg.eigh(block(kernel, concat([A, B])))
    features = vectors * np.sqrt(np.maximum(eigenvalues, 0))  # rows ψ with ⟨ψ(a), ψ(b)⟩ = k(a, b)
    expected = np.sum((features[:, None] - features[None]) ** 2, axis=2)
    scale = max(1.0, expected.max(), eigenvalues[-1])
    between, within = to_numpy(kernel.squared_distances(A, B)), to_numpy(kernel.squared_distances(A))
    np.testing.assert_allclose(between, expected[:cut, cut:], rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(within, expected[:cut, :cut], rtol=0, atol=1e-10 * scale)


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_squared_distances_are_never_negative_and_zero_to_itself(case, data):
    kernel, A = fitted(case, data)
    distances = to_numpy(kernel.squared_distances(A))
    assert (distances >= 0).all()
    assert (np.diagonal(distances) == 0).all()
    assert (kernel.squared_distances(A, same(A)) >= 0).all()
    assert (kernel.paired_squared_distances(A, shuffled(A, data)) >= 0).all()


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_paired_squared_distances_are_the_diagonal_of_the_block(case, data):
    kernel, A = fitted(case, data)
    B = shuffled(A, data)
    distances = to_numpy(kernel.squared_distances(A, B))
    scale = max(1.0, kernel.diag(A).max())
    np.testing.assert_allclose(
        kernel.paired_squared_distances(A, B), np.diagonal(distances), rtol=0, atol=1e-11 * scale
    )


@every_case
@PROPERTY
@given(data=st.data())
def test_check_accepts_and_does_not_change_the_values(case, data):
    kernel, A = fitted(case, data)
    checked = kernel.check(A, "Y")
    assert np.array_equal(np.asarray(checked), np.asarray(A))
    assert_close(kernel(checked), kernel(A))


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_evaluation_leaves_the_collection_as_it_was(case, data):
    kernel, A = fitted(case, data)
    before = same(A)
    kernel(A)
    kernel(A, A)
    kernel.diag(A)
    kernel.paired(A, A)
    kernel.squared_distances(A)
    assert np.array_equal(np.asarray(A), np.asarray(before))


@on_backends
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
@every_sparse_case
@PROPERTY
@given(data=st.data())
def test_csr_rows_give_the_values_of_dense_rows(case, form, data):
    kernel, C = fitted(case, data)
    A, B = halves(C, data)
    assert_close(kernel(form(A)), kernel(A))
    assert_close(kernel.diag(form(A)), kernel.diag(A))
    assert_close(kernel(form(A), form(B)), kernel(A, B))
    assert_close(kernel(form(A), B), kernel(A, B))
    assert_close(kernel(A, form(B)), kernel(A, B))
    assert_close(kernel.squared_distances(form(A), B), kernel.squared_distances(A, B))


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
@every_sparse_case
@PROPERTY
@given(data=st.data())
def test_paired_csr_rows_give_the_values_of_dense_rows(case, form, data):
    kernel, A = fitted(case, data)
    B = shuffled(A, data)
    expected = kernel.paired(A, B)
    assert_close(kernel.paired(form(A), form(B)), expected)
    assert_close(kernel.paired(form(A), B), expected)
    assert_close(kernel.paired(A, form(B)), expected)


@on_backends
@every_sparse_case
@PROPERTY
@given(data=st.data())
def test_fitting_csr_rows_is_fitting_dense_rows(case, data):
    kernel, A = fitted(case, data)
    assert_close(clone(case.kernel).fit(sparse.csr_matrix(A))(A), kernel(A))


@on_backends
@every_sparse_case
@PROPERTY
@given(data=st.data())
def test_lists_of_rows_and_other_dtypes_are_rows(case, data):
    kernel, A = fitted(case, data)
    whole = np.rint(A)
    assert_close(kernel(A.tolist()), kernel(A))
    assert_close(kernel(np.asfortranarray(A)), kernel(A))
    assert_close(kernel(whole.astype(np.int8)), kernel(whole))


@every_case
def test_clone_keeps_the_parameters(case):
    copy = clone(case.kernel)
    before, after = case.kernel.get_params(), copy.get_params()
    assert copy is not case.kernel
    assert before.keys() == after.keys()
    for name, value in before.items():
        if isinstance(value, BaseEstimator):
            assert type(after[name]) is type(value)
            assert after[name] is not value
        else:
            assert after[name] is value or after[name] == value


@every_case
@PROPERTY
@given(data=st.data())
def test_pickle_keeps_the_values(case, data):
    kernel, A = fitted(case, data)
    again = pickle.loads(pickle.dumps(kernel))
    assert type(again) is type(kernel)
    assert np.array_equal(block(again, A), block(kernel, A))


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_a_clone_forgets_what_was_fitted(kernel):
    fitted_kernel = clone(kernel).fit(np.array([[0.0], [2.0]]))
    assert hasattr(fitted_kernel, "gamma_")
    assert not hasattr(clone(fitted_kernel), "gamma_")


@pytest.mark.parametrize("kernel", [MismatchSubstrings("ACGT"), Substrings(), GappySubstrings(), WeisfeilerLehman()])
def test_parameters_may_be_integers_of_numpy(kernel):
    integers = {name: np.int64(value) for name, value in kernel.get_params().items() if type(value) is int}
    assert integers
    objects = [path_graph(3), path_graph(4)] if isinstance(kernel, WeisfeilerLehman) else ["ACGTAC", "TTGAC"]
    np.testing.assert_array_equal(clone(kernel).set_params(**integers).gram(objects), kernel.gram(objects))


def path_graph(n):
    return Graph(["C"] * n, [(i, i + 1, "-") for i in range(n - 1)])


def test_the_median_width_of_a_frame_is_that_of_its_rows():
    pd = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).random((9, 3))
    assert Gaussian().fit(pd.DataFrame(rows)).gamma_ == Gaussian().fit(rows).gamma_
