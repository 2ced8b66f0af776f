"""A fit whose two sides are computed at the same time equals one that computes them one after the other."""

import gc
import weakref
from threading import Event, current_thread, main_thread

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn import config_context, get_config  # noqa: E402

from psilearn import IOKR, OEL, Landmarks  # noqa: E402
from psilearn._backend import Compute, side_streams  # noqa: E402
from psilearn._utils.progress import observe_steps, show_progress  # noqa: E402
from psilearn.estimators import fit_streams, output_kernel_regression  # noqa: E402
from psilearn.kernels import Gaussian, Laplacian, Linear  # noqa: E402
from psilearn.landmarks.features import LandmarkGram  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 6))
Y = np.round(X[:, :3] + 0.2 * RNG.standard_normal((300, 3)), 1)
KERNELS = Gaussian(), Linear()
U = np.round(RNG.standard_normal((100, 3)), 1)


@pytest.fixture
def overlapping(monkeypatch):
    """Let every fit compute both sides at the same time; returns the threads that computed an output side."""
    threads = []
    output_side = output_kernel_regression.FitPlan.output_side

    def noted(self, *arguments):
        threads.append(current_thread())
        return output_side(self, *arguments)

    monkeypatch.setattr(output_kernel_regression.FitPlan, "output_side", noted)
    monkeypatch.setattr(output_kernel_regression, "overlaps", lambda *arguments: True)
    return threads


def make(device, **options):
    return OEL(Gaussian(0.2), Gaussian(0.5), alpha=1e-3, n_components=8, device=device, **options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("supervision", "unlabeled"), [(1.0, None), (0.5, U), (0.0, None)])
def test_overlapped_fits_equal_others(device, supervision, unlabeled, overlapping, monkeypatch):
    options = {"supervision": supervision, "input_landmarks": 80, "output_landmarks": 60}
    found = make(device, **options).fit(X, Y, unlabeled)
    assert overlapping and overlapping[-1] is not main_thread()
    monkeypatch.setattr(output_kernel_regression, "overlaps", lambda *arguments: False)
    expected = make(device, **options).fit(X, Y, unlabeled)
    assert overlapping[-1] is main_thread()
    np.testing.assert_array_equal(found.embedding_.landmarks, expected.embedding_.landmarks)
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(found.predict(X[:50]), expected.predict(X[:50]))
    assert found.approximation_error_ == pytest.approx(expected.approximation_error_)
    np.testing.assert_allclose(
        found.partial_fit(U).eigenvalues_, expected.partial_fit(U).eigenvalues_, rtol=1e-10
    )  # what it continues from is the same


def test_errors_of_the_output_side_come_first_if_it_was_started(overlapping, monkeypatch):
    def fail(side):
        def raise_error(*arguments, **options):
            raise ValueError(f"the {side} side")

        return raise_error

    model = make("cpu", input_landmarks=80, output_landmarks=60)
    monkeypatch.setattr(output_kernel_regression.NystromRidge, "regress", fail("input"))
    with pytest.raises(ValueError, match="the input side"):
        model.fit(X, Y)
    monkeypatch.setattr(output_kernel_regression.FitPlan, "output_side", fail("output"))
    with pytest.raises(ValueError, match="the output side"):
        model.fit(X, Y)
    monkeypatch.setattr(output_kernel_regression.NystromRidge, "fit", fail("input"))
    with pytest.raises(ValueError, match="the input side"):
        model.fit(X, Y)  # before the output side was started
    assert not hasattr(model, "embedding_")


def test_the_output_side_starts_when_the_kernel_of_input_landmarks_is_known(overlapping, monkeypatch):
    started, prepared = {}, []
    compute_gram, prepare = LandmarkGram.of, fit_streams.PendingTargets.prepare

    def noted_gram(kernel, landmarks, side, *arguments, **options):
        gram = compute_gram(kernel, landmarks, side, *arguments, **options)
        started[side] = len(overlapping)
        return gram

    def noted_prepare(self, rows):
        prepared.append(rows)
        prepare(self, rows)

    monkeypatch.setattr(LandmarkGram, "of", noted_gram)
    monkeypatch.setattr(fit_streams.PendingTargets, "prepare", noted_prepare)
    make("cpu", input_landmarks=80, output_landmarks=60).fit(X, Y)
    assert started == {"input": 0, "output": 1}
    assert prepared == [slice(0, 300)]


def test_consumed_results_are_not_kept():
    device = torch.device("cpu")
    with Compute.of("float64", device).active(), side_streams(device) as submit:
        results = [submit(lambda: np.zeros(10)) for _ in range(3)]
        found = [weakref.ref(result.result()) for result in results]
        del results
        submit(lambda: None).result()
        submit(lambda: None).result()
        gc.collect()
        assert [reference() for reference in found] == [None] * 3


