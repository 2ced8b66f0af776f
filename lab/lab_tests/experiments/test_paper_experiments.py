"""The experiments of the paper on small data: they measure what they report, and test data chooses nothing."""

import itertools
import json
import re
import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.model_selection import KFold
from sklearn.utils import Bunch

from psilearn import IOKR, IOKRCV, OEL, OELCV
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear
from psilearn.metrics import Mean, f1_score, kendall_tau, kernel_loss
from psilearn_lab import datasets, experiments
from psilearn_lab.baselines import KNN, LR, SPEN
from psilearn_lab.experiments import (
    label_ranking,
    multilabel,
    multilabel_full,
    protocol,
    usps,
)
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.results import Metric


def tags(rows=400, seed=0):
    X, Y = make_multilabel_classification(rows, n_features=20, n_classes=8, random_state=seed)
    Y[Y.sum(axis=1) == 0, 0] = 1
    return Bunch(X=X, Y=sparse.csr_matrix(Y.astype(np.int8)), train=np.arange(300), test=np.arange(300, rows))


def halves():
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    pixels = digits.data[order] / 16
    return Bunch(
        X=pixels[:, :32], Y=pixels[:, 32:], digits=digits.target[order], train=np.arange(900), test=np.arange(900, 1797)
    )


def rankings(rows=80, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 3))
    scores = X @ rng.standard_normal((3, K)) + rng.standard_normal((rows, K))
    return Bunch(X=X, Y=np.argsort(np.argsort(scores, axis=1), axis=1) + 1)


def chains():
    """Return SMILES of chains of five and six atoms."""
    return ["".join(atoms) for size in (5, 6) for atoms in itertools.product("CNO", repeat=size)]


@pytest.fixture
def small_data(monkeypatch):
    """Let every loader return little data, which a test may change."""
    bunches = {name: tags() for name in multilabel.TITLES}
    bunches |= {name: rankings(K=5 if name == "sushi" else 4) for name in label_ranking.PAPER}
    bunches |= {"usps": halves(), "qm9": Bunch(smiles=chains())}
    monkeypatch.setattr(datasets, "load", bunches.__getitem__)
    monkeypatch.setattr(usps, "WIDTH", 8)
    return bunches


def quick(name, part):
    experiment = experiments.find(name)
    chosen = next(p for p in experiment.parts if p.name == part)
    context = Context({**chosen.config, **chosen.quick}, seed=0, n_jobs=None, log=lambda text: None)
    return chosen.run(context), context


@cache
def quick_once(name, part):
    """Run a part on the unchanged data of ``small_data`` the first time; return the same outcome and context later."""
    return quick(name, part)


def all_parts():
    return [(name, part.name) for name in experiments.NAMES for part in experiments.find(name).parts]


@pytest.mark.parametrize(("name", "part"), [part for part in all_parts() if part[0] != "metabolites"])
def test_every_part_runs(small_data, name, part):
    outcome, _ = quick_once(name, part)
    measured = [row for row in outcome.rows if not row.quoted]
    assert measured and all(np.isfinite(row.value) for row in measured)
    for row in measured:
        if row.metric.name in ("F1", "RBF loss"):
            assert row.error > 0 and row.parameters and all(seconds > 0 for seconds in row.seconds.values())
            assert ("supervision" in row.parameters) == row.method.startswith("OEL")
            if not is_competitor(row):
                assert row.parameters["alpha"] > 0


def is_competitor(row):
    return "neural" in row.method or not row.method.startswith(("IOKR", "KDE", "OEL"))


@pytest.mark.parametrize(("name", "part"), all_parts())
def test_configs_are_json_data_and_quick_entries_replace_them(name, part):
    chosen = next(p for p in experiments.find(name).parts if p.name == part)
    assert json.loads(json.dumps(chosen.config)) == chosen.config
    assert json.loads(json.dumps(chosen.quick)) == chosen.quick
    if name != "timing":  # where only one dataset has outputs without inputs
        assert set(chosen.quick) <= set(chosen.config)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("usps", "usps"),
        ("multilabel-small", "bibtex"),
        ("multilabel-full", "eurlex4k"),
        ("multilabel-sets", "corel5k"),
        ("multilabel-unlabeled", "bibtex"),
    ],
)
def test_the_test_data_chooses_nothing(small_data, name, part):
    before, _ = quick_once(name, part)
    bunch, rng = small_data[part], np.random.default_rng(1)
    shuffled = rng.permutation(bunch.test)
    Y = bunch.Y.toarray() if sparse.issparse(bunch.Y) else bunch.Y.copy()
    Y[bunch.test] = Y[shuffled]
    X = bunch.X.copy()
    X[bunch.test] += rng.random((len(bunch.test), X.shape[1]))
    small_data[part] = Bunch(**{**bunch, "X": X, "Y": sparse.csr_matrix(Y) if sparse.issparse(bunch.Y) else Y})
    after, _ = quick(name, part)
    for old, new in zip(before.rows, after.rows, strict=True):
        assert old.parameters == new.parameters
        assert old.quoted or old.value != new.value


