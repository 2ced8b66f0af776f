"""The documented formulas of memory against the peak memory of a fresh process."""

import sys

import pytest

from psilearn_lab.benchmarks.memory import Shape, compare

# Of predicted / measured; ``python -m psilearn_lab.benchmarks memory`` measures more shapes in a narrower band.
BAND = (0.75, 1.3)
GRID = {"alphas": [1e-4, 1e-3], "cv": 3, "scoring": "mse"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("fit", Shape(n=1800, options={"n_components": 30})),
        ("fit", Shape(n=6000, options={"n_components": 30, "input_landmarks": 2000, "output_landmarks": 200})),
        ("predict", Shape(n=300, options={"n_components": 100}, n_queries=120_000)),
        ("search", Shape("IOKR", n=1250, options=GRID)),
    ],
    ids=["exact", "landmarks", "predict", "search"],
)
def test_the_peak_is_what_the_formula_says(kind, shape):
    _, predicted, measured, ratio = compare(kind, shape)
    assert predicted > 70
    assert BAND[0] < ratio < BAND[1], (predicted, measured)
