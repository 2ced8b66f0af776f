"""Decoding against brute force in the output space, by weights on ψ and kernel values alone."""

import numpy as np
import pytest
import sklearn

from psilearn import IOKR, KDE, OEL, PerExampleCandidates
from psilearn._backend import to_numpy
from psilearn._utils.samples import concat, distinct, n_samples, take
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Linear
from tests.problems import block, make

pytestmark = pytest.mark.usefixtures("backend")

KERNEL_X = Gaussian(0.5)
MODELS = {
    "IOKR": lambda kernel: IOKR(KERNEL_X, kernel, alpha=1e-3),
    "KDE": lambda kernel: KDE(KERNEL_X, kernel, alpha=1e-3, n_components=3),
    "OEL": lambda kernel: OEL(KERNEL_X, kernel, alpha=1e-3, n_components=3, supervision=0.3),
}


@pytest.fixture(params=MODELS)
def model(request, problem):
    return MODELS[request.param](problem.kernel).fit(problem.X, problem.Y, problem.unlabeled)


def brute_force(model, X, candidates):
    """|G*z − ψ(y)|² with G*z = Σ_s (basis z)_s ψ(s): only kernel values, no embedding of candidates."""
    kernel, landmarks = model.output_kernel_, model.embedding_.landmarks
    W = model.embed(X) @ model.embedding_.basis.T  # (q, r)  weights on ψ(landmarks)
    norms = np.einsum("ij,jk,ik->i", W, block(kernel, landmarks), W)
    return norms[:, None] - 2 * W @ block(kernel, landmarks, candidates) + kernel.diag(candidates)


def test_distances_are_those_of_the_output_space(model, problem):
    top = model.predict_topk(problem.X_test, k=5, candidates=problem.candidates)
    D = brute_force(model, problem.X_test, problem.candidates)
    np.testing.assert_allclose(top.distances, np.sort(D, axis=1)[:, :5], atol=1e-7)
    np.testing.assert_allclose(np.take_along_axis(D, top.indices, axis=1), top.distances, atol=1e-7)


def test_nearest_in_p_plus_one_dimensions_is_nearest_in_the_output_space(model, problem):
    points = model.candidate_set(problem.candidates).points()  # [g(y), r(y)]
    queries = np.column_stack([model.embed(problem.X_test), np.zeros(len(problem.X_test))])
    euclidean = np.sum((queries[:, None] - points[None]) ** 2, axis=2)
    np.testing.assert_allclose(euclidean, brute_force(model, problem.X_test, problem.candidates), atol=1e-7)


def test_iokr_is_the_textbook_formula(problem):
    # argmin k(y,y) − 2 α(x)ᵀ k(Y, y), from all training outputs, repeated ones included
    model = MODELS["IOKR"](problem.kernel).fit(problem.X, problem.Y)
    n = len(problem.X)
    ridge = block(KERNEL_X, problem.X) + n * 1e-3 * np.eye(n)
    A = np.linalg.solve(ridge, block(KERNEL_X, problem.X, problem.X_test)).T
    k = problem.kernel
    D = k.diag(problem.candidates) - 2 * A @ block(k, problem.Y, problem.candidates)
    D += np.einsum("ij,jk,ik->i", A, block(k, problem.Y), A)[:, None]
    top = model.predict_topk(problem.X_test, k=4, candidates=problem.candidates)
    np.testing.assert_allclose(top.distances, np.sort(D, axis=1)[:, :4], atol=1e-7)


@pytest.mark.parametrize("supervision", [1.0, 0.4, 0.0])
def test_full_rank_oel_predicts_as_iokr(problem, supervision):
    oel = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=None, supervision=supervision).fit(
        problem.X, problem.Y
    )
    iokr = MODELS["IOKR"](problem.kernel).fit(problem.X, problem.Y)
    a, b = (m.predict_topk(problem.X_test, k=3, candidates=problem.candidates) for m in (oel, iokr))
    np.testing.assert_allclose(a.distances, b.distances, atol=1e-6)