def kernel_of(text):
    return eval(text, {"Gaussian": Gaussian, "Dice": Dice})


def estimator_of(row):
    p = row.parameters
    kernels = kernel_of(p["input_kernel"]), kernel_of(p["output_kernel"])
    if "supervision" in p:
        more = {"output_landmarks": p["output_landmarks"]} if "output_landmarks" in p else {}
        components = {"n_components": p["n_components"], "supervision": p["supervision"]}
        return OEL(*kernels, alpha=p["alpha"], **components, **more)
    return IOKR(*kernels, alpha=p["alpha"])


def test_usps_rows_follow_from_their_parameters(small_data):
    outcome, context = quick_once("usps", "usps")
    bunch, config = small_data["usps"], context.config
    pairs, alone = bunch.train[: config["pairs"]], bunch.train[-config["alone"] :]
    test = bunch.test[: config["tests"]]
    rows = {row.method: row for row in outcome.rows}
    for method in ("IOKR", "OEL₀", "OEL", "IOKR, by loss", "OEL₀, by loss", "OEL, by loss"):
        model = estimator_of(rows[method]).fit(bunch.X[pairs], bunch.Y[pairs], unlabeled=bunch.Y[alone])
        loss = kernel_loss(bunch.Y[test], model.predict(bunch.X[test]), Gaussian(0.05))
        assert rows[method].value == pytest.approx(loss, abs=1e-12)
        assert rows[method].error == pytest.approx(loss.standard_error, abs=1e-12)
    assert rows["OEL₀"].parameters["supervision"] == 1.0
    assert rows["SPEN"].paper == 0.801
    candidates = np.concatenate([bunch.Y[pairs], bunch.Y[alone]])
    neighbours = KNN(rows["k-NN"].parameters["n_neighbors"]).fit(bunch.X[pairs], bunch.Y[pairs])
    for method, predicted in (
        ("k-NN", neighbours.predict(bunch.X[test], candidates)),
        ("k-NN, free", neighbours.predict(bunch.X[test])),
    ):
        assert rows[method].value == pytest.approx(kernel_loss(bunch.Y[test], predicted, Gaussian(0.05)), abs=1e-12)


def test_usps_grid_chooses_as_the_same_grid_with_competitors(small_data):
    outcome, _ = quick_once("usps", "usps-grid")
    expected, _ = quick_once("usps", "usps")
    assert len(outcome.rows) == 8
    for row, same in zip(outcome.rows, expected.rows, strict=False):
        assert (row.method, row.value, row.parameters) == (same.method, same.value, same.parameters)
    assert any(note.startswith("“IOKR, by loss” minus IOKR") for note in outcome.notes)


def test_usps_grid_has_25920_settings():
    config = usps.GRID_CONFIG
    axes = [config[name] for name in ("gammas", "alphas", "sizes", "supervisions")]
    assert np.prod([len(axis) for axis in axes]) * config["splits"] == 25_920


def test_measured_competitors_are_compared_with_their_published_values(small_data):
    rows = {row.method: row for row in quick_once("multilabel-full", "bibtex")[0].rows}
    assert not rows["LR"].quoted and rows["LR"].paper == 37.2
    assert rows["DVN"].quoted and rows["DVN"].paper == 44.7  # not part of a quick run
    data = multilabel.load("bibtex", 0).split(150, 0, 50)
    model = LR(rows["LR"].parameters["C"]).fit(data.X, data.Y)
    assert rows["LR"].value == pytest.approx(100 * f1_score(data.Y_test, model.predict(data.X_test)), abs=1e-9)


