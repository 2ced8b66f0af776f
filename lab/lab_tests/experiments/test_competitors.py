"""Competitors are chosen on held-out training examples, and notes compare them with our methods."""

from itertools import product

import numpy as np
import pytest

from lab_tests.baselines.toys import labels, numbers
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean
from psilearn_lab.baselines import KNN, KRR
from psilearn_lab.experiments import competitors, multilabel_full, usps
from psilearn_lab.experiments.competitors import comparison_note, fit_competitor, validate_block
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.protocol import Data, Evaluation, select_by_holdout
from psilearn_lab.experiments.results import Metric
from psilearn_lab.experiments.widening import values_of


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
    assert fit_competitor("KRR", {"gamma": [0.1], "alpha": [1e-8]}, data, context()).edges == []


def validation_errors(monkeypatch):
    """Return a dictionary to which every validation error is added that ``fit_competitor`` asks for."""
    errors = {}

    def remember(make, axes, *args):
        scores = validate_block(make, axes, *args)
        errors.update({tuple(values_of(axes, setting).items()): -score for setting, score in scores.items()})
        return scores

    monkeypatch.setattr(competitors, "validate_block", remember)
    return errors


@pytest.mark.parametrize("rounds", [0, 1, 2, 9])
@pytest.mark.parametrize(
    ("key", "grid"),
    [
        ("KRR", {"gamma": [0.001, 0.002], "alpha": [0.1, 1.0]}),
        ("RRR", {"alpha": [1e-3, 1e-2], "n_components": [1, 2]}),
        ("PLS", {"n_components": [1, 2]}),
        ("PRLR", {"rank_penalty": [3.0, 10.0], "missing": [0.1, 0.3], "n_rounds": [1]}),
        ("KNN", {"n_neighbors": [1, 2], "weights": ["uniform", "distance"]}),
    ],
)
def test_neighbors_of_the_choice_are_known_to_be_no_better_or_a_note_says_so(key, grid, rounds, monkeypatch):
    X, Y = labels(90)
    data = Data(X, Y, X[:5], Y[:5])
    errors = validation_errors(monkeypatch)
    chosen = fit_competitor(key, grid, data, context(competitor_rounds=rounds))
    assert chosen.model.validation_error_ == min(errors.values())
    axes = competitors._make_axes(key, grid, data, context())
    positions = [range(-20, 30) if len(axis.positions) > 1 else [0] for axis in axes]
    listed = [{axis.value(p): p for p in found if axis.exists(p)} for axis, found in zip(axes, positions, strict=True)]
    best = [values[chosen.parameters[axis.name]] for axis, values in zip(axes, listed, strict=True)]
    neighbors = product(*(axis.neighbors(p) for axis, p in zip(axes, best, strict=True)))
    unknown = [n for n in neighbors if tuple(values_of(axes, n).items()) not in errors]
    unknown_ends = [edge for edge in chosen.edges if "that exists" not in edge]
    assert bool(unknown) == bool(unknown_ends)
    assert not unknown or rounds < 9


def test_known_settings_are_not_validated_again(monkeypatch):
    validated = []

    def remember(*args):
        scores = validate_block(*args)
        validated.extend(scores)
        return scores

    monkeypatch.setattr(competitors, "validate_block", remember)
    X, Y = labels(90)
    grid = {"gamma": [0.001, 0.002], "alpha": [0.1, 1.0]}
    fit_competitor("KRR", grid, Data(X, Y, X[:5], Y[:5]), context(competitor_rounds=9))
    assert len(validated) == len(set(validated)) > 4


def test_widening_improves_the_error_and_ends_at_what_exists():
    X, Y = labels(90)
    data = Data(X, Y, X[:5], Y[:5])
    grid = {"gamma": [0.001, 0.002], "alpha": [0.1, 1.0]}
    first, widened = (fit_competitor("KRR", grid, data, context(competitor_rounds=n)) for n in (0, 9))
    assert widened.model.validation_error_ < first.model.validation_error_
    assert first.edges and not widened.edges
    many = {"alpha": [1e-6], "n_components": [1, 2, 500]}
    chosen = fit_competitor("RRR", many, data, context(competitor_rounds=3))
    assert chosen.parameters["n_components"] <= Y.shape[1]
    assert all("exists" in edge for edge in chosen.edges)


def test_the_number_of_components_is_bounded_by_the_outputs_or_by_the_inputs():
    X, Y = labels(90)
    data = Data(X, Y, X, Y)
    bounds = {key: competitors._largest_value(key, "n_components", data, context()) for key in ("RRR", "PLS")}
    assert bounds == {"RRR": Y.shape[1], "PLS": min(71, X.shape[1])}
    assert competitors._largest_value("KNN", "n_neighbors", data, context()) == 72
    assert competitors._largest_value("PRLR", "missing", data, context()) < 1
    assert competitors._largest_value("PRLR", "rank_penalty", data, context()) == np.inf


@pytest.mark.parametrize("module", [usps, multilabel_full])
def test_grids_name_parameters_of_baselines(module):
    from psilearn_lab import baselines

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
