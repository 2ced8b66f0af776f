"""The experiment with all label sets: its rows follow from their parameters, and every choice from training rows."""

import numpy as np
import pytest
from scipy import sparse

from lab_tests.experiments.test_paper_experiments import tags
from psilearn import IOKR, OEL
from psilearn.decoding import AllLabelSets
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score
from psilearn.utils import hold_out
from psilearn_lab import datasets, experiments
from psilearn_lab.baselines import GFM, KRR, LR
from psilearn_lab.baselines.thresholds import apply_threshold, best_threshold
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.multilabel_sets import order_rows
from psilearn_lab.experiments.protocol import Data
from psilearn_lab.experiments.tuned_lines import SCALINGS, precision, scale_data, top_labels

PART = next(part for part in experiments.find("multilabel-sets").parts if part.name == "eurlex4k")


@pytest.fixture(scope="module")
def loaded():
    return tags()


@pytest.fixture(scope="module")
def outcome(loaded, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "load", lambda name: loaded)
        return PART.run(Context({**PART.config, **PART.quick}, 0, None, lambda text: None))


@pytest.fixture(scope="module")
def data(loaded):
    order = np.random.default_rng(0).permutation(loaded.train)[: PART.quick["pairs"]]
    test = loaded.test[: PART.quick["tests"]]
    return Data(loaded.X[order], loaded.Y[order], loaded.X[test], loaded.Y[test])


def rows_of(outcome, metric="F1"):
    return {row.method: row for row in outcome.rows if row.metric.name == metric}


def make_model(p):
    kernels = Gaussian(float(p["input_kernel"][len("Gaussian(gamma=") : -1])), Dice()
    if "supervision" in p:
        return OEL(*kernels, alpha=p["alpha"], n_components=p["n_components"], supervision=1.0)
    return IOKR(*kernels, alpha=p["alpha"])


@pytest.mark.parametrize("method", ["IOKR", "OEL₀"])
@pytest.mark.parametrize("candidates", ["known", "near", "all"])
def test_rows_follow_from_their_parameters(outcome, data, method, candidates):
    row = rows_of(outcome)[f"{method}, Dice, {candidates}"]
    scaled = scale_data(data, row.parameters["scaling"])
    model = make_model(row.parameters).fit(scaled.X, scaled.Y)
    assert row.value == pytest.approx(100 * f1_score(scaled.Y_test, model.predict(scaled.X_test, candidates)))
    three = model.predict(scaled.X_test, AllLabelSets(min_labels=3, max_labels=3))
    assert np.all(three.sum(axis=1) == 3)
    hits = np.asarray(scaled.Y_test.multiply(three).sum(axis=1)).ravel()
    assert rows_of(outcome, "P@3")[row.method].value == pytest.approx(100 * np.mean(hits / 3))
    kept, held = hold_out(len(data.X), 0.15, 0)
    part = make_model(row.parameters).fit(scaled.X[kept], scaled.Y[kept])
    validation = f1_score(scaled.Y[held], part.predict(scaled.X[held], candidates))
    assert row.parameters["validation F1"] == pytest.approx(validation, abs=2e-5)


def test_competitors_follow_from_their_parameters(outcome, data):
    rows = rows_of(outcome)
    for name, make in {
        "LR": lambda p: LR(p["C"], validation_fraction=0.15),
        "LR, thresholds per label": lambda p: LR(p["C"], thresholds="per_label", validation_fraction=0.15),
        "GFM": lambda p: GFM(p["C"], estimate=p["estimate"], validation_fraction=0.15),
        "KRR": lambda p: KRR(Gaussian(p["gamma"]), alpha=p["alpha"], validation_fraction=0.15),
    }.items():
        p = rows[name].parameters
        scaled = scale_data(data, p["scaling"])
        model = make(p).fit(scaled.X, scaled.Y)
        assert rows[name].value == pytest.approx(100 * f1_score(scaled.Y_test, model.predict(scaled.X_test)))
        assert p["validation F1"] == pytest.approx(1 - model.validation_error_, abs=2e-5)


