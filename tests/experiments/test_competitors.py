"""Competitors are chosen on held-out training examples, and shown plainly."""

import numpy as np
import pytest

from psilearn.baselines import KNN, KRR
from psilearn.experiments import competitors, multilabel_full, usps
from psilearn.experiments.competitors import available, contend, plainly
from psilearn.experiments.experiment import Context
from psilearn.experiments.protocol import Data, Measured, least_validation_loss
from psilearn.experiments.record import Metric
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean
from tests.baselines.toys import labels, numbers


def context(**config):
    return Context(config, seed=3, jobs=None, say=lambda text: None)


def test_the_setting_with_the_least_validation_error_is_kept():
    X, Y = labels(100)
    data = Data(X, Y, X[:5], Y[:5])
    grid = {"n_neighbors": [1, 7, 60], "weights": ["uniform", "distance"]}
    chosen = contend("KNN", grid, data, context())
    errors = {
        (k, w): KNN(k, w, random_state=3).fit(X, Y).validation_error_
        for k in grid["n_neighbors"]
        for w in grid["weights"]
    }
    best = chosen.parameters["n_neighbors"], chosen.parameters["weights"]
    assert errors[best] == min(errors.values()) == chosen.model.validation_error_
    assert chosen.name == "k-NN"


def test_gamma_stands_for_a_gaussian_kernel_and_edges_are_named():
    X, Y = numbers(60)
    data = Data(X, Y, X, Y)
    chosen = contend("KRR", {"gamma": [0.1], "alpha": [1e-8, 1e-1, 1.0]}, data, context())
    assert chosen.parameters == {"gamma": 0.1, "alpha": 1e-8}
    assert chosen.notes() == ["KRR, no embedding: alpha=1e-08 is the least of its grid."]
    direct = KRR(Gaussian(0.1), alpha=1e-8).fit(X, Y)
    assert np.array_equal(chosen.model.predict(X), direct.predict(X))
    assert contend("KRR", {"gamma": [0.1], "alpha": [1e-8, 1.0]}, data, context()).edges == []


def test_networks_are_left_out_without_torch(monkeypatch):
    monkeypatch.setattr(competitors, "has_torch", lambda: False)
    config = {"competitors": {"LR": {}, "SPEN": {}, "DVN": {}}}
    assert list(available(config)) == ["LR"]


@pytest.mark.parametrize("module", [usps, multilabel_full])
def test_grids_name_parameters_of_baselines(module):
    from psilearn import baselines

    config = module.CONFIG if module is usps else module.DATASETS["bibtex"]
    for key, grid in config["competitors"].items():
        known = set(getattr(baselines, key)().get_params())
        assert set(grid) - {"gamma"} <= known
        assert ("gamma" in grid) <= ("input_kernel" in known)


def measured(*values):
    return Measured(None, None, Mean(values), {})


def test_what_is_better_is_said_plainly():
    results = {
        "IOKR": measured(1.0, 2.0),
        "OEL": measured(0.5, 1.5),
        "OEL, neural ĥ": measured(0.4, 1.0),
        "NN": measured(0.5, 1.2),
        "k-NN": measured(3.0, 3.0),
    }
    lower, higher = plainly(results, Metric("loss", "lower")), plainly(results, Metric("F1", "higher"))
    assert lower.startswith("Better than OEL,") and "NN minus OEL: -0.150" in lower and "neural" in lower
    assert "k-NN" not in lower
    assert higher.startswith("Better than IOKR,") and "k-NN minus IOKR" in higher
    assert plainly({"OEL": measured(0.5, 1.5), "NN": measured(2.0, 3.0)}, Metric("loss", "lower")).startswith("No comp")


def test_the_best_score_on_a_held_out_fifth_is_kept():
    from psilearn import IOKR

    X, Y = numbers(80)
    models = [IOKR(Gaussian(0.1), Gaussian(0.1), alpha=alpha) for alpha in (10.0, 1e-6, 1.0)]
    assert least_validation_loss(models, Data(X, Y, X, Y), seed=0) is models[1]