@pytest.mark.parametrize(("name", "part"), [("multilabel-small", "bibtex"), ("multilabel-full", "mediamill")])
def test_multilabel_rows_follow_from_their_parameters(small_data, name, part):
    outcome, context = quick_once(name, part)
    data = multilabel.load(part, 0).split(
        context.config["pairs"], context.config.get("alone", 0), context.config["tests"]
    )
    for row in outcome.rows:
        if not row.quoted and not is_competitor(row):
            model = estimator_of(row).fit(data.X, data.Y, unlabeled=data.unlabeled)
            assert row.value == pytest.approx(100 * f1_score(data.Y_test, model.predict(data.X_test)), abs=1e-9)


def test_outputs_without_inputs_change_the_embedding_and_not_the_candidates(small_data):
    outcome, context = quick_once("multilabel-unlabeled", "delicious")
    sizes = context.config["alone"]
    assert [row.method for row in outcome.rows] == ["IOKR, m = 0", "OEL₀, m = 0", *(f"OEL, m = {m}" for m in sizes)]
    source = multilabel.load("delicious", 0)
    everything = source.split(context.config["pairs"], sizes[-1])
    candidates = sparse.vstack([everything.Y, everything.unlabeled], "csr")
    for row, m in zip(outcome.rows[1:], [0, *sizes], strict=True):
        data = source.split(context.config["pairs"], m, context.config["tests"])
        model = estimator_of(row).fit(data.X, data.Y, unlabeled=data.unlabeled)
        assert row.value == pytest.approx(100 * f1_score(data.Y_test, model.predict(data.X_test, candidates)), abs=1e-9)


def test_the_error_of_every_p_comes_from_one_fit(small_data):
    config = {"pairs": 60, "alone": 100, "tests": 40}
    data, _ = usps.load(config)
    settings = {"supervision": 0.3, "alphas": [1e-3], "sizes": [3, 9], "output_landmarks": None}
    curves = usps.compute_squared_errors(data, Gaussian(0.1), Gaussian(0.05), settings)

    def error(model):
        """Return |G*Gĥ(x) − ψ(y)|² from distances to one candidate at a time."""
        model.fit(data.X, data.Y, unlabeled=data.unlabeled)
        truth = model.predict_topk(data.X_test, 1, [data.Y_test[i : i + 1] for i in range(len(data.Y_test))])
        return float(np.mean(truth.distances))

    for p in settings["sizes"]:
        oel = OEL(Gaussian(0.1), Gaussian(0.05), alpha=1e-3, n_components=p, supervision=0.3)
        assert curves[f"p = {p}"][0] == pytest.approx(error(oel), abs=1e-9)
    assert curves["IOKR"][0] == pytest.approx(error(IOKR(Gaussian(0.1), Gaussian(0.05), alpha=1e-3)), abs=1e-9)


def test_the_ratio_of_times_follows_from_the_rows(small_data):
    outcome, _ = quick_once("timing", "usps")
    decode = {row.method: row.value for row in outcome.rows if row.metric.name.startswith("decode, s")}
    ratio = outcome.rows[-1]
    assert ratio.value == pytest.approx(decode["IOKR"] / decode["OEL₀"]) and ratio.paper == pytest.approx(9)
    assert all(row.verdict in ("", "not comparable") for row in outcome.rows[:-1]), "seconds are from another machine"
    assert ratio.verdict in ("pass", "falls short")


@pytest.mark.parametrize("name", ["multilabel-full", "timing"])
def test_landmarks_where_the_data_is_large(small_data, name):
    chosen = next(part for part in experiments.find(name).parts if part.name == "bookmarks")
    landmarks = {**chosen.config["landmarks"], "input_landmarks": 60, "output_landmarks": 40}
    context = Context({**chosen.config, **chosen.quick, "landmarks": landmarks}, 0, None, lambda text: None)
    measured = [row for row in chosen.run(context).rows if row.parameters and not is_competitor(row)]
    assert measured
    for row in measured:
        assert row.parameters["input_landmarks"] == 60 and row.parameters["output_landmarks"] == 40
        assert ("dtype" in row.parameters) == (name == "timing")