def test_dropping_the_norm_or_the_residual_would_be_wrong():
    # A long candidate has the largest inner product and a far one the nearest projection; neither is nearest.
    problem = make("unnormalised")
    model = MODELS["OEL"](problem.kernel).fit(problem.X, problem.Y, problem.unlabeled)
    Z, g = model.embed(problem.X_test), model.transform_outputs(problem.candidates)
    best = model.predict_topk(problem.X_test, 1, problem.candidates).indices[:, 0]
    D = brute_force(model, problem.X_test, problem.candidates)
    np.testing.assert_array_equal(best, np.argmin(D, axis=1))
    assert np.any(best != np.argmax(Z @ g.T, axis=1))
    assert np.any(best != np.argmin(((Z[:, None] - g[None]) ** 2).sum(axis=2), axis=1))


def test_predictions_are_candidates_not_training_outputs(model, problem):
    few = take(problem.candidates, np.array([3, 7]))
    prediction = model.predict(problem.X_test, candidates=few)
    gaps = to_numpy(model.output_kernel_.squared_distances(prediction, few)).min(axis=1)
    np.testing.assert_allclose(gaps, 0, atol=1e-12)


def test_default_candidates_are_the_distinct_known_outputs(model, problem):
    everything = concat([problem.Y, problem.unlabeled])
    as_given = model.predict_topk(problem.X_test, 1, everything)
    np.testing.assert_allclose(model.predict_topk(problem.X_test, 1).distances, as_given.distances, atol=1e-7)
    known = model.candidates_.outputs
    assert n_samples(known) == len(distinct(known).first) == len(distinct(everything).first)


def test_blocks_do_not_change_the_answer(model, problem):
    whole = model.predict_topk(problem.X_test, k=6, candidates=problem.candidates)
    truth = take(problem.candidates, np.arange(15))
    positions = model.truth_positions(problem.X_test, truth, problem.candidates)
    with sklearn.config_context(working_memory=1e-4):  # about 100 bytes: one row per block
        streamed = model.predict_topk(problem.X_test, k=6, candidates=problem.candidates)
        streamed_positions = model.truth_positions(problem.X_test, truth, problem.candidates)
    np.testing.assert_array_equal(streamed.indices, whole.indices)
    np.testing.assert_allclose(streamed.distances, whole.distances, atol=1e-10)
    np.testing.assert_array_equal(streamed_positions.nearer, positions.nearer)


def test_one_set_per_example_is_many_shared_sets(model, problem):
    rng = np.random.default_rng(0)
    sets = [take(problem.candidates, rng.permutation(25)[: rng.integers(1, 9)]) for _ in problem.X_test]
    top = model.predict_topk(problem.X_test, k=4, candidates=PerExampleCandidates(sets))
    for i, one in enumerate(sets):
        alone = model.predict_topk(problem.X_test[i : i + 1], k=4, candidates=one)
        size = alone.indices.shape[1]
        np.testing.assert_array_equal(top.indices[i, :size], alone.indices[0])
        np.testing.assert_allclose(top.distances[i, :size], alone.distances[0], atol=1e-10)
        assert (top.indices[i, size:] == -1).all()
    nearest = concat([take(one, slice(j, j + 1)) for one, j in zip(sets, top.indices[:, 0], strict=True)])
    prediction = model.predict(problem.X_test, candidates=sets)
    assert type(prediction) is type(nearest)
    np.testing.assert_allclose(model.output_kernel_.paired_squared_distances(prediction, nearest), 0, atol=1e-12)
    with sklearn.config_context(working_memory=1e-4):
        np.testing.assert_array_equal(model.predict_topk(problem.X_test, 4, sets).indices, top.indices)


def test_a_set_smaller_than_k_is_padded():
    problem = make("tags")
    model = MODELS["OEL"](problem.kernel).fit(problem.X, problem.Y)
    top = model.predict_topk(problem.X_test[:2], k=3, candidates=[problem.candidates[:1], problem.candidates[:5]])
    np.testing.assert_array_equal(top.indices[0], [0, -1, -1])
    assert np.isinf(top.distances[0, 1:]).all() and np.isfinite(top.distances[1]).all()
    assert [len(outputs) for outputs in top.outputs] == [1, 3]
    assert top.margins[0] == np.inf and 0 <= top.margins[1] < np.inf
    shared = model.predict_topk(problem.X_test, k=10**10, candidates=problem.candidates[:4])
    np.testing.assert_array_equal(np.sort(shared.indices, axis=1), np.tile(np.arange(4), (15, 1)))


