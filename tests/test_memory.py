"""The documented formulas against the peak memory of a fresh process."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context

from psilearn import OEL
from psilearn.kernels import Gaussian
from psilearn.memory import fit_bytes, predict_bytes

SCRIPT = """
import json, sys
import numpy as np
from sklearn import set_config
from psilearn import OEL
from psilearn.kernels import Dice, Gaussian

task = json.loads(sys.argv[1])
set_config(working_memory=task["working_memory"])
rng = np.random.default_rng(0)

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

def resident():
    return status("VmRSS")

def peak():
    return status("VmHWM")  # getrusage would begin with the peak of the process that started this one

def bits(n):
    return (rng.random((n, 60), dtype=np.float32) < 0.3).astype(np.uint8)

def model(**options):
    return OEL(Gaussian(3.0), Gaussian(0.1), alpha=1e-3, n_components=task["n_components"], supervision=0.5, **options)

options = task["options"]
model(**{name: 50 if "landmarks" in name else value for name, value in options.items()}).fit(
    rng.random((300, 10)), bits(300)
).predict(rng.random((3, 10)))  # what is loaded and kept on first use
X, Y, U = rng.random((task["n"], 10)), bits(task["n"]), bits(task["m"]) if task["m"] else None
before = resident()
fitted = model(**options).fit(X, Y, unlabeled=U)
fit = peak() - before
answer = {"fit": fit, "n_outputs": len(fitted.candidates_), "predict": None}
if task["queries"]:
    Q, C = rng.random((task["queries"], 10)), bits(task["candidates"])
    before = resident()
    if peak() - before < 2e8:  # else the peak of fit hides that of predict
        fitted.predict_topk(Q, 5, candidates=C)
        answer["predict"] = peak() - before
print(json.dumps(answer))
"""


def measure(n, m=0, n_components=50, working_memory=32, queries=0, candidates=0, **options):
    task = {
        "n": n,
        "m": m,
        "n_components": n_components,
        "working_memory": working_memory,
        "queries": queries,
        "candidates": candidates,
        "options": options,
    }
    run = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(task)], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


SLACK = 60e6  # threads' buffers, the allocator, code that is loaded late

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")


@pytest.mark.parametrize(
    ("n", "m", "options"),
    [
        (2500, 0, {}),
        (1500, 2500, {}),
        (12000, 0, {"input_landmarks": 3000, "output_landmarks": 300}),
        (12000, 0, {"input_landmarks": 3000, "output_landmarks": 300, "dtype": "float32"}),
        (2000, 60000, {"input_landmarks": 500, "output_landmarks": 1500, "dtype": "float32"}),
        (2000, 30000, {"input_landmarks": 500, "output_landmarks": 1500}),
        (2000, 150000, {"input_landmarks": 100, "output_landmarks": 800}),
    ],
)
def test_a_fit_takes_what_the_formula_says(n, m, options):
    measured = measure(n, m, **options)
    with config_context(working_memory=32):
        expected = fit_bytes(n, measured["n_outputs"], n_components=50, **options)
    print(measured["fit"] / 1e6, expected / 1e6)
    assert measured["fit"] < 1.1 * expected + SLACK
    assert measured["fit"] > 0.4 * expected - SLACK  # a formula that promises anything is none


def test_a_prediction_takes_what_the_formula_says():
    measured = measure(800, queries=20000, candidates=30000, output_landmarks=200, input_landmarks=200)
    with config_context(working_memory=32):
        expected = predict_bytes(20000, 50, k=5)
    print(measured["predict"] / 1e6, expected / 1e6)
    assert measured["predict"] < 1.1 * expected + SLACK


@pytest.mark.parametrize(
    ("options", "what", "remedy"),
    [
        ({}, r"The Gram matrix of Gaussian\(\) over 300 objects", "Set output_landmarks"),
        ({"output_landmarks": 10}, r"The Gram matrix of Gaussian\(\) over 300 objects", "Set input_landmarks"),
        ({"output_landmarks": 10, "input_landmarks": 200}, "The Gram matrix of Gaussian", "Lower input_landmarks"),
        (
            {"output_landmarks": 200, "input_landmarks": 10},
            "The Gram matrix of Gaussian",
            "Lower output_landmarks",
        ),
    ],
)
def test_a_fit_that_cannot_succeed_says_what_to_change(options, what, remedy, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 100_000)
    with pytest.raises(MemoryError, match=what) as e:
        OEL(**options).fit(rng.random((300, 3)), rng.random((300, 2)))
    assert remedy in str(e.value) and "bytes" in str(e.value)


def test_regression_and_candidates_that_do_not_fit_are_refused(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y, U = rng.random((300, 3)), rng.random((300, 2)), rng.random((4000, 2))
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 100_000)
    with pytest.raises(MemoryError, match="Nyström regression with 70 landmarks onto 30 output coordinates"):
        OEL(Gaussian(5.0), Gaussian(50.0), input_landmarks=70, output_landmarks=30).fit(X, Y)
    with pytest.raises(MemoryError, match="The embedding of the known outputs"):
        OEL(Gaussian(5.0), Gaussian(50.0), alpha=1e-3, n_components=8, input_landmarks=20, output_landmarks=30).fit(
            X, Y, U
        )
    OEL(Gaussian(5.0), Gaussian(50.0), alpha=1e-3, n_components=8, input_landmarks=20, output_landmarks=30).fit(
        X, Y, iter([U])
    )
