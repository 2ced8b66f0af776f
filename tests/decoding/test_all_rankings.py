"""Decoding over all rankings: every solver against brute force, and the estimators against kernel values alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

from psilearn import IOKR, IOKRCV, KDE, OEL, OELCV
from psilearn.decoding import kemeny
from psilearn.decoding.all_rankings import SOLVERS, best_hamming
from psilearn.decoding.kemeny import best_kemeny, order_by_integers, order_by_programming
from psilearn.kernels import Gaussian, Hamming, Kemeny, Lehmer, Product
from psilearn.metrics import kendall_tau, kernel_loss, top_k_accuracy
from psilearn.rankings import all_rankings, ranks_from_item_numbers, to_orders
from tests.kernels.kernel_cases import PROPERTY

KERNELS = [Kemeny(), Hamming(), Lehmer()]
NAN = float("nan")
GRID = {"alphas": [1e-2], "n_components": [2], "supervisions": [1.0]}

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning")


def objective(kernel, W, ranks):
    """2⟨w, ψ(σ)⟩ − |ψ(σ)|², which the nearest ranking maximizes."""
    psi = kernel.features(ranks)
    return 2 * np.sum(W * psi, axis=1) - np.sum(psi**2, axis=1)


def greatest(kernel, W):
    psi = kernel.features(all_rankings(kernel_items(kernel, W)))
    return np.max(2 * W @ psi.T - np.sum(psi**2, axis=1), axis=1)


def kernel_items(kernel, W):
    return next(K for K in range(2, 60) if kernel._width(K) == W.shape[1])


def gains(W):
    K = kernel_items(Kemeny(), W)
    C = np.zeros((len(W), K, K))
    i, j = np.triu_indices(K, 1)
    C[:, i, j], C[:, j, i] = W, -W
    return C


weights = st.tuples(st.integers(2, 7), st.integers(0, 10**6), st.sampled_from(["normal", "integers", "noisy order"]))


def draw(kernel, K, seed, kind, q=4):
    rng = np.random.default_rng(seed)
    D = kernel._width(K)
    if kind == "integers":  # many equally good rankings
        return rng.integers(-2, 3, (q, D)).astype(float)
    W = rng.standard_normal((q, D))
    if kind == "noisy order":
        W = 0.3 * W + 3 * kernel.features(np.array([rng.permutation(K) + 1 for _ in range(q)]))
    return W


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@PROPERTY
@given(case=weights)
def test_the_best_ranking_is_that_of_brute_force(kernel, case):
    W = draw(kernel, *case)
    ranks = SOLVERS[type(kernel)](W)
    assert (np.sort(ranks, axis=1) == np.arange(1, case[0] + 1)).all()
    np.testing.assert_allclose(objective(kernel, W, ranks), greatest(kernel, W), atol=1e-10)


@PROPERTY
@given(case=weights)
def test_dynamic_and_integer_programming_agree(case):
    C = gains(draw(Kemeny(), *case))
    by_integers = np.stack([order_by_integers(one) for one in C]) if case[0] > 2 else order_by_programming(C)
    for order in (order_by_programming(C), by_integers):
        ranks = ranks_from_item_numbers(order)
        W = C[:, *np.triu_indices(case[0], 1)]
        np.testing.assert_allclose(objective(Kemeny(), W, ranks), greatest(Kemeny(), W), atol=1e-10)


@pytest.mark.parametrize("programmed", [2, 16])
@PROPERTY
@given(case=weights)
def test_components_lose_nothing(programmed, case):
    W = draw(Kemeny(), *case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kemeny, "MAX_ITEMS_AT_ONCE", 1)
        patch.setattr(kemeny, "MAX_ITEMS_OF_SETS", programmed)
        ranks = best_kemeny(W)
    np.testing.assert_allclose(objective(Kemeny(), W, ranks), greatest(Kemeny(), W), atol=1e-10)


@pytest.mark.parametrize("K", [13, 18])
def test_many_items_by_components_are_as_good_as_all_at_once(K, monkeypatch):
    rng = np.random.default_rng(K)
    i, j = np.triu_indices(K, 1)
    u = rng.standard_normal((3, K))
    W = u[:, i] - u[:, j] + 0.5 * rng.standard_normal((3, len(i)))
    ranks = best_kemeny(W)
    monkeypatch.setattr(kemeny, "MAX_ITEMS_AT_ONCE", K if K < 16 else 0)
    other = best_kemeny(W) if K < 16 else ranks_from_item_numbers(np.stack([*map(order_by_integers, gains(W))]))
    np.testing.assert_allclose(objective(Kemeny(), W, ranks), objective(Kemeny(), W, other), atol=1e-9)


@pytest.mark.parametrize("K", [3, 13])
def test_items_that_nothing_tells_apart_stay_in_their_order(K):
    W = np.zeros((2, K * (K - 1) // 2))
    W[1, 0] = -1e-3  # item 1 before item 0
    W[1, 1:] = 1e-19 * np.random.default_rng(0).standard_normal(W.shape[1] - 1)  # noise
    ranks = best_kemeny(W)
    np.testing.assert_array_equal(ranks[0], np.arange(1, K + 1))
    np.testing.assert_array_equal(ranks[1], [2, 1, *range(3, K + 1)])


def test_an_integer_program_that_fails_raises(monkeypatch):
    class Failed:
        x, status, message = None, 1, "Time is up."

    monkeypatch.setattr(kemeny, "milp", lambda *args, **kwargs: Failed())
    with pytest.raises(RuntimeError, match=r"The best order of 3 items .* was not found: Time is up\. Give candidates"):
        order_by_integers(gains(np.array([[1.0, -1.0, 1.0]]))[0])


def test_blocks_of_queries_change_nothing():
    W = np.random.default_rng(0).standard_normal((3000, 10))
    whole = best_kemeny(W)
    parts = np.concatenate([best_kemeny(W[start : start + 7]) for start in range(0, 3000, 7)])
    np.testing.assert_array_equal(whole, parts)


def task(K=4, n=60, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 20, 3))
    scores = X @ rng.standard_normal((3, K)) + noise * rng.standard_normal((n + 20, K))
    ranks = np.argsort(np.argsort(scores, axis=1), axis=1) + 1
    return X[:n], ranks[:n], X[n:], ranks[n:]


ESTIMATORS = [
    IOKR(Gaussian(0.2), alpha=1e-2),
    KDE(Gaussian(0.2), alpha=1e-2, n_components=2),
    OEL(Gaussian(0.2), alpha=1e-2, n_components=2, supervision=1.0),
    OEL(Gaussian(0.2), alpha=1e-2, n_components=3, supervision=0.4),
    OEL(Gaussian(0.2), alpha=1e-2, n_components=2, output_landmarks=3),
    OEL(Gaussian(0.2), alpha=1e-2, n_components=2, input_landmarks=20, dtype="float32"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_predictions_are_the_nearest_of_all_rankings(kernel, estimator):
    X, Y, X_new, _ = task()
    model = clone(estimator).set_params(output_kernel=kernel).fit(X, Y)
    top = model.predict_topk(X_new, 1)
    listed = model.predict_topk(X_new, 1, candidates=all_rankings(4))
    tolerance = 1e-5 if estimator.dtype == "float32" else 1e-10
    np.testing.assert_allclose(top.distances, listed.distances, atol=tolerance)
    assert model.predict(X_new).dtype == Y.dtype
    np.testing.assert_array_equal(model.predict(X_new), top.nearest)
    # several nearest, and ranks of the truth, are those among all rankings
    several, among = model.predict_topk(X_new, 5), model.predict_topk(X_new, 5, candidates=all_rankings(4))
    np.testing.assert_allclose(several.distances, among.distances, atol=tolerance)
    np.testing.assert_array_equal(several.distances[:, 0] <= listed.distances[:, 0] + tolerance, True)


def test_the_distance_is_that_in_the_output_space():
    """By kernel values alone: |ĥ(x) − ψ(σ)|² with ĥ(x) = Σ αᵢψ(yᵢ)."""
    X, Y, X_new, _ = task()
    model = IOKR(Gaussian(0.2), Kemeny(), alpha=1e-2).fit(X, Y)
    top = model.predict_topk(X_new, 1)
    K = Gaussian(0.2)(X)
    A = np.linalg.solve(K + len(X) * 1e-2 * np.eye(len(X)), Gaussian(0.2)(X, X_new))
    G = Kemeny()(Y)
    expected = np.einsum("iq,ij,jq->q", A, G, A) - 2 * np.sum(A * Kemeny()(Y, top.nearest), axis=0) + 1
    np.testing.assert_allclose(top.distances[:, 0], expected, atol=1e-10)


def test_no_listed_candidate_is_nearer_with_many_items():
    X, Y, X_new, Y_new = task(K=9, n=80, noise=0.2)
    model = OEL(Gaussian(0.2), Kemeny(), alpha=1e-3, n_components=6, supervision=1.0).fit(X, Y)
    top = model.predict_topk(X_new, 1)
    known = model.predict_topk(X_new, 1, candidates=model.candidates_)
    assert (top.distances <= known.distances + 1e-12).all() and (top.distances < known.distances - 1e-9).any()
    assert kendall_tau(Y_new, top.nearest) > 0.5
    assert model.score(X_new, Y_new) == pytest.approx(-kernel_loss(Y_new, top.nearest, Kemeny()))
    many = r"All rankings of 9 items are too many to list: only the nearest one can be found among them\. "
    with pytest.raises(ValueError, match=many + r"Ask for k=1, or give candidates; .*model\.candidates_"):
        model.predict_topk(X_new, 2)
    with pytest.raises(ValueError, match=many + "Give candidates"):
        model.truth_positions(X_new, Y_new)
    with pytest.raises(ValueError, match=many + "Give candidates"):
        model.rank_candidates(X_new, k=1)


def test_ranks_of_the_truth_among_all_rankings():
    X, Y, X_new, Y_new = task()
    model = IOKR(Gaussian(0.2), Kemeny(), alpha=1e-2).fit(X, Y)
    positions = model.truth_positions(X_new, Y_new)
    listed = model.truth_positions(X_new, Y_new, candidates=all_rankings(4))
    np.testing.assert_array_equal(positions.nearer, listed.nearer)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_orders_in_orders_out(kernel):
    X, Y, X_new, _ = task()
    items = ["ebi", "maguro", "toro", "uni"]
    by_name = OEL(Gaussian(0.2), kernel, alpha=1e-2, n_components=2).fit(X, list(to_orders(Y, items)))
    by_rank = OEL(Gaussian(0.2), kernel, alpha=1e-2, n_components=2).fit(X, Y)
    np.testing.assert_array_equal(by_name.predict(X_new), to_orders(by_rank.predict(X_new), items))
    three = by_name.predict_topk(X_new, 3)
    np.testing.assert_array_equal(three.nearest, by_name.predict(X_new))
    chosen = by_name.predict(X_new, candidates=["uni>toro>ebi>maguro", "ebi>maguro>toro>uni"])
    assert set(chosen) <= {"uni>toro>ebi>maguro", "ebi>maguro>toro>uni"}
    for other in (["a>b>c>d"], Y):
        for call in (by_name.transform_outputs, lambda Y: by_name.predict(X_new, candidates=Y)):
            with pytest.raises(ValueError, match="must be rankings of the same form and of the same items"):
                call(other)
    for composed in (kernel, 2 * kernel, kernel.normalized(), kernel + kernel, Gaussian(1.0, base=kernel)):
        with pytest.raises(ValueError, match="unlabeled and y must be rankings of the same form"):
            by_rank.set_params(output_kernel=composed).fit(X, Y, unlabeled=["a>b>c>d"])


@pytest.mark.parametrize("kernel", [Kemeny(partial=True), Hamming(partial=True), Lehmer(partial=True)], ids=repr)
def test_partial_rankings_train_and_full_ones_are_predicted(kernel):
    X, Y, X_new, Y_new = task(n=200, noise=0.1)
    rng = np.random.default_rng(0)
    partial = np.where(rng.random(Y.shape) < 0.3, NAN, Y)
    silent = np.sum(~np.isnan(partial), axis=1) < 2
    partial[silent] = Y[silent]
    model = OEL(Gaussian(0.2), kernel, alpha=1e-3).fit(X, partial)
    predicted = model.predict(X_new)
    assert (np.sort(predicted, axis=1) == np.arange(1, 5)).all()
    full = OEL(Gaussian(0.2), kernel, alpha=1e-3).fit(X, Y).predict(X_new)
    assert kendall_tau(Y_new, predicted) > 0.5 * kendall_tau(Y_new, full) > 0.3
    restricted = model.predict(X_new, candidates=np.array([[1, 2, NAN, NAN], [2, 1, NAN, NAN]]))
    assert np.isnan(restricted[:, 2:]).all()


def test_partial_orders_train_too():
    X, Y, X_new, _ = task()
    items = ["a", "b", "c", "d"]
    kernel = Kemeny(partial=True, items=items)
    orders = to_orders(np.where(Y == 4, NAN, Y), items)  # the last item of each is not named
    as_ranks = np.where(Y == 4, NAN, Y)
    predicted = OEL(Gaussian(0.2), kernel, alpha=1e-2).fit(X, orders).predict(X_new)
    expected = OEL(Gaussian(0.2), Kemeny(partial=True), alpha=1e-2).fit(X, as_ranks).predict(X_new)
    np.testing.assert_array_equal(predicted, to_orders(expected, items))


def test_a_partial_truth_has_no_position_among_full_rankings():
    X, Y, X_new, Y_new = task()
    model = IOKR(Gaussian(0.2), Kemeny(partial=True), alpha=1e-2).fit(X, Y)
    truth = Y_new.astype(float)
    truth[3, 1] = NAN
    with pytest.raises(ValueError, match="y in row 3 is a partial ranking, which is not among the full rankings"):
        model.truth_positions(X_new, truth)
    model.truth_positions(X_new, truth, candidates=truth)


def test_a_subclass_with_the_same_embedding_is_searched_the_same_way():
    class Named(Kemeny):
        """A kernel of another name."""

    class Other(Kemeny):
        """A kernel of another embedding."""

        def _code(self, ranks):
            return super()._code(ranks)[:, :1]

        def _width(self, n_items):
            return 1

    class Mallows(Kemeny):
        """A kernel on the embedding of another."""

        def _block(self, A, B, compute):
            return np.exp(super()._block(A, B, compute))

        def _paired(self, A, B):  # of the diagonal too
            return np.exp(super()._paired(A, B))

    X, Y, X_new, _ = task(K=5, n=20)
    expected = IOKR(Gaussian(0.2), Kemeny(), alpha=1e-2).fit(X, Y).predict(X_new)
    np.testing.assert_array_equal(IOKR(Gaussian(0.2), Named(), alpha=1e-2).fit(X, Y).predict(X_new), expected)
    known = {tuple(row) for row in Y}
    for other in (Other(), Mallows()):
        assert all(tuple(row) in known for row in IOKR(Gaussian(0.2), other, alpha=1e-2).fit(X, Y).predict(X_new))


def test_blocks_of_memory_change_nothing():
    X, Y, _, _ = task()
    model = OEL(Gaussian(0.2), Hamming(), alpha=1e-2, n_components=3).fit(X, Y)
    queries = np.random.default_rng(0).standard_normal((500, 3))
    whole = model.predict_topk(queries, 1)
    with config_context(working_memory=0.01):
        parts = model.predict_topk(queries, 1)
    np.testing.assert_array_equal(parts.nearest, whole.nearest)
    np.testing.assert_allclose(parts.distances, whole.distances, atol=1e-12)


def test_cyclic_preferences_of_too_many_items_are_rejected(monkeypatch):
    monkeypatch.setattr(kemeny, "MAX_ITEMS_OF_INTEGERS", 2)
    with pytest.raises(ValueError, match="The preferences of 3 items are cyclic"):
        order_by_integers(gains(np.array([[1.0, -1.0, 1.0]]))[0])


def test_kernels_made_of_rankings_know_the_known_outputs_only():
    X, Y, X_new, _ = task(K=5, n=20)
    model = IOKR(Gaussian(0.2), Gaussian(1.0, base=Kemeny()), alpha=1e-2).fit(X, Y)
    known = {tuple(row) for row in Y}
    assert all(tuple(row) in known for row in model.predict(X_new))
    everywhere = model.predict_topk(X_new, 1, candidates=all_rankings(5))
    assert (everywhere.distances < model.predict_topk(X_new, 1).distances).any()
    IOKR(Gaussian(0.2), Product(Kemeny(), Hamming()), alpha=1e-2).fit(X, Y).predict(X_new)


def test_estimators_reject_rows_that_are_not_rankings_and_stay_unchanged():
    X, Y, _, _ = task()
    model = OEL(Gaussian(0.2), Kemeny(), alpha=1e-2).fit(X, Y)
    before = model.regression_
    for bad, message in ((Y - 1, "Ranks begin with 1"), (np.minimum(Y, 2), "y in row 0 is not a ranking")):
        with pytest.raises(ValueError, match=message):
            model.fit(X, bad)
    assert model.regression_ is before


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_searches_score_what_the_model_of_each_split_predicts(kernel):
    X, Y, _, _ = task()
    train, held = np.arange(40), np.arange(40, 60)
    settings = {"alphas": [1e-3, 1e-1], "cv": [(train, held)], "scoring": ["kendall_tau", "loss", "spearman_rho"]}
    search = OELCV(Gaussian(0.2), kernel, n_components=[1, 3], supervisions=[0.5, 1.0], refit=False, **settings)
    search.fit(X, Y)
    kept = IOKRCV(Gaussian(0.2), kernel, refit=False, **settings).fit(X, Y)
    for fitted, estimator in ((search, OEL), (kept, IOKR)):
        for row, params in enumerate(fitted.cv_results_["params"]):
            predicted = estimator(**params).fit(X[train], Y[train]).predict(X[held])
            results = {name: fitted.cv_results_[f"mean_test_{name}"][row] for name in ("kendall_tau", "loss")}
            assert results["kendall_tau"] == pytest.approx(kendall_tau(Y[held], predicted))
            assert results["loss"] == pytest.approx(-kernel_loss(Y[held], predicted, kernel))


def test_searches_count_candidates_where_they_can_be_listed():
    X, Y, _, _ = task()
    search = OELCV(Gaussian(0.2), Kemeny(), **GRID, scoring="top_5", random_state=0)
    listed = clone(search).fit(X, Y, candidates=all_rankings(4)).best_score_
    assert search.fit(X, Y).best_score_ == listed > 0
    X, Y, _, _ = task(K=9)
    with pytest.raises(ValueError, match=r"top_5.*up to 8 items.*give candidates"):
        search.fit(X, Y)
    X, Y, _, _ = task()
    train, held = np.arange(40), np.arange(40, 60)
    kernels = [Kemeny(), Gaussian(1.0, base=Kemeny())]  # all rankings, and those that the model knows
    mixed = OELCV(Gaussian(0.2), kernels, **GRID, scoring="top_5", cv=[(train, held)], refit=False).fit(X, Y)
    for row, params in enumerate(mixed.cv_results_["params"]):
        positions = OEL(**params).fit(X[train], Y[train]).truth_positions(X[held], Y[held])
        assert mixed.cv_results_["mean_test_score"][row] == pytest.approx(float(top_k_accuracy(positions, 5)))


def test_hamming_assigns_each_item_one_rank():
    W = np.array([[0.9, 1.0, 0.0, 0.8, 0.9, 0.0, 0.0, 0.0, 0.1]])  # items 0 and 1 both want rank 2
    np.testing.assert_array_equal(best_hamming(W), [[2, 1, 3]])
