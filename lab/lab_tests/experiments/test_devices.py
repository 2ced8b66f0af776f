"""Experiments give the same figures on a device as in NumPy; a part without code for devices says so."""

import numpy as np
import pytest

from lab_tests.experiments.test_paper_experiments import small_data  # noqa: F401  (a fixture)
from psilearn.kernels import Gaussian
from psilearn_lab import experiments
from psilearn_lab.baselines import KRR
from psilearn_lab.experiments.experiment import Context

pytest.importorskip("torch")

SMALL = {
    ("usps", "usps"): {"competitors": {"KRR": {"gamma": [0.1], "alpha": [1e-4, 1e-2]}}, "tests": 30},
    ("usps", "usps-grid"): {},
    ("multilabel-small", "bibtex"): {},
    ("multilabel-unlabeled", "bibtex"): {},
    ("multilabel-full", "bibtex"): {"pairs": 100, "select": 80},
    ("label-ranking", "cold"): {"folds": 2, "inner_folds": 2, "gammas": [0.1, 0.4], "alphas": [1e-3, 1e-1]},
}


def run(name, part, device, changes, log=lambda text: None):
    chosen = next(p for p in experiments.find(name).parts if p.name == part)
    return chosen.run(Context({**chosen.config, **chosen.quick, **changes}, 0, None, log, device=device))


@pytest.mark.parametrize(("name", "part"), SMALL)
def test_a_device_gives_the_same_figures(small_data, monkeypatch, name, part):  # noqa: F811
    monkeypatch.setattr(Context, "can_draw", property(lambda context: False))
    rows, device_rows = (run(name, part, device, SMALL[name, part]).rows for device in (None, "cpu"))
    assert [row.method for row in rows] == [row.method for row in device_rows]
    for row, device_row in zip(rows, device_rows, strict=True):
        assert device_row.parameters == row.parameters
        if not row.quoted:
            tolerance = 1e-4 if row.method == "LR" else 1e-9  # by another solver on a device
            assert device_row.value == pytest.approx(row.value, rel=tolerance), row.method


def test_costs_of_candidates_are_arrays():
    X, Y = np.arange(12.0)[:, None], np.arange(24.0).reshape(12, 2)
    ((_, _, expected, _),) = KRR(Gaussian(0.1), alpha=1e-3).fit(X, Y).costs(X)
    ((_, _, costs, _),) = KRR(Gaussian(0.1), alpha=1e-3, device="cpu").fit(X, Y).costs(X)
    assert isinstance(costs, np.ndarray)
    np.testing.assert_allclose(costs, expected)


def test_times_are_measured_on_a_device(small_data):  # noqa: F811
    rows = run("timing", "usps", "cpu", {"repeats": 1}).rows
    assert all(np.isfinite(row.value) and row.value > 0 for row in rows)


def test_searches_on_a_device_run_in_one_process(small_data):  # noqa: F811
    chosen = experiments.find("multilabel-small").parts[0]
    config = {**chosen.config, **chosen.quick, "gammas": [0.5], "alphas": [1e-2], "sizes": [5], "max_rounds": 0}
    outcome = chosen.run(Context(config, 0, 2, lambda text: None, device="cpu"))
    assert len(outcome.rows) == 3
