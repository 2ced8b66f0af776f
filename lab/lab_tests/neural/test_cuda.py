"""Networks on a GPU: the same training, up to rounding; skipped without a GPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lab_tests.baselines.toys import labels, numbers  # noqa: E402
from psilearn_lab.baselines import DVN, NN, SPEN  # noqa: E402
from psilearn_lab.neural import NeuralRegressor  # noqa: E402

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")]
SMALL = {"hidden": (16,), "dropout": 0.0, "epochs": 25, "patience": 25, "batch_size": 16}


@pytest.mark.parametrize(
    "model",
    [
        NN(learning_rate=0.01, **SMALL),
        SPEN(learning_rate=0.01, energy_hidden=3, **SMALL),
        DVN(learning_rate=0.03, **SMALL),
    ],
)
def test_labels(model: NN) -> None:
    X, Y = labels(200)
    model.set_params(device="cuda").fit(X, Y)
    assert model.score(*labels(100, seed=1)) > 0.85
    assert model.predict_soft(X).dtype == np.float64
    assert np.all(np.isfinite(model.predict_topk(X, 2).distances))


@pytest.mark.parametrize(
    "model", [NN(learning_rate=0.01, **SMALL), SPEN(learning_rate=0.01, **SMALL), NeuralRegressor(**SMALL)]
)
def test_numbers(model: NN) -> None:
    X, Y = numbers(200)
    predicted = model.set_params(device="cuda").fit(X, Y).predict(X)
    assert np.mean((predicted - Y) ** 2) < 0.3 * np.mean(Y**2)


def test_a_trained_network_predicts_the_same_on_both_devices() -> None:
    X, Y = labels(200)
    model = NN(device="cuda", **SMALL).fit(X, Y)
    on_gpu = model.predict_soft(X)
    model.network_.network.to("cpu")
    model.network_.device = torch.device("cpu")
    assert np.allclose(model.predict_soft(X), on_gpu, atol=1e-4)


def test_a_deleted_model_frees_the_memory_of_the_gpu() -> None:
    X, Y = labels(200)
    SPEN(device="cuda", **SMALL).fit(X, Y).predict(X)  # leaves the workspaces of torch's own libraries
    before = torch.cuda.memory_allocated()
    model = SPEN(device="cuda", **SMALL).fit(X, Y)
    model.predict(X)
    del model
    assert torch.cuda.memory_allocated() == before
