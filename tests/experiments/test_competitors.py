"""Competitors are chosen on held-out training examples, and notes compare them with our methods."""

import numpy as np
import pytest

from psilearn.baselines import KNN, KRR
from psilearn.experiments import competitors, multilabel_full, usps
from psilearn.experiments.competitors import available_competitors, comparison_note, fit_competitor
from psilearn.experiments.experiment import Context
from psilearn.experiments.protocol import Data, Evaluation, select_by_holdout
from psilearn.experiments.result_rows import Metric
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean
from tests.baselines.toys import labels, numbers


def context(**config):
    return Context(config, seed=3, n_jobs=None, log=lambda text: None)


def test_the_setting_with_the_smallest_validation_error_is_kept():
    X, Y = labels(100)
    data = Data(X, Y, X[:5], Y[:5])
    grid = {"n_neighbors": [1, 7, 60], "weights": ["uniform", "distance"]}
    chosen = fit_competitor("KNN", grid, data, context())
    errors = {
        (k, w): KNN(k, weights=w, random_state=3).fit(X, Y).validation_error_
        for k in grid["n_neighbors"]
        for w in grid["weights"]
    }
    best = chosen.parameters["n_neighbors"], chosen.parameters["weights"]
    assert errors[best] == min(errors.values()) == chosen.model.validation_error_
    assert chosen.name == "k-NN"


def test_gamma_is_the_width_of_a_gaussian_kernel_and_edges_are_noted():
    X, Y = numbers(60)
    data = Data(X, Y, X, Y)
    chosen = fit_competitor("KRR", {"gamma": [0.1], "alpha": [1e-8, 1e-1, 1.0]}, data, context())
    assert chosen.parameters == {"gamma": 0.1, "alpha": 1e-8}
    assert chosen.edge_notes() == ["KRR, no embedding: alpha = 1e-08 is the smallest of its grid."]
    direct = KRR(Gaussian(0.1), alpha=1e-8).fit(X, Y)
    assert np.array_equal(chosen.model.predict(X), direct.predict(X))
    assert fit_competitor("KRR", {"gamma": [0.1], "alpha": [1e-8, 1.0]}, data, context()).edges == []


def test_networks_are_left_out_without_torch(monkeypatch):
    monkeypatch.setattr(competitors, "has_torch", lambda: False)
    config = {"competitors": {"LR": {}, "SPEN": {}, "DVN": {}}}
    assert list(available_competitors(config)) == ["LR"]


@pytest.mark.parametrize("module", [usps, multilabel_full])
def test_grids_name_parameters_of_baselines(module):
    from psilearn import baselines

    config = module.CONFIG if module is usps else module.DATASETS["bibtex"]
    for key, grid in config["competitors"].items():
        known = set(getattr(baselines, key)().get_params())
        assert set(grid) - {"gamma"} <= known
        assert ("gamma" in grid) <= ("input_kernel" in known)


def evaluation(*values):
    return Evaluation(None, None, Mean(values), {})


def test_better_competitors_are_noted():
    results = {
        "IOKR": evaluation(1.0, 2.0),
        "OEL": evaluation(0.5, 1.5),
        "OEL, neural ĥ": evaluation(0.4, 1.0),
        "NN": evaluation(0.5, 1.2),
        "k-NN": evaluation(3.0, 3.0),
    }
    lower, higher = comparison_note(results, Metric("loss", "lower")), comparison_note(results, Metric("F1", "higher"))
    assert lower.startswith("Better than OEL,") and "NN minus OEL: -0.150" in lower and "neural" in lower
    assert "k-NN" not in lower
    assert higher.startswith("Better than IOKR,") and "k-NN minus IOKR" in higher
    assert comparison_note(
        {"OEL": evaluation(0.5, 1.5), "NN": evaluation(2.0, 3.0)}, Metric("loss", "lower")
    ).startswith("No comp")


def test_the_model_with_the_best_score_on_a_held_out_fifth_is_selected():
    from psilearn import IOKR

    X, Y = numbers(80)
    models = [IOKR(Gaussian(0.1), Gaussian(0.1), alpha=alpha) for alpha in (10.0, 1e-6, 1.0)]
    assert select_by_holdout(models, Data(X, Y, X, Y), seed=0) is models[1]