def test_ordered_rows_hold_out_the_last_ones(monkeypatch):
    loaded, part = tags(), next(part for part in experiments.find("multilabel-sets").parts if part.name == "mediamill")
    monkeypatch.setattr(datasets, "load", lambda name: loaded)
    config = {
        **part.config,
        **part.quick,
        "outputs": {"Dice": {**part.quick["outputs"]["Dice"], "late_candidates": []}},
    }
    outcome = part.run(Context(config, 0, None, lambda text: None))
    rows, test = np.arange(part.quick["pairs"]), loaded.test[: part.quick["tests"]]
    assert np.array_equal(np.sort(order_rows(rows, config, 3)), rows)
    kept, last = rows[:128], rows[128:]  # 15 % of 150, rounded
    for method, row in rows_of(outcome).items():
        scaled = scale_data(
            Data(loaded.X[rows], loaded.Y[rows], loaded.X[test], loaded.Y[test]), row.parameters["scaling"]
        )
        if method in ("IOKR, Dice, known", "OEL₀, Dice, all"):
            model = make_model(row.parameters).fit(scaled.X[kept], scaled.Y[kept])
            predicted = model.predict(scaled.X[last], row.parameters["candidates"])
        elif method in ("KRR", "LR"):
            options = {"C": row.parameters["C"]} if method == "LR" else {"alpha": row.parameters["alpha"]}
            kernel = () if method == "LR" else (Gaussian(row.parameters["gamma"]),)
            model = (LR if method == "LR" else KRR)(*kernel, **options).fit(scaled.X[kept], scaled.Y[kept])
            soft, Y = model.predict_soft(scaled.X[last]), scaled.Y[last].toarray()
            predicted = apply_threshold(soft, best_threshold(Y, soft, False), False)
        else:
            continue
        validation = f1_score(scaled.Y[last], predicted)
        assert row.parameters["validation F1"] == pytest.approx(validation, abs=2e-5), method


def test_validation_chooses_output_kernel_and_candidates(outcome):
    rows = rows_of(outcome)
    for method in ("IOKR", "OEL₀"):
        lines = [row for name, row in rows.items() if name.startswith(method) and "chosen" not in name]
        best = max(lines, key=lambda row: row.parameters["validation F1"])
        assert rows[f"{method}, chosen"].value == best.value
        assert rows[f"{method}, chosen"].parameters == best.parameters


def test_notes_compare_with_known_sets_and_the_strongest_competitor(outcome):
    rows = rows_of(outcome)
    competitors = {name: row.value for name, row in rows.items() if not name.startswith(("IOKR", "OEL"))}
    strongest = max(competitors, key=competitors.get)
    difference = rows["IOKR, Dice, all"].value - rows["IOKR, Dice, known"].value
    notes = "\n".join(outcome.notes)
    assert f"“IOKR, Dice, all” minus “IOKR, Dice, known”: {difference:+.2f} ± " in notes
    difference = rows["OEL₀, chosen"].value - competitors[strongest]
    assert f"“OEL₀, chosen” minus “{strongest}”: {difference:+.2f} ± " in notes


def test_an_interrupted_part_resumes_after_the_last_line(loaded, monkeypatch, tmp_path, outcome):
    monkeypatch.setattr(datasets, "load", lambda name: loaded)

    def log(text):
        logged.append(text)
        if text.startswith("GFM"):
            raise KeyboardInterrupt

    logged = []
    context = Context({**PART.config, **PART.quick}, 0, None, log, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        PART.run(context)
    logged = []
    resumed = PART.run(Context(context.config, 0, None, logged.append, tmp_path))
    assert all(text.startswith(("GFM", "ECC", "k-NN", "KRR")) for text in logged)
    assert [(row.method, row.value, row.parameters) for row in resumed.rows] == [
        (row.method, row.value, row.parameters) for row in outcome.rows
    ]


@pytest.mark.parametrize("scaling", SCALINGS)
def test_scalings_use_training_rows_only_and_have_mean_squared_length_one(data, scaling):
    scaled = scale_data(data, scaling)
    assert np.mean(np.sum(scaled.X**2, axis=1)) == pytest.approx(1)
    fewer = scale_data(Data(data.X, data.Y, data.X_test[:3], data.Y_test[:3]), scaling)
    assert np.array_equal(fewer.X_test, scaled.X_test[:3])
    if scaling != "columns":
        as_csr = Data(sparse.csr_matrix(data.X), data.Y, sparse.csr_matrix(data.X_test), data.Y_test)
        assert np.allclose(scale_data(as_csr, scaling).X_test.toarray(), scaled.X_test)
    with pytest.raises(ValueError, match="no scaling 'cells'"):
        scale_data(data, "cells")


def test_precision_of_the_first_labels():
    Y, scores = sparse.csr_matrix([[1, 0, 1], [0, 1, 0]]), np.array([[0.9, 0.5, 0.1], [0.3, 0.2, 0.1]])
    assert precision(Y, top_labels(scores, 2), 2).values.tolist() == [0.5, 0.5]
    assert precision(Y.toarray(), top_labels(scores, 1), 1).values.tolist() == [1.0, 0.0]
