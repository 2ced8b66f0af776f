"""The network as a regressor of scikit-learn and of output embedding learning."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import IOKR, OEL
from psilearn.kernels import Dice
from psilearn_lab.baselines import DVN, NN, SPEN
from psilearn_lab.neural import NeuralRegressor

torch = pytest.importorskip("torch")

SMALL = {"hidden": (20,), "dropout": 0.0, "learning_rate": 0.01, "epochs": 60, "batch_size": 16}


def waves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    return X, np.column_stack([np.sin(3 * X[:, 0]), X[:, 0] * X[:, 1], X[:, 1]])


def test_learns_a_nonlinear_function() -> None:
    X, Y = waves(300, 0)
    X_test, Y_test = waves(100, 1)
    model = NeuralRegressor(**SMALL).fit(X, Y)
    assert model.score(X_test, Y_test) > 0.85
    assert model.history_.best_epoch > 5
    assert np.array_equal(model.predict(X_test), clone(model).fit(X, Y).predict(X_test))
    assert np.allclose(
        NeuralRegressor(**SMALL).fit(sparse.csr_matrix(X), Y).predict(X_test), model.predict(X_test), atol=1e-3
    )
    assert NeuralRegressor(**SMALL).fit(X, Y[:, 0]).predict(X_test).shape == (100,)


def test_predictions_scale_with_the_outputs() -> None:
    X, Y = waves(200, 0)
    small, large = (NeuralRegressor(**SMALL).fit(X, unit * Y).predict(X) / unit for unit in (1e-3, 1e3))
    assert np.allclose(small, large, atol=1e-3)


@pytest.mark.parametrize("model", [NeuralRegressor(**SMALL), NN(**SMALL), SPEN(energy_hidden=3, **SMALL)])
def test_predictions_shift_with_the_outputs(model: object) -> None:
    X, Y = waves(80, 0)
    centered, shifted = (clone(model).fit(X, offset + Y).predict(X) - offset for offset in (0.0, 1e5))
    assert np.allclose(centered, shifted, atol=1e-3)


@parametrize_with_checks([NeuralRegressor(hidden=(8,), dropout=0.0, learning_rate=0.02, epochs=30, batch_size=8)])
def test_the_checks_of_scikit_learn_pass(estimator: object, check: object) -> None:
    check(estimator)


def test_a_network_as_regressor_of_oel() -> None:
    X = np.random.default_rng(0).normal(size=(120, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] * X[:, 0] > 0]).astype(int)
    network = NeuralRegressor(**SMALL)
    model = OEL(output_kernel=Dice(), n_components=3, supervision=1.0, regressor=network).fit(X, Y)
    assert -model.score(X, Y) < 0.5
    assert model.embed(X).shape == (120, 3)
    plain = IOKR(output_kernel=Dice(), regressor=network).fit(X, Y)
    assert np.allclose(plain.embed(X) @ model.regression_.directions, model.embed(X), atol=1e-8)  # z = Gĥ


@pytest.mark.parametrize("model", [NN(), SPEN(), DVN(), NeuralRegressor()])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 10}, "hidden must be a sequence of widths"),
        ({"hidden": (0,)}, "each width of hidden must be"),
        ({"dropout": 1.0}, "dropout must be below 1"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"weight_decay": -1.0}, "weight_decay must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"patience": 0}, "patience must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"device": "nonsense"}, "device must be"),
        ({"validation_fraction": 0.0}, "validation_fraction"),
    ],
)
def test_errors_name_the_bad_parameter(model: object, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**changes).fit(np.eye(4), np.eye(4))


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (SPEN(), {"energy_hidden": 0}),
        (SPEN(), {"energy_learning_rate": 0.0}),
        (SPEN(), {"energy_epochs": 0}),
        (SPEN(), {"steps": 0}),
        (SPEN(), {"inference_rate": 1.5}),
        (DVN(), {"energy_hidden": []}),
        (DVN(), {"steps": 0}),
        (DVN(), {"inference_rate": 0.0}),
    ],
)
def test_errors_name_the_bad_parameter_of_an_energy(model: object, changes: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        clone(model).set_params(**changes).fit(np.eye(4), np.eye(4))


def test_torch_is_imported_only_when_a_network_is_used() -> None:
    code = "import sys, psilearn_lab.baselines as b; b.LR(); assert 'torch' not in sys.modules; b.NN()"
    subprocess.run([sys.executable, "-c", code], check=True)