def test_a_tie_goes_to_the_lowest_index(model, problem):
    repeated = concat([problem.candidates, problem.candidates, problem.candidates])
    n = n_samples(problem.candidates)
    with sklearn.config_context(working_memory=0.001):
        top = model.predict_topk(problem.X_test, k=6, candidates=repeated)
    assert (top.indices[:, 0] < n).all()
    assert (np.diff(top.distances, axis=1) >= 0).all()
    tied = np.diff(top.distances, axis=1) == 0
    assert tied.any() and (np.diff(top.indices, axis=1)[tied] > 0).all()


def test_positions_count_nearer_and_tied_candidates(model, problem):
    truth = take(problem.candidates, np.arange(15))
    D = brute_force(model, problem.X_test, problem.candidates)
    own = D[np.arange(15), np.arange(15)][:, None]
    positions = model.truth_positions(problem.X_test, truth, problem.candidates)
    is_distinct = np.isin(np.arange(25), distinct(problem.candidates).first)
    np.testing.assert_array_equal(positions.nearer, ((own - 1e-9 > D) & is_distinct).sum(axis=1))
    np.testing.assert_array_equal(positions.tied, ((np.abs(own - D) <= 1e-9) & is_distinct).sum(axis=1))
    in_sets = model.truth_positions(problem.X_test, truth, PerExampleCandidates([problem.candidates] * 15))
    np.testing.assert_array_equal(in_sets.nearer, positions.nearer)
    np.testing.assert_array_equal(in_sets.tied, positions.tied)


def test_a_truth_that_is_not_a_candidate_has_no_position():
    problem = make("tags")
    model = MODELS["OEL"](problem.kernel).fit(problem.X, problem.Y)
    truth = np.ones((2, 6), dtype=int)
    candidates = problem.candidates[problem.candidates.sum(axis=1) < 6]
    for form in (candidates, [candidates, candidates]):
        positions = model.truth_positions(problem.X_test[:2], truth, form)
        assert np.isinf(positions.nearer).all() and (positions.tied == 0).all()


def test_linear_outputs_decode_to_the_nearest_vector_of_a_plain_ridge():
    from sklearn.kernel_ridge import KernelRidge

    problem = make("unnormalised")
    ridge = KernelRidge(alpha=40 * 1e-3, kernel="rbf", gamma=0.5).fit(problem.X, problem.Y)
    D = ((ridge.predict(problem.X_test)[:, None] - problem.candidates[None]) ** 2).sum(axis=2)
    top = (
        IOKR(KERNEL_X, Linear(), alpha=1e-3)
        .fit(problem.X, problem.Y)
        .predict_topk(problem.X_test, 1, problem.candidates)
    )
    np.testing.assert_array_equal(top.indices[:, 0], np.argmin(D, axis=1))
    np.testing.assert_allclose(top.distances[:, 0], D.min(axis=1), atol=1e-8)


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_one_long_candidate_does_not_blur_the_others(size):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    model = IOKR(KERNEL_X, Linear(), alpha=1e-3).fit(X, Y)
    candidates = np.vstack([rng.standard_normal((40, 2)), [[size, size]]])
    np.testing.assert_array_equal(
        model.predict_topk(X, 3, candidates).indices, model.predict_topk(X, 3, candidates[:-1]).indices
    )
    positions = model.truth_positions(X, candidates[:30], candidates)
    np.testing.assert_array_equal(positions.nearer, model.truth_positions(X, candidates[:30], candidates[:-1]).nearer)
    assert (positions.tied == 1).all()


def test_a_common_offset_of_the_outputs_is_survived():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 2)), rng.standard_normal((30, 2)) + 1e4
    prediction = (
        IOKR(KERNEL_X, Linear(), alpha=1e-12).fit(X, Y).predict(X)
    )  # no ridge to speak of: the training outputs
    np.testing.assert_array_equal(prediction, Y)


def test_repeated_candidates_do_not_change_a_position(problem):
    model = MODELS["OEL"](problem.kernel).fit(problem.X, problem.Y)
    once = concat([problem.candidates])
    twice = concat([problem.candidates, problem.candidates])
    truth = take(problem.candidates, np.arange(15))
    a, b = (model.truth_positions(problem.X_test, truth, given_) for given_ in (once, twice))
    np.testing.assert_array_equal(a.tied, b.tied)
    np.testing.assert_array_equal(a.nearer, b.nearer)
    c = model.truth_positions(problem.X_test, truth, PerExampleCandidates([twice] * 15))
    np.testing.assert_array_equal(a.nearer, c.nearer)


