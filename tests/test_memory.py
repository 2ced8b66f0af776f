"""The documented formulas against the peak memory of a fresh process, and the checks before fits and searches."""

import gc
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest

from psilearn import IOKR, KDECV, OEL, OELCV, Landmarks
from psilearn.decoding import SharedCandidates
from psilearn.estimators.fit_memory import suggestion
from psilearn.kernels import Dice, Gaussian, Linear
from psilearn.memory import _fit_sizes, fit_bytes, predict_bytes, search_bytes

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")


@pytest.fixture
def available(monkeypatch):
    """Set the memory that the process may allocate."""

    def limit(n_bytes):
        monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: n_bytes)

    return limit


def pairs(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)), rng.random((n, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["set input_landmarks=", "set output_landmarks="]),
        ({"input_landmarks": 200}, ["lower input_landmarks to ", "set output_landmarks="]),
        ({"output_landmarks": Landmarks(200, "uniform")}, ["set input_landmarks=", "lower output_landmarks to "]),
    ],
)
def test_a_fit_that_cannot_succeed_suggests_numbers_that_do(options, words, available):
    X, Y = pairs(300)
    kernels = Gaussian(5.0), Gaussian(50.0)
    model = OEL(*kernels, alpha=1e-3, n_components=5, **options)
    free = 1_300_000  # choosing 100 pivoted landmarks among 300 outputs takes 1.1 MB
    available(free)
    assert fit_bytes(300, 300, n_components=5, **options) > free
    with pytest.raises(MemoryError, match=rf"only {free:,} bytes are available") as error:
        model.fit(X, Y)
    message = str(error.value)
    assert message.startswith("This fit (n = 300 pairs, d = 300 distinct outputs")
    for word in words:
        assert word in message.replace("Set", "set").replace("Lower", "lower")
    for name, number in re.findall(r"(input_landmarks|output_landmarks)(?:=| to )(\d+)", message):
        method = {"input_landmarks": "uniform", "output_landmarks": "pivoted"}[name]
        method = options[name].method if isinstance(options.get(name), Landmarks) else method
        model.set_params(**{name: Landmarks(int(number), method)})
    model.fit(X, Y)  # with the suggested numbers


def test_the_whole_peak_is_checked_and_not_its_first_matrix(available):
    X, Y = pairs(300)
    peak = fit_bytes(300, 300, n_components=5)
    assert peak > 3 * 8 * 300**2
    available(peak - 1)  # the Gram matrices alone would fit
    with pytest.raises(MemoryError, match="This fit"):
        OEL(Gaussian(5.0), Gaussian(50.0), n_components=5).fit(X, Y)
    available(peak + 20_000)  # and the outputs themselves
    OEL(Gaussian(5.0), Gaussian(50.0), n_components=5).fit(X, Y)


def test_float32_is_suggested_where_it_is_enough():
    wide = _fit_sizes(200_000, 200_000, 100, Landmarks(100), 100, 0.5, "float64", None, None, False)
    assert 'set dtype="float32"' in suggestion(wide, 130_000_000)
    assert "No number of landmarks is enough" in suggestion(wide, 1000)


def test_outputs_of_a_low_rank_are_not_refused(available):
    rng = np.random.default_rng(0)
    X, Y = rng.random((1500, 3)), rng.random((1500, 2))
    available(45_000_000)  # 18 MB per Gram matrix; with full rank the fit would take 108 MB
    assert fit_bytes(1500, 1500, n_components=2) > 100_000_000
    assert fit_bytes(1500, 1500, n_components=2, rank=2) < 45_000_000
    OEL(Gaussian(5.0), Linear(), alpha=1e-3, n_components=2).fit(X, Y)
    with pytest.raises(MemoryError, match="This fit"):
        OEL(Gaussian(5.0), Gaussian(1000.0), n_components=2).fit(X, Y)


def test_outputs_that_are_not_stored_take_no_memory(available):
    X, Y = pairs(300)
    U = np.random.default_rng(1).random((60_000, 2))
    options = {"alpha": 1e-3, "n_components": 8, "input_landmarks": 20, "output_landmarks": Landmarks(30, "uniform")}
    available(9_000_000)
    with pytest.raises(MemoryError, match=r"in the (coordinates of the|embedded) outputs"):
        OEL(Gaussian(5.0), Gaussian(50.0), **options).fit(X, Y, U)
    OEL(Gaussian(5.0), Gaussian(50.0), **options).fit(X, Y, iter([U]))


