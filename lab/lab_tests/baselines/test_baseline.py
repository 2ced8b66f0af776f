"""The common interface of all baselines."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors

from lab_tests.baselines.toys import EVERY, LABELS_ONLY, NUMBERS, forms, labels, model, numbers
from psilearn import PerExampleCandidates
from psilearn.metrics import f1_score, top_k_accuracy
from psilearn.utils import hold_out
from psilearn_lab.baselines import Baseline, apply_threshold


@pytest.fixture(scope="module")
def fitted() -> dict[str, Baseline]:
    return {}


def learned(fitted: dict[str, Baseline], name: str) -> Baseline:
    """Return a baseline that was fitted on labels, once for all tests."""
    if name not in fitted:
        fitted[name] = model(name).fit(*labels())
    return fitted[name]


@pytest.mark.parametrize("name", EVERY)
def test_learns_labels(name: str, fitted: dict[str, Baseline]) -> None:
    X, Y = labels(seed=1)
    baseline = learned(fitted, name)
    constant = np.tile(np.round(Y.mean(axis=0)).astype(int), (len(Y), 1))
    assert baseline.score(X, Y) > max(0.85, float(f1_score(Y, constant)) + 0.1)
    assert baseline.score(X, Y) == pytest.approx(float(f1_score(Y, baseline.predict(X))))
    assert baseline.predict(X).dtype == Y.dtype
    assert np.array_equal(baseline.predict(X), baseline.predict_soft(X) >= baseline.threshold_)
    assert 0 <= baseline.validation_error_ < 0.2


@pytest.mark.parametrize("name", NUMBERS)
def test_learns_numbers(name: str) -> None:
    X, Y = numbers()
    X_test, Y_test = numbers(seed=1)
    baseline = model(name).fit(X, Y)
    assert not baseline.binary_
    assert not hasattr(baseline, "threshold_")
    assert -baseline.score(X_test, Y_test) < 0.35 * np.mean(np.sum(Y_test**2, axis=1))
    errors = np.sum((baseline.predict(X_test) - Y_test) ** 2, axis=1)
    assert baseline.score(X_test, Y_test) == pytest.approx(-np.mean(errors))
    assert np.array_equal(baseline.predict(X_test), baseline.predict_soft(X_test))


@pytest.mark.parametrize("name", EVERY)
def test_csr_and_dense_give_the_same_model(name: str) -> None:
    X, Y = labels(60)
    soft = {}
    for form, (A, B) in forms(X, Y).items():
        baseline = model(name).fit(A, B)
        soft[form] = baseline.predict_soft(A)
        assert sparse.issparse(baseline.predict(A)) == (form == "csr")
        assert baseline.predict(A).shape == Y.shape
    assert np.allclose(soft["dense"], soft["csr"], atol=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_model(name: str) -> None:
    X, Y = labels(60)
    first, second = (model(name).fit(X, Y) for _ in range(2))
    assert np.array_equal(first.predict_soft(X), second.predict_soft(X))
    assert first.threshold_ == second.threshold_
    assert clone(first).get_params() == first.get_params()


@pytest.mark.parametrize("name", EVERY)
def test_candidates_by_brute_force(name: str, fitted: dict[str, Baseline]) -> None:
    """Compute the costs ⟨s(x), y⟩ + r(y) for one pair at a time."""
    X, Y = labels(30, seed=2)
    baseline = learned(fitted, name)
    all_sets = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)])
    costs = np.array(
        [[baseline._linear_costs(x[None])[0] @ y + baseline._candidate_costs(y[None])[0] for y in all_sets] for x in X]
    )
    top = baseline.predict_topk(X, 3, all_sets)
    assert np.allclose(top.distances, np.sort(costs, axis=1)[:, :3], atol=1e-4)
    predicted = baseline.predict(X, all_sets) @ [1, 2, 4]
    np.testing.assert_allclose(costs[np.arange(len(X)), predicted], costs.min(axis=1), atol=1e-6)
    assert np.array_equal(baseline.predict(X, sparse.csr_matrix(all_sets)).toarray(), baseline.predict(X, all_sets))

    true_costs = costs[np.arange(len(X)), Y @ [1, 2, 4]]
    positions = baseline.truth_positions(X, Y, all_sets)
    assert np.array_equal(positions.nearer, np.sum(costs < true_costs[:, None] - 1e-5, axis=1))
    assert np.all(positions.tied >= 1)
    assert float(top_k_accuracy(positions, 1)) > 0.6

    sets = PerExampleCandidates([all_sets[: 4 + i % 5] for i in range(len(X))])
    for i, row in enumerate(baseline.predict_topk(X, 1, sets).indices[:, 0]):
        assert costs[i, row] <= costs[i, : 4 + i % 5].min() + 1e-6  # sets may tie
    within = baseline.truth_positions(X, Y, sets)
    assert np.array_equal(np.isinf(within.nearer), [4 + i % 5 for i in range(len(X))] <= Y @ [1, 2, 4])


@pytest.mark.parametrize("name", EVERY)
def test_known_outputs_are_the_default_candidates(name: str, fitted: dict[str, Baseline]) -> None:
    X, Y = labels(20, seed=3)
    baseline = learned(fitted, name)
    known = {tuple(row) for row in labels()[1]}
    assert {tuple(row) for row in baseline.candidates_} == known
    assert np.array_equal(baseline.predict_topk(X, 1).nearest, baseline.predict(X, baseline.candidates_))
    assert baseline.predict_topk(X, 100).indices.shape == (20, len(known))
    assert np.all(np.isfinite(baseline.truth_positions(X, Y).nearer))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_choose_the_nearest_candidate(name: str) -> None:
    X, Y = numbers(80)
    baseline = model(name).fit(X, Y)
    if name != "SPEN":  # whose energy is not a distance
        soft = baseline.predict_soft(X)
        nearest = np.argmin(((soft[:, None] - Y) ** 2).sum(axis=2), axis=1)
        assert np.array_equal(baseline.predict(X, Y), Y[nearest])
    assert np.median(baseline.truth_positions(X, Y, Y).nearer) < 8


def test_one_number_per_example() -> None:
    X, Y = numbers(80)
    baseline = model("KRR").fit(X, Y[:, 0])
    assert baseline.predict(X).shape == (80,)
    assert baseline.predict(X, Y[:, 0]).shape == (80,)
    assert baseline.score(X, Y[:, 0]) > -0.2


@pytest.mark.parametrize("name", EVERY)
def test_errors_name_the_bad_input(name: str) -> None:
    X, Y = labels(40)
    baseline = model(name)
    with pytest.raises(NotFittedError):
        baseline.predict(X)
    for A, B, message in (
        (X[:30], Y, "X has 30 examples, y has 40"),
        (np.where(X > 2, np.nan, X), Y, "X contains NaN"),
        (X, np.where(Y > 0, np.inf, 0), "y contains infinity"),
        (X[:0], Y[:0], "X is empty"),
        (X[:, 0], Y, "[12]D array"),
        (X, None, "y to be passed"),
    ):
        with pytest.raises(ValueError, match=message):
            baseline.fit(A, B)
    with pytest.raises(ValueError, match="validation_fraction"):
        model(name, validation_fraction=1.0).fit(X, Y)
    assert not hasattr(baseline, "candidates_")


@pytest.mark.parametrize("name", EVERY)
def test_errors_of_a_fitted_model_name_the_bad_input(name: str, fitted: dict[str, Baseline]) -> None:
    X, Y = labels(20, seed=4)
    baseline = learned(fitted, name)
    with pytest.raises(ValueError, match="2 features"):
        baseline.predict(X[:, :2])
    with pytest.raises(ValueError, match="candidates must have the same width"):
        baseline.predict(X, Y[:, :2])
    with pytest.raises(ValueError, match="candidates is empty"):
        baseline.predict(X, Y[:0])
    with pytest.raises(ValueError, match="candidates holds 3 sets for 20 examples"):
        baseline.predict(X, [Y, Y, Y])
    with pytest.raises(ValueError, match="k must be an integer"):
        baseline.predict_topk(X, 0)
    with pytest.raises(ValueError, match="X has 20 examples, y has 19"):
        baseline.truth_positions(X, Y[:19])


@pytest.mark.parametrize("name", EVERY)
def test_a_fit_that_fails_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = labels(60)
    baseline = model(name).fit(X, Y)
    before, attributes = baseline.predict_soft(X), dict(vars(baseline))
    learn, calls = type(baseline)._learn, []

    def fail_on_all_pairs(self: Baseline, *arguments: object) -> object:
        calls.append(1)
        if arguments[-1] is None:  # no held-out pairs
            raise RuntimeError("failed")
        return learn(self, *arguments)

    monkeypatch.setattr(type(baseline), "_learn", fail_on_all_pairs)
    with pytest.raises(RuntimeError, match="failed"):
        baseline.fit(-X[:40], 1 - Y[:40])
    assert len(calls) >= 2
    assert vars(baseline) == attributes
    assert np.array_equal(baseline.predict_soft(X), before)


@pytest.mark.parametrize("name", LABELS_ONLY)
def test_baselines_of_labels_reject_numbers(name: str) -> None:
    X, Y = numbers(40)
    with pytest.raises(ValueError, match="0 and 1 only"):
        model(name).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("LR", {"C": 0.0}, "C must be a finite number > 0"),
        ("LR", {"C": []}, "C is an empty list"),
        ("PRLR", {"rank_penalty": -1.0}, "rank_penalty must be"),
        ("PRLR", {"missing": 1.0}, "missing must be below 1"),
        ("PRLR", {"spurious": 2.0}, "spurious must be a number in"),
        ("PRLR", {"n_rounds": 0}, "n_rounds must be"),
        ("KNN", {"n_neighbors": 0}, "n_neighbors must be"),
        ("KNN", {"weights": "near"}, "weights must be"),
        ("KRR", {"alpha": (1.0, -1.0)}, "alpha must be"),
        ("RRR", {"alpha": 0.0}, "alpha must be"),
        ("RRR", {"n_components": (0,)}, "n_components must be"),
        ("PLS", {"n_components": 0}, "n_components must be"),
    ],
)
def test_errors_name_the_bad_parameter(name: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(name, **changes).fit(*labels(20))


def test_grid_search_chooses_by_f1() -> None:
    X, Y = labels(80)
    search = GridSearchCV(model("KNN"), {"n_neighbors": [1, 60]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"n_neighbors": 1}
    assert search.best_estimator_.score(X, Y) == search.score(X, Y)


def test_the_best_value_of_a_list_on_held_out_examples_is_chosen() -> None:
    X, Y = labels(120)
    errors = {k: model("KNN", n_neighbors=k).fit(X, Y).validation_error_ for k in (1, 15, 90)}
    chosen = model("KNN", n_neighbors=[90, 15, 1]).fit(X, Y)
    assert chosen.validation_error_ == min(errors.values())
    assert errors[chosen.n_neighbors_] == chosen.validation_error_


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [0, 1])
def test_constant_labels(name: str, value: int) -> None:
    X, _ = labels(40)
    for seed in (0, 1):
        baseline = model(name, random_state=seed).fit(X, np.full((40, 3), value))
        assert np.all(baseline.predict(X) == value)


@pytest.mark.parametrize("name", EVERY)
def test_equal_candidates_tie(name: str, fitted: dict[str, Baseline]) -> None:
    X, Y = labels(12, seed=5)
    baseline = learned(fitted, name)
    repeated = np.concatenate([np.tile(Y[:1], (37, 1)), Y, Y[:1]])
    for _, _, D, slack in baseline.costs(X, repeated):
        assert np.all(np.abs(D[:, :37] - D[:, -1:]) <= slack[:, :37])
    first = baseline.predict_topk(X, 1, np.tile(Y[:1], (50, 1))).indices
    assert np.all(first == 0)


@pytest.mark.parametrize("name", ["SPEN", "DVN"])
def test_the_history_is_that_of_the_chosen_value(name: str) -> None:
    pytest.importorskip("torch")
    X, Y = labels(100)
    both = model(name, energy_hidden=[2, 40]).fit(X, Y)
    alone = model(name, energy_hidden=both.energy_hidden_).fit(X, Y)
    assert both.history_ == alone.history_
    other = model(name, energy_hidden=42 - both.energy_hidden_).fit(X, Y)
    assert both.history_ != other.history_


def test_a_second_fit_forgets_the_first() -> None:
    baseline = model("KRR").fit(*labels(60))
    baseline.set_params(alpha=1e-3).fit(*numbers(60))
    assert baseline.alpha_ == 1e-3
    assert not hasattr(baseline, "threshold_") and not hasattr(baseline, "validation_error_")


def test_predictions_have_the_sparse_class_of_the_outputs() -> None:
    X, Y = labels(60)
    assert isinstance(model("LR").fit(X, sparse.csr_array(Y)).predict(X), sparse.csr_array)


def test_the_score_requires_one_truth_per_example() -> None:
    X, Y = numbers(30)
    with pytest.raises(ValueError, match="X has 30 examples, y has 1"):
        model("KNN").fit(X, Y).score(X, Y[:1])


def test_a_label_without_examples_is_not_predicted() -> None:
    X, Y = labels(60)
    Y = np.column_stack([Y, np.zeros(60, dtype=int), np.ones(60, dtype=int)])
    predicted = model("LR").fit(X, Y).predict(X)
    assert not predicted[:, 3].any()
    assert predicted[:, 4].all()


def test_one_example_is_too_few_for_validation() -> None:
    X, Y = labels(1)
    with pytest.raises(ValueError, match="at least 2 examples"):
        model("LR").fit(X, Y)


def without_empty_rows(n: int = 160, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the toy task, restricted to rows with at least one label."""
    X, Y = labels(n, seed)
    return X[Y.any(axis=1)], Y[Y.any(axis=1)]


