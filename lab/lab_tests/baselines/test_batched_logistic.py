"""Logistic regressions that are learned at once on a device, compared with one after the other."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from lab_tests.baselines.toys import labels, torch_or_skip
from psilearn_lab.baselines import ECC, GFM, KRR, LR, logistic

pytestmark = torch_or_skip


def rare_labels(n=300, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.05, 3, d)
    scores = X @ rng.normal(size=(d, 8))
    Y = (
        scores
        >= [np.sort(column)[-count] for column, count in zip(scores.T, [150, 90, 50, 20, 9, 3, 1, 1], strict=True)]
    ) * 1.0
    Y[:, 7], Y[:, 6] = 0, 1  # a label of no example, and one of all
    return X, Y


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_minimum_is_that_of_scikit_learn(C, form):
    X, Y = rare_labels()
    coef, intercept = logistic.fit_labels_at_once(form(X), Y, C, 1e-9, "cpu")
    for label in range(6):
        reference = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, Y[:, label])
        assert np.allclose(coef[label], reference.coef_[0], atol=1e-4 * np.abs(reference.coef_).max())
        assert intercept[label] == pytest.approx(reference.intercept_[0], rel=1e-4, abs=1e-4)
    assert not coef[6:].any()
    assert np.allclose(intercept[6:], [np.log(300.5 / 0.5), -np.log(300.5 / 0.5)])


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_each_label_takes_only_the_steps_that_it_needs(C, monkeypatch):
    n_columns = []
    multiply = logistic._NewtonSystem.multiply
    monkeypatch.setattr(
        logistic._NewtonSystem,
        "multiply",
        lambda system, V: n_columns.append(V.shape[1]) or multiply(system, V),
    )
    X, Y = rare_labels()
    fit = partial(logistic.fit_labels_at_once, X, C=C, tolerance=1e-9, device="cpu")
    coef, intercept = fit(Y)
    together, n_steps = sum(n_columns), len(n_columns)
    n_columns.clear()
    for label in range(6):
        alone, alone_intercept = fit(Y[:, [label]])
        np.testing.assert_allclose(coef[label], alone[0], rtol=0, atol=1e-5 * np.abs(alone).max())
        assert intercept[label] == pytest.approx(alone_intercept[0], rel=1e-5)
    assert together == pytest.approx(sum(n_columns), rel=0.1)  # rounding may add or save a step
    assert together < 0.9 * 6 * n_steps


@pytest.mark.parametrize(
    "model",
    [LR(3.0), GFM(3.0, estimate="sizes"), ECC(3.0, n_chains=2, max_chain_labels=2), KRR(alpha=1e-3)],
    ids=lambda model: type(model).__name__,
)
def test_a_device_gives_the_same_baselines(model):
    X, Y = labels()
    expected = model.fit(X, Y).predict_soft(X)
    assert np.allclose(model.set_params(device="cpu").fit(X, Y).predict_soft(X), expected, atol=1e-3)