def test_values_of_the_paper():
    """Compare with its tables 3, 5, 6 and 11."""
    from psilearn_lab.experiments import multilabel_small, timing

    assert usps.PAPER == {"SPEN": 0.801, "KDE": 0.764, "IOKR": 0.751, "OEL₀": 0.734, "OEL": 0.725}
    assert [list(v.values()) for v in multilabel_small.PAPER.values()] == [
        [35.9, 39.7, 39.7],
        [13.7, 16.1, 19.0],
        [22.9, 25.9, 27.1],
    ]
    assert multilabel_full.PAPER == {"bibtex": {"IOKR": 44.0, "OEL₀": 43.8}, "bookmarks": {"IOKR": 39.3, "OEL₀": 39.1}}
    quoted = {name: tuple(values.values()) for name, (_, values) in multilabel_full.QUOTED.items()}
    assert quoted == {
        "LR": (37.2, 30.7),
        "NN": (38.9, 33.8),
        "SPEN": (42.2, 34.4),
        "PRLR": (44.2, 34.9),
        "DVN": (44.7, 37.1),
    }
    assert timing.PAPER["bibtex"] == {"IOKR": (2, 13), "OEL₀": (15, 4)}
    assert timing.PAPER["usps"] == {"IOKR": (0.1, 9), "OEL₀": (0.4, 1), "OEL": (37, 38)}
    assert timing.PAPER["bookmarks"] == {"IOKR": (465, 3371), "OEL₀": (617, 214)}


def test_only_the_papers_own_criterion_is_compared_with_it(small_data):
    rows = quick_once("usps", "usps")[0].rows
    ours = [row for row in rows if not is_competitor(row)]
    assert all((row.paper is None) == row.method.endswith("by loss") for row in ours)
    assert [row.method for row in rows if is_competitor(row) and row.paper is not None] == ["SPEN"]


def test_pairs_unlabeled_outputs_and_tests_do_not_overlap():
    bunch = tags()
    source = multilabel.Multilabel(
        np.arange(400)[:, None], sparse.csr_matrix(np.arange(400)[:, None]), bunch.train, bunch.test
    )
    data = source.split(100, 50, 30)
    pieces = [data.X.ravel(), data.unlabeled.toarray().ravel(), data.X_test.ravel()]
    assert [len(piece) for piece in pieces] == [100, 50, 30]
    assert len(np.unique(np.concatenate(pieces))) == 180
    assert np.array_equal(data.X.ravel(), data.Y.toarray().ravel())
    assert source.split(None).unlabeled is None and source.split(None).X.shape[0] == 300


def test_the_seed_determines_the_pairs(small_data):
    first, again, other = (multilabel.load("bibtex", seed).train for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert np.array_equal(np.sort(other), np.arange(300))


def test_features_are_scaled_by_training_rows_only(small_data):
    bunch = small_data["mediamill"]
    X = multilabel.load("mediamill", 0).X
    np.testing.assert_allclose(X[bunch.train].mean(axis=0), 0, atol=1e-12)
    assert np.abs(X[bunch.test].mean(axis=0)).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm(multilabel.load("bibtex", 0).X, axis=1), 1)


def test_paired_differences():
    rng = np.random.default_rng(0)
    a, b = rng.random(50), rng.random(50)
    results = {"A": SimpleNamespace(score=Mean(a)), "B": SimpleNamespace(score=Mean(b))}
    note = protocol.difference_note(results, "A", "B", scale=100, digits=4)
    difference, error = map(float, re.match(r"A minus B: (\S+) ± (\S+) ", note).groups())
    assert difference == pytest.approx(100 * (a - b).mean(), abs=1e-4)
    assert error == pytest.approx(100 * (a - b).std(ddof=1) / np.sqrt(50), abs=1e-4)


def test_one_search_serves_several_methods_and_kinds():
    bunch = tags()
    data = protocol.Data(bunch.X[:100], bunch.Y[:100], bunch.X[:0], bunch.Y[:0])
    methods = [
        protocol.Method("IOKR", IOKR),
        protocol.Method("OEL₀", OEL, [1.0]),
        protocol.Method("OEL", OEL, [0.5, 1.0]),
    ]
    grid = protocol.Grid([0.01, 0.1], [1e-4, 1e-2], [3, 6], ["f1"], 2)
    outputs = {"Gaussian": [Gaussian(0.2), Gaussian(1.0)], "Dice": [Dice()]}
    choices = protocol.choose_parameters(data, outputs, grid, methods, Context({}, 0, None, lambda text: None))
    assert [c.name for c in choices] == [f"{m.name}, {kind}" for kind in outputs for m in methods]
    for choice in choices:
        kernels = outputs[choice.outputs]
        assert any(repr(choice.parameters["output_kernel"]) == repr(kernel) for kernel in kernels)
        assert type(choice.make_model()) is choice.method.estimator
    by_name = {c.name: c.parameters for c in choices}
    for kind in outputs:
        assert by_name[f"OEL₀, {kind}"]["supervision"] == 1.0
        assert repr(by_name[f"OEL, {kind}"]["input_kernel"]) == repr(by_name[f"IOKR, {kind}"]["input_kernel"])