@pytest.mark.parametrize(
    ("search", "sizes"),
    [
        (OELCV(Gaussian(5.0), Gaussian(50.0), alphas=[1e-3, 1e-2], n_components=[5], cv=3), {"n_components": 5}),
        (
            KDECV(Gaussian(5.0), [Gaussian(50.0), Gaussian(60.0)], alphas=[1e-3, 1e-2], n_components=[5], cv=3),
            {"n_components": 5, "supervisions": [0.0], "n_output_kernels": 2},
        ),
    ],
)
def test_a_search_that_cannot_succeed_is_not_started(search, sizes, available):
    X, Y = pairs(300)
    search.set_params(scoring="mse" if len(sizes) == 1 else "top_1")
    supervisions = {"supervisions": search.supervisions} if isinstance(search, OELCV) else {}
    arguments = {"n_alphas": 2, "validation_share": 1 / 3, "decoded": len(sizes) > 1, **supervisions, **sizes}
    needed = search_bytes(300, 300, **arguments)
    available(needed - 1)
    with pytest.raises(MemoryError, match=r"This search \(n = 300 pairs, 200 of them in a training split") as error:
        search.fit(X, Y)
    assert "half of them: " in str(error.value) and f"{needed - 1:,} bytes are available" in str(error.value)
    assert not hasattr(search, "cv_results_")


def test_the_formulas_grow_with_what_they_depend_on():
    base = fit_bytes(3000, 3000, n_components=50, rank=2999)
    assert fit_bytes(3000, 3000, n_components=50) < base  # without coordinates
    assert fit_bytes(3000, 3000, n_components=50, rank=2999, supervision=0.0) < base
    assert fit_bytes(3000, 3000, n_components=50, rank=100) < base / 3
    assert fit_bytes(3000, 3000, supervision=None) < base
    assert fit_bytes(3000, 3000, n_components=3000) > base
    assert predict_bytes(10_000, 50, n_anchors=5000) < predict_bytes(20_000, 50, n_anchors=5000)
    search = search_bytes(3000, 500, n_alphas=5, n_components=50)
    assert search_bytes(3000, 500, n_alphas=5, n_components=50, n_jobs=4) > 3 * search
    assert search_bytes(3000, 500, n_alphas=5, n_components=50, n_output_kernels=5) > search


@on_linux
def test_a_limit_of_the_address_space_is_reported_before_anything_is_allocated():
    script = """
import resource
import numpy as np
from psilearn import OEL
from psilearn.kernels import Gaussian
rng = np.random.default_rng(0)
X, Y = rng.random((4000, 3)), rng.random((4000, 2))
OEL(Gaussian(5.0), Gaussian(50.0), n_components=5).fit(X[:50], Y[:50])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = int(status["VmSize"].split()[0]) * 1024 + 200_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    OEL(Gaussian(5.0), Gaussian(50.0), n_components=5).fit(X, Y)
except MemoryError as error:
    peak = dict(line.split(":", 1) for line in open("/proc/self/status"))["VmPeak"]
    print(limit - int(peak.split()[0]) * 1024)
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    unused, message = run.stdout.splitlines()
    assert message.startswith("This fit (n = 4,000 pairs") and "input_landmarks=" in message
    assert int(unused) > 50_000_000  # the Gram matrices alone would take 128 MB each


def test_dice_outputs_with_the_default_memory_are_fitted():
    rng = np.random.default_rng(0)
    bits = (rng.random((40, 6)) < 0.5).astype(float)
    bits[:, 0] = 1
    assert IOKR(Gaussian(1.0), Dice()).fit(rng.random((40, 3)), bits).predict(rng.random((2, 3))).shape == (2, 6)


def test_distinct_candidates_are_released_without_a_garbage_collection():
    candidates = SharedCandidates(np.eye(3))
    assert candidates.distinct() is candidates
    reference = weakref.ref(candidates)
    gc.disable()
    try:
        del candidates
        assert reference() is None
    finally:
        gc.enable()


def test_landmarks_are_suggested_for_outputs_of_low_rank():
    sizes = _fit_sizes(200_000, 200_000, None, None, 5, 0.5, "float64", 5, None, False)
    advice = suggestion(sizes, 8 * 2**30)
    assert "output_landmarks=" in advice and "No number" not in advice


@pytest.mark.parametrize("rank", [-(10**9), -1, 0.5, "x", None])
def test_the_rank_of_a_prediction_must_not_be_negative(rank):
    with pytest.raises(ValueError, match="rank must be an integer ≥ 0"):
        predict_bytes(10, 2, rank=rank)