@pytest.mark.parametrize("name", EVERY)
def test_no_prediction_is_empty_if_no_training_row_is(name: str) -> None:
    X, Y = without_empty_rows(80)
    X_new = np.concatenate([labels(60, seed=1)[0], -3 * np.ones((1, 3))])  # half of them would have no label
    baseline = model(name).fit(X, Y)
    assert not baseline.allows_empty_
    assert baseline.predict(X_new).any(axis=1).all()
    baseline.threshold_ = np.inf  # no score reaches it
    highest = np.argmax(baseline.predict_soft(X_new), axis=1)
    assert np.array_equal(baseline.predict(X_new), np.eye(3, dtype=int)[highest])
    in_csr = model(name).fit(X, sparse.csr_matrix(Y)).predict(X_new)
    assert in_csr.sum(axis=1).min() >= 1


@pytest.mark.parametrize("name", EVERY)
def test_predictions_may_be_empty_if_a_training_row_is(name: str, fitted: dict[str, Baseline]) -> None:
    baseline = learned(fitted, name)
    assert baseline.allows_empty_
    assert not baseline.predict(labels(60, seed=1)[0]).any(axis=1).all()


@pytest.mark.parametrize("task", [labels, without_empty_rows])
def test_validation_applies_the_rule_of_prediction(task: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> None:
    """Search the threshold of KNN by brute force on the examples that it holds out."""
    X, Y = task(100)
    baseline = model("KNN", n_neighbors=4).fit(X, Y)
    training, held_out = hold_out(len(X), baseline.validation_fraction, baseline.random_state)
    neighbours = NearestNeighbors(n_neighbors=4).fit(X[training]).kneighbors(X[held_out], return_distance=False)
    scores = Y[training][neighbours].mean(axis=1)
    allow_empty = not Y.any(axis=1).all()

    def f1(threshold: float) -> float:
        return float(f1_score(Y[held_out], apply_threshold(scores, threshold, allow_empty)))

    best = max(map(f1, [*np.unique(scores), np.inf]))
    assert f1(baseline.threshold_) == pytest.approx(best)
    assert baseline.validation_error_ == pytest.approx(1 - best)