def test_sizes_beyond_the_rank_of_a_kernel_are_left_out():
    bunch = tags()
    data = protocol.Data(bunch.X[:100], bunch.Y[:100], bunch.X[:0], bunch.Y[:0])
    methods = [protocol.Method("IOKR", IOKR), protocol.Method("OEL₀", OEL, [1.0])]
    grid = protocol.Grid([0.01], [1e-4], [2, 8, 50], ["f1"], 2)
    outputs = {"linear": [Linear()], "Gaussian": [Gaussian(1.0)]}  # 8 tags: rank 8, and more
    choices = protocol.choose_parameters(data, outputs, grid, methods, Context({}, 0, None, lambda text: None))
    by_name = {choice.name: choice.parameters for choice in choices}
    assert by_name["OEL₀, linear"]["n_components"] <= 8


def test_a_second_criterion_adds_rows():
    bunch = halves()
    data = protocol.Data(bunch.X[:100], bunch.Y[:100], bunch.X[:0], bunch.Y[:0], bunch.Y[100:200])
    methods = [protocol.Method("IOKR", IOKR), protocol.Method("OEL₀", OEL, [1.0])]
    grid = protocol.Grid([0.05, 0.5], [1e-4, 1e-2], [3, 20], ["mse", "loss"], 2, joint=True)
    outputs = {"": [Gaussian(0.2)]}
    choices = protocol.choose_parameters(data, outputs, grid, methods, Context({}, 0, None, lambda text: None))
    assert [c.name for c in choices] == ["IOKR", "OEL₀", "IOKR, by loss", "OEL₀, by loss"]
    for scoring, chosen in (("mse", choices[1]), ("loss", choices[3])):
        alone = protocol.Grid([0.05, 0.5], [1e-4, 1e-2], [3, 20], [scoring], 2, joint=True)
        again = protocol.choose_parameters(data, outputs, alone, methods, Context({}, 0, None, lambda text: None))[1]
        assert repr(again.parameters) == repr(chosen.parameters)


def test_an_unknown_experiment_is_named():
    with pytest.raises(ValueError, match=r"no experiment 'usp'; the experiments are usps, multilabel-small"):
        experiments.find("usp")


def test_a_row_is_scaled():
    choice = protocol.Choice(protocol.Method("IOKR", IOKR), "", {}, [], 1.0)
    model = IOKR(Gaussian(1.0), Gaussian(1.0)).fit([[0.0], [1.0]], [[0.0], [1.0]])
    evaluation = protocol.Evaluation(model, None, Mean([0.2, 0.4]), {"fit": 2.0})
    row = protocol.make_row("D", choice, evaluation, Metric("F1", "higher"), 100, paper=25.0)
    assert row.value == pytest.approx(30) and row.error == pytest.approx(10) and row.verdict == "pass"
    assert row.seconds == {"choose": 1.0, "fit": 2.0}


@pytest.mark.data("usps/usps.h5")
def test_usps_takes_the_images_of_the_paper():
    data, digits = usps.load(usps.CONFIG)
    assert data.X.shape == (1000, 128) and data.unlabeled.shape == (6000, 128) and data.X_test.shape == (2007, 128)
    assert len(digits) == 2007


# Label ranking


RANKING = {**label_ranking.CONFIG, "folds": 3, "repetitions": 2}