def test_targets_are_waited_for():
    release = Event()

    def compute():
        release.wait(20)
        return type("Side", (), {"rank": 3, "labeled": Y})()

    with Compute.of("float64", torch.device("cpu")).active(), side_streams(torch.device("cpu")) as submit:
        side = submit(compute)
        targets = fit_streams.PendingTargets(lambda: side, len(Y), 7, submit)
        assert targets.max_width == 7 and not targets.is_ready(slice(0, 4))
        release.set()
        assert targets.shape == (300, 3)
        np.testing.assert_array_equal(targets[2:5], Y[2:5])


def test_factors_that_were_prepared_are_not_computed_again():
    computed = []

    class Labeled:
        def factor(self, rows):
            computed.append((rows.start, rows.stop))
            return torch.from_numpy(Y[rows])

    side = type("Side", (), {"labeled": Labeled()})()
    with Compute.of("float64", torch.device("cpu")).active(), side_streams(torch.device("cpu")) as submit:
        pending = submit(lambda: side)
        targets = fit_streams.PendingTargets(lambda: pending, len(Y), 7, submit)
        targets.prepare(slice(0, 4))
        targets.prepare(slice(4, 8))
        for rows in (slice(0, 4), slice(4, 6), slice(6, 8)):  # the second block was halved
            np.testing.assert_array_equal(targets.factor(rows).numpy(), Y[rows])
    assert computed in ([(0, 4), (4, 8), (4, 6), (6, 8)], [(0, 4), (4, 6), (6, 8)])  # the second one may be cancelled


def test_a_factor_without_memory_ahead_is_computed_when_it_is_needed():
    computed = []

    class Labeled:
        def factor(self, rows):
            computed.append(rows)
            if len(computed) == 1:
                raise torch.cuda.OutOfMemoryError("no memory")
            return torch.from_numpy(Y[rows])

    side = type("Side", (), {"labeled": Labeled()})()
    with Compute.of("float64", torch.device("cpu")).active(), side_streams(torch.device("cpu")) as submit:
        pending = submit(lambda: side)
        targets = fit_streams.PendingTargets(lambda: pending, len(Y), 7, submit)
        targets.prepare(slice(0, 4))
        np.testing.assert_array_equal(targets.factor(slice(0, 4)).numpy(), Y[:4])
    assert len(computed) == 2


def test_an_interrupt_is_not_replaced_and_settings_are_those_of_the_caller():
    device, seen = torch.device("cpu"), []
    with (
        pytest.raises(KeyboardInterrupt),
        config_context(working_memory=7),
        Compute.of("float64", device).active(),
        side_streams(device) as submit,
    ):
        submit(lambda: seen.append(get_config()["working_memory"])).result()
        submit(lambda: 1 / 0)
        raise KeyboardInterrupt
    assert seen == [7]


def gpu(monkeypatch, free=2**40):
    monkeypatch.setattr(Compute, "on_gpu", True)
    monkeypatch.setattr(Compute, "available_bytes", lambda self: free)
    return Compute.of("float32", torch.device("cpu"))


def overlaps(compute, kernels=KERNELS, unlabeled=None, **options):
    options = {"input_landmarks": 80, "output_landmarks": 60, **options}
    plan = OEL(**options)._check_parameters()
    return fit_streams.overlaps(plan, kernels, (Y, X), unlabeled, compute)


def test_only_fits_that_gain_from_it_overlap(monkeypatch):
    assert not overlaps(Compute.of("float32", torch.device("cpu")))
    compute = gpu(monkeypatch)
    assert overlaps(compute)
    assert not overlaps(compute, input_landmarks=None)
    assert not overlaps(compute, output_landmarks=None)
    assert not overlaps(compute, kernels=(Laplacian(), Linear()))
    assert not overlaps(compute, input_landmarks=Landmarks(80, random_state=np.random.RandomState(0)))
    with observe_steps(lambda description: None):
        assert not overlaps(compute)
    with show_progress(True):
        assert not overlaps(compute)
    assert not overlaps(gpu(monkeypatch, free=2**20))


@pytest.mark.cuda
def test_large_fits_overlap_on_a_gpu(monkeypatch):
    seen = []
    compute = output_kernel_regression.compute_overlapped
    monkeypatch.setattr(
        output_kernel_regression, "compute_overlapped", lambda *arguments: seen.append(1) or compute(*arguments)
    )
    options = {"input_landmarks": 80, "output_landmarks": 60}
    model = IOKR(Gaussian(0.2), Gaussian(0.5), device="cuda", **options).fit(X, Y)
    assert seen == [1]
    np.testing.assert_array_equal(model.predict(X), IOKR(Gaussian(0.2), Gaussian(0.5), **options).fit(X, Y).predict(X))
