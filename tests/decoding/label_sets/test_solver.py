"""The nearest of all label sets against brute force, an integer program, and other ways to compute the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn import config_context

from psilearn._backend import NUMPY, Compute
from psilearn.decoding import AllLabelSets
from psilearn.decoding.label_sets import size_search
from psilearn.decoding.label_sets.set_limits import heaviest_columns
from psilearn.decoding.label_sets.size_search import RangeBounds, size_ranges
from psilearn.decoding.label_sets.size_weights import find_size_form
from psilearn.decoding.label_sets.solver import iter_query_blocks
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Gaussian, Linear, Tanimoto
from tests.decoding.label_sets.set_cases import SIZE_KERNELS, all_sets, cases, distances, draw_case, draw_sets
from tests.kernels.kernel_cases import PROPERTY


def rows_of(sets):
    return sets.toarray() if sparse.issparse(sets) else np.asarray(sets)


@pytest.mark.parametrize("kernel", SIZE_KERNELS, ids=repr)
@PROPERTY
@given(case=cases)
def test_the_nearest_sets_are_those_of_brute_force(kernel, case):
    embedding, Z = draw_case(kernel, *case)
    sets = all_sets(case[0])
    D = distances(embedding, Z, sets)
    candidates = AllLabelSets(embedding, sets)
    for k in (1, 2, 7):
        top = candidates.nearest(Z, k)
        expected = np.sort(D, axis=1)[:, :k]
        tolerance = 1e-9 * (1 + np.sum(Z**2, axis=1).max())
        np.testing.assert_allclose(top.distances, expected, atol=tolerance)
        for i, found in enumerate(top.outputs):
            assert len(np.unique(found, axis=0)) == len(found) == min(k, len(sets))
            np.testing.assert_allclose(distances(embedding, Z[i : i + 1], found)[0], expected[i], atol=tolerance)


@pytest.mark.parametrize("kernel", [Dice(), Linear()], ids=repr)
@PROPERTY
@given(case=cases)
def test_the_solver_and_the_decoder_of_listed_sets_agree_including_ties(kernel, case):
    embedding, Z = draw_case(kernel, *case)
    candidates = AllLabelSets(embedding, all_sets(case[0]))
    found, listed = candidates.nearest(Z, 1), candidates.listed.nearest(Z, 1)
    np.testing.assert_array_equal(found.nearest, listed.nearest)
    np.testing.assert_allclose(found.distances, listed.distances, atol=1e-9 * (1 + np.sum(Z**2)))


def test_twelve_labels_with_empty_landmarks():
    rng = np.random.default_rng(0)
    landmarks = np.vstack([np.zeros((1, 12), dtype=int), draw_sets(rng, 9, 12)])
    embedding = Embedding(Dice(), landmarks, np.eye(10))  # not a projection: the order of sets is all that counts
    beta = rng.standard_normal((40, 10))
    sets = all_sets(12)
    scores = beta @ Dice()(sets, landmarks).T
    top = AllLabelSets(embedding, sets).nearest(beta, 3)
    best = np.stack([rows_of(found) for found in top.outputs])  # (40, 3, 12)
    for i in range(len(beta)):
        np.testing.assert_allclose(beta[i] @ Dice()(best[i], landmarks).T, -np.sort(-scores[i])[:3], atol=1e-12)
    assert (best[:, 0].sum(axis=1) == 0).any()  # the empty set is the nearest one of some queries


def best_by_integers(w, size):
    """The heaviest set of one size, by integer programming."""
    ones = np.ones(len(w))
    return -milp(-w, integrality=ones, bounds=Bounds(0, 1), constraints=LinearConstraint(ones, size, size)).fun


def test_thirty_labels_against_integer_programs():
    rng = np.random.default_rng(1)
    landmarks = draw_sets(rng, 12, 30)
    embedding = Embedding(Dice(), landmarks, np.eye(12))
    beta = rng.standard_normal((3, 12))
    found = AllLabelSets(embedding, landmarks).nearest(beta, 1).nearest
    sizes = landmarks.sum(axis=1)
    for b, y in zip(beta, found, strict=True):
        best = max(best_by_integers((2 * b / np.maximum(size + sizes, 1)) @ landmarks, size) for size in range(1, 31))
        best = max(best, b[sizes == 0].sum())
        assert np.isclose(b @ Dice()(y[None], landmarks)[0], best, atol=1e-9)


@PROPERTY
@given(case=cases)
def test_bounds_of_ranges_hold(case):
    embedding, Z = draw_case(Dice(), *case)
    candidates = AllLabelSets(embedding, all_sets(case[0]))
    solver, sets = candidates._solver, all_sets(case[0])
    D, sizes = distances(embedding, Z, sets), sets.sum(axis=1)
    (queries,) = iter_query_blocks(solver.weights, solver.limits, Z, embedding.basis, NUMPY)
    for part in size_ranges(np.arange(case[0] + 1)):
        inside = np.arange(case[0] + 1)[part]
        bounds = RangeBounds.of(queries, inside)
        assert (bounds.distances <= D[:, np.isin(sizes, inside)].min(axis=1) + 1e-9 * (1 + np.sum(Z**2))).all()


def test_labels_and_ranges_that_are_left_out_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    landmarks = (rng.random((60, 150)) < 0.03).astype(int)
    beta = 0.02 * rng.standard_normal((20, 60))
    beta[np.arange(20), rng.integers(60, size=20)] += 0.8
    candidates = AllLabelSets(Embedding(Dice(), landmarks, np.eye(60)), landmarks)
    visited = []
    visit = size_search._visit
    monkeypatch.setattr(size_search, "_visit", lambda queries, *rest: visited.append(queries) or visit(queries, *rest))
    fast, several = candidates.nearest(beta, 1), candidates.nearest(beta, 5)
    n_visited = len(visited)
    assert min(queries.vectors.shape[2] for queries in visited) < 150  # labels were left out
    monkeypatch.setattr(size_search, "MIN_SAVED", 10**9)
    bounds_of = RangeBounds.of
    no_bound = np.full(20, -np.inf)
    monkeypatch.setattr(RangeBounds, "of", lambda *given: replace(bounds_of(*given), distances=no_bound))
    np.testing.assert_array_equal(fast.nearest, candidates.nearest(beta, 1).nearest)
    np.testing.assert_allclose(several.distances, candidates.nearest(beta, 5).distances, atol=1e-12)
    assert len(visited) - n_visited > n_visited  # ranges were left out


@pytest.mark.parametrize("kernel", [Dice(), Linear()], ids=repr)
def test_forms_of_outputs_and_blocks_change_nothing(kernel):
    rng = np.random.default_rng(3)
    landmarks = draw_sets(rng, 20, 14)
    beta = rng.standard_normal((30, 20))
    expected = AllLabelSets(Embedding(kernel, landmarks, np.eye(20)), landmarks).nearest(beta, 2)
    rows = sparse.csr_matrix(landmarks.astype(np.float32))
    found = AllLabelSets(Embedding(kernel, rows, np.eye(20)), rows).nearest(beta, 2)
    assert sparse.issparse(found.nearest)
    assert found.nearest.dtype == np.float32
    np.testing.assert_array_equal(found.nearest.toarray(), expected.nearest)
    np.testing.assert_array_equal(found.distances, expected.distances)
    with config_context(working_memory=0.01):
        small = AllLabelSets(Embedding(kernel, landmarks, np.eye(20)), landmarks).nearest(beta, 2)
    np.testing.assert_array_equal(small.nearest, expected.nearest)


def test_packed_bits_give_the_same_sets():
    rng = np.random.default_rng(4)
    landmarks = draw_sets(rng, 10, 11)
    packed = np.packbits(landmarks.astype(np.uint8), axis=1)
    beta = rng.standard_normal((15, 10))
    expected = AllLabelSets(Embedding(Dice(), landmarks, np.eye(10)), landmarks).nearest(beta, 1).nearest
    sets = AllLabelSets(Embedding(Dice(packed=True), packed, np.eye(10)), packed, n_labels=11)
    np.testing.assert_array_equal(np.unpackbits(sets.nearest(beta, 1).nearest, axis=1, count=11), expected)


@pytest.mark.parametrize("kernel", [Dice(), Linear()], ids=repr)
def test_torch_finds_the_sets_of_numpy(kernel):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    landmarks = (rng.random((50, 80)) < 0.06).astype(int)
    beta = rng.standard_normal((20, 50)) * 0.05
    sets = AllLabelSets(Embedding(kernel, landmarks, np.eye(50)), landmarks)
    for k in (1, 4):
        found = sets.nearest(beta, k, Compute.of("float64", torch.device("cpu")))
        expected = sets.nearest(beta, k)
        np.testing.assert_array_equal(found.nearest, expected.nearest)
        np.testing.assert_allclose(found.distances, expected.distances, atol=1e-12)
    tensors = torch.from_numpy(landmarks)
    on_device = AllLabelSets(Embedding(kernel, tensors, np.eye(50)), tensors).nearest(torch.from_numpy(beta), 1).nearest
    assert on_device.dtype == tensors.dtype
    np.testing.assert_array_equal(on_device.numpy(), sets.nearest(beta, 1).nearest)


def test_labels_that_nothing_tells_apart_are_taken_in_their_order():
    W = np.array([[1.0, 0.5, 0.5 + 1e-15, 0.5 - 1e-15, 0.2], [0.0, 0.0, 0.0, 0.0, 0.0]])
    mask = heaviest_columns(W, np.array([2, 3]), np.full((2, 1), 1e-13))
    np.testing.assert_array_equal(mask, [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]])
    assert not heaviest_columns(W, np.array([0, 0]), np.zeros((2, 1))).any()


def test_a_tie_goes_to_the_smallest_set():
    landmarks = np.array([[1, 1, 0]])
    sets = AllLabelSets(Embedding(Linear(), landmarks, np.eye(1)), landmarks)
    assert not sets.nearest(np.array([[0.5]]), 1).nearest.any()  # every w is ½ or 0: adding a label changes nothing
    top = sets.nearest(np.array([[0.5]]), 4)
    np.testing.assert_array_equal(top.outputs[0], [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
    assert len(np.unique(top.distances)) == 1


@pytest.mark.parametrize("kernel", SIZE_KERNELS, ids=repr)
def test_size_forms_are_the_kernels(kernel):
    form, sets = find_size_form(kernel), all_sets(5)
    sizes = sets.sum(axis=1).astype(float)
    values = form.weight(sizes[:, None], sizes) * (sets @ sets.T) + form.constant(sizes[:, None], sizes)
    np.testing.assert_allclose(values, kernel(sets), atol=1e-14)
    np.testing.assert_allclose(form.squared_norms(sizes), kernel.diag(sets), atol=1e-14)


def test_kernels_without_a_form_and_subclasses_have_none():
    class Other(Dice):
        """A subclass with another similarity."""

    for kernel in (Gaussian(1.0), Tanimoto(), Other(), Dice() + Tanimoto(), 2.0 * Gaussian(1.0), Linear() * Dice()):
        assert find_size_form(kernel) is None