def test_a_fold_chooses_as_the_searches_do_and_is_tested_once():
    bunch, (train, test) = rankings(), (np.arange(60), np.arange(60, 80))
    fold = label_ranking._run_fold(bunch.X, bunch.Y, train, test, RANKING, seed=3)
    grid = {"alphas": RANKING["alphas"], "cv": KFold(5, shuffle=True, random_state=3), "refit": False}
    kernels = [Gaussian(gamma) for gamma in RANKING["gammas"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        iokr = IOKRCV(kernels, Kemeny(), **grid).fit(bunch.X[train], bunch.Y[train])
        oel = OELCV(kernels, Kemeny(), n_components=[1, 2, 3, 4, 6], supervisions=1.0, **grid)
        oel.fit(bunch.X[train], bunch.Y[train])
    for method, search, estimator in (("IOKR", iokr, IOKR), ("OEL₀", oel, OEL)):
        assert fold.chosen[method]["gamma"] == search.best_params_["input_kernel"].gamma
        assert fold.chosen[method]["alpha"] == search.best_params_["alpha"]
        predicted = estimator(**search.best_params_).fit(bunch.X[train], bunch.Y[train]).predict(bunch.X[test])
        np.testing.assert_allclose(fold.scores[method].values, kendall_tau(bunch.Y[test], predicted).values)
    assert fold.chosen["OEL₀"]["n_components"] == oel.best_params_["n_components"]


@pytest.mark.parametrize("scaled", [False, True])
def test_the_held_out_fold_chooses_nothing(scaled):
    bunch, (train, test) = rankings(), (np.arange(60), np.arange(60, 80))
    config = {**RANKING, "scaled": scaled}
    before = label_ranking._run_fold(bunch.X, bunch.Y, train, test, config, seed=0)
    X, Y = bunch.X.copy(), bunch.Y.copy()
    X[test], Y[test] = 100 * X[test], 5 - Y[test]
    after = label_ranking._run_fold(X, Y, train, test, config, seed=0)
    assert before.chosen == after.chosen and before.edges == after.edges
    assert before.scores["IOKR"] != after.scores["IOKR"]


def test_the_results_are_mean_and_deviation_over_all_folds(monkeypatch):
    bunch = rankings()
    monkeypatch.setattr(datasets, "load", lambda name: bunch)
    outcome = label_ranking.run(Context(RANKING, 5, None, lambda text: None), "cold")
    folds = [
        label_ranking._run_fold(bunch.X, bunch.Y, train, test, RANKING, 5)
        for seed in (5, 6)
        for train, test in KFold(3, shuffle=True, random_state=seed).split(bunch.X)
    ]
    for row in outcome.rows:
        values = [float(fold.scores[row.method]) for fold in folds]
        assert row.value == pytest.approx(np.mean(values)) and row.error == pytest.approx(np.std(values, ddof=1))
        assert (row.paper, row.paper_error) == label_ranking.PAPER["cold"][row.method]
    gain = outcome.rows[1].value - outcome.rows[0].value
    assert any(note.startswith(f"OEL₀ minus IOKR: {gain:+.4f}") for note in outcome.notes)
    assert "2 of 5 repetitions of the cross-validation." in outcome.notes
    assert not experiments.find("label-ranking").parts[0].trial


def test_an_interrupted_cross_validation_resumes_after_the_last_fold(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", lambda name: rankings())
    expected = label_ranking.run(Context(RANKING, 0, None, lambda text: None), "cold")

    def interrupt(text):
        if text.startswith("4 of 6"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        label_ranking.run(Context(RANKING, 0, None, interrupt, tmp_path), "cold")
    run_fold, tests = label_ranking._run_fold, []
    monkeypatch.setattr(label_ranking, "_run_fold", lambda *args: tests.append(args[3]) or run_fold(*args))
    resumed = label_ranking.run(Context(RANKING, 0, None, lambda text: None, tmp_path), "cold")
    assert len(tests) == 2
    assert resumed.notes == expected.notes
    assert [(row.value, row.error, row.parameters) for row in resumed.rows] == [
        (row.value, row.error, row.parameters) for row in expected.rows
    ]


def test_convergence_of_an_energy_network():
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = SPEN(hidden=(4,), energy_hidden=2, epochs=3, energy_epochs=4, steps=5).fit(X, X**2)
    features, inference, hinge = usps.plot_convergence(model).axes
    for axis, history in ((features, model.pretraining_), (hinge, model.history_)):
        assert [len(line.get_xdata()) for line in axis.lines[:2]] == [len(history.training)] * 2
    assert len(inference.lines[0].get_ydata()) == 6
    with pytest.raises(TypeError, match="plot_convergence draws a fitted SPEN"):
        usps.plot_convergence(SPEN())