def test_lists_are_ambiguous_if_outputs_have_several_depths():
    trees = ["a", ("a", "b"), ("a", ("b", "c")), ("b", "c")]
    model = IOKR(KERNEL_X, lambda s, t: float(s == t), alpha=1e-3).fit(np.eye(4), trees)
    with pytest.raises(ValueError, match=r"candidates is ambiguous: use SharedCandidates\(...\) or PerExampleCand"):
        model.predict(np.eye(4), candidates=[("a", "b")] * 4)
    assert model.predict(np.eye(4), candidates=SharedCandidates([("a", "b")] * 4)) == [("a", "b")] * 4
    assert model.predict(np.eye(4), candidates=["z", ("a", "b")])[1] == ("a", "b")  # "z" is not a collection
    deep = [[tree, ("b", ("a", "c"))] for tree in trees]  # an item of depth 3 is not an output
    assert model.predict(np.eye(4), candidates=deep) == trees
    own = model.predict(np.eye(4), candidates=PerExampleCandidates([[tree, "z"] for tree in trees]))
    assert own == trees


@pytest.mark.parametrize("make_candidates", [SharedCandidates, lambda Y: PerExampleCandidates([Y, Y])])
def test_bad_queries_and_indices_are_rejected(make_candidates):
    Y, Z = np.arange(12.0).reshape(4, 3), np.zeros((2, 2))
    candidates = make_candidates(Y).for_embedding(Embedding(Linear(), np.eye(3), np.eye(3)[:, :2]))
    for k in (0, 1.5, True):
        with pytest.raises(ValueError, match="k must be an integer ≥ 1"):
            candidates.nearest(Z, k)
    for search in (
        lambda Z: candidates.nearest(Z, 1),
        lambda Z: candidates.positions(Z, np.zeros(2, int)),
        candidates.ranked,
    ):
        for wrong in (np.zeros((2, 3)), np.zeros(2)):
            with pytest.raises(ValueError, match=r"Z must have shape \(q, 2\)"):
                search(wrong)
    for truth, message in (
        ([0, 4], r"truth\[1\]=4 is not the index"),
        ([-2, 0], r"truth\[0\]=-2 is not the index"),
        ([0], "truth must be 2 indices"),
        ([0.0, 1.0], "truth must be 2 indices"),
    ):
        with pytest.raises(ValueError, match=message):
            candidates.positions(Z, truth)
    np.testing.assert_array_equal(candidates.positions(Z, [0, -1]).nearer, [0, np.inf])


def test_indices_are_checked_against_the_set_of_each_example():
    Y = np.eye(3)
    candidates = PerExampleCandidates([Y, Y[:1]]).for_embedding(Embedding(Linear(), Y, Y))
    with pytest.raises(ValueError, match=r"truth\[1\]=1 is not the index"):
        candidates.positions(np.zeros((2, 3)), [1, 1])


def test_queries_of_sorted_candidates_must_match_the_sets():
    Y = np.eye(3)
    candidates = PerExampleCandidates([Y, Y, Y]).for_embedding(Embedding(Linear(), Y, Y))
    with pytest.raises(ValueError, match="Z has 2 rows, but there are 3 sets"):
        candidates.ranked(np.zeros((2, 3)))


def test_margins_are_infinite_if_there_is_one_candidate():
    candidates = SharedCandidates(np.ones((1, 2)), Embedding(Linear(), np.eye(2), np.eye(2)))
    margins = candidates.nearest(np.zeros((3, 2)), k=5).margins
    np.testing.assert_array_equal(to_numpy(margins), np.full(3, np.inf))
    with pytest.raises(ValueError, match="ask for k ≥ 2"):
        _ = candidates.nearest(np.zeros((3, 2)), k=1).margins
    sets = PerExampleCandidates([np.ones((1, 2))] * 3).for_embedding(candidates.embedding)
    np.testing.assert_array_equal(to_numpy(sets.nearest(np.zeros((3, 2)), k=5).margins), np.full(3, np.inf))
