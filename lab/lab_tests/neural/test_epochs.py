"""Training, early stopping, batches and random seeds."""

import numpy as np
import pytest
import sklearn
from scipy import sparse

torch = pytest.importorskip("torch")

from psilearn_lab.neural.epochs import Schedule, train  # noqa: E402
from psilearn_lab.neural.parameters import fixed_seed, resolve_device  # noqa: E402
from psilearn_lab.neural.perceptron import Standardizer, TensorRows  # noqa: E402

CPU = torch.device("cpu")


def train_line(schedule: Schedule, validation: list[float] | None = None) -> tuple:
    """Train y = wx on three points with scripted validation errors; return history, weight, weights when validated."""
    torch.manual_seed(0)
    network = torch.nn.Linear(1, 1, bias=False)
    x = torch.tensor([[1.0], [2.0], [3.0]])
    weights, errors = [], iter(validation or [])

    def loss(rows: np.ndarray) -> "torch.Tensor":
        return (network(x[rows]) - 2 * x[rows]).square().mean()

    def validate() -> float:
        assert not network.training
        weights.append(float(network.weight.detach()))
        return next(errors)

    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    rng = np.random.default_rng(0)
    history = train(network, optimizer, loss, 3, schedule, rng, "line", validate if validation else None)
    return history, float(network.weight.detach()), weights


def test_the_best_weights_are_kept_and_patience_ends_training() -> None:
    history, weight, weights = train_line(Schedule(20, 2, patience=2), [5.0, 4.0, 3.0, 3.5, 3.2, 1.0])
    assert history.best_epoch == 2
    assert history.validation == [4.0, 3.0, 3.5, 3.2]
    assert len(history.training) == 4
    assert weight == weights[2]


def test_the_initial_weights_may_be_the_best() -> None:
    history, weight, weights = train_line(Schedule(2, 2, patience=5), [1.0, 4.0, 3.0])
    assert history.best_epoch == 0
    assert weight == weights[0]


def test_without_validation_all_epochs_run() -> None:
    history, weight, _ = train_line(Schedule(200, 3))
    assert history.best_epoch == 200
    assert weight == pytest.approx(2, abs=1e-3)
    assert np.all(np.diff(history.training) < 1e-9)


def test_a_loss_that_is_not_finite_raises() -> None:
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), 1.0)

    def loss(rows: np.ndarray) -> "torch.Tensor":
        return network(torch.full((1, 1), torch.inf)).sum()

    with pytest.raises(FloatingPointError, match="not finite in epoch 1"):
        train(network, optimizer, loss, 1, Schedule(3, 1), np.random.default_rng(0), "it")


@pytest.mark.parametrize("memory", [1024, 1e-6])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_do_not_depend_on_the_working_memory(form: object, memory: float) -> None:
    A = np.random.default_rng(0).normal(size=(11, 3))
    with sklearn.config_context(working_memory=memory):
        rows = TensorRows(form(A), CPU, Standardizer(form(A)))
    scaled = (A - A.mean(axis=0)) / A.std(axis=0)
    assert (rows._tensor is None) == (memory < 1)
    assert np.allclose(rows[np.array([3, 0, 3])], scaled[[3, 0, 3]], atol=1e-5)
    assert np.allclose(rows[2:7], scaled[2:7], atol=1e-5)
    assert len(rows) == 11


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "A",
    [
        np.random.default_rng(0).integers(0, 200, size=(50, 2)).astype(np.uint8),
        (1000 + np.random.default_rng(0).normal(size=(60_000, 2))).astype(np.float32),
        1.7e9 + np.random.default_rng(0).uniform(-300, 300, size=(50, 2)),
    ],
    ids=["small integers", "single precision", "timestamps"],
)
def test_the_standardizer_computes_in_double_precision(A: np.ndarray, form: object) -> None:
    standardizer, exact = Standardizer(form(A)), A.astype(np.float64)
    assert np.allclose(standardizer.mean, exact.mean(axis=0), rtol=1e-12)
    assert np.allclose(standardizer.deviation, exact.std(axis=0), rtol=1e-6)


def test_a_constant_column_is_only_centered() -> None:
    A = np.column_stack([np.full(5, 3.0), np.arange(5.0)])
    assert np.array_equal(Standardizer(A)(A)[:, 0], np.zeros(5))
    assert np.isfinite(Standardizer(A)(A)).all()


def test_the_random_state_of_torch_is_restored() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    draws = []
    for _ in range(2):
        with fixed_seed(5, CPU) as rng:
            draws.append((float(torch.rand(1)), rng.random()))
    assert draws[0] == draws[1]
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize("device", ["nonsense", 3.5])
def test_an_unknown_device_raises(device: object) -> None:
    with pytest.raises(ValueError, match="device must be None, 'cpu' or 'cuda'"):
        resolve_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_raises() -> None:
    with pytest.raises(ValueError, match="torch finds none"):
        resolve_device("cuda")
