"""The global alignment kernel: widths, errors, and values by a loop over alignments."""

import re
from pathlib import Path

import numpy as np
import pytest

from psilearn import IOKR
from psilearn.kernels import Gaussian, GlobalAlignment

SERIES = [np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0]), np.array([1.0, 1.0, 1.0, 3.0])]


def sum_over_alignments(a, b, sigma):
    """Return K(a, b): each alignment ends at the last points and comes from one of three shorter ones."""
    if len(a) == 0 or len(b) == 0:
        return float(len(a) == len(b))
    e = np.exp(-np.sum((a[-1] - b[-1]) ** 2) / (2 * sigma**2))
    shorter = [(a[:-1], b), (a, b[:-1]), (a[:-1], b[:-1])]
    return e / (2 - e) * sum(sum_over_alignments(*pair, sigma) for pair in shorter)


@pytest.mark.parametrize("dimension", [None, 2])
def test_values_are_normalized_sums_over_alignments(dimension):
    pytest.importorskip("tslearn", reason="alignments need the extra psilearn[series]")
    series = SERIES if dimension is None else [np.stack([s, s**2], axis=1) for s in SERIES]
    K = np.array([[sum_over_alignments(a, b, 1.5) for b in series] for a in series])
    lengths = np.sqrt(np.diagonal(K))
    kernel = GlobalAlignment(1.5)
    np.testing.assert_allclose(kernel(series), K / lengths[:, None] / lengths, atol=1e-12)
    np.testing.assert_allclose(kernel(series[:1], series[1:]), kernel(series)[:1, 1:], atol=1e-12)
    assert np.linalg.eigvalsh(kernel.gram(series))[0] > -1e-12


def test_rows_of_an_array_are_series_of_one_length():
    pytest.importorskip("tslearn", reason="alignments need the extra psilearn[series]")
    rows = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]])
    kernel = GlobalAlignment().fit(rows)
    np.testing.assert_allclose(kernel(rows), kernel(list(rows)))


def test_widths_of_points_and_lengths():
    assert GlobalAlignment().fit([[0.0] * 9, [2.0] * 9]).sigma_ == pytest.approx(2 * 3)
    assert GlobalAlignment().fit([[1.0], [1.0]]).sigma_ == 1.0
    assert not hasattr(GlobalAlignment(2.0).fit(SERIES), "sigma_")


@pytest.mark.parametrize(
    ("kernel", "A", "message"),
    [
        (GlobalAlignment(1.0), [[1.0], [np.nan, 1.0]], r"A\[1\] contains NaN"),
        (GlobalAlignment(1.0), [[1.0], []], r"A\[1\] must have"),
        (GlobalAlignment(1.0), [["a"]], r"A\[0\] must be a dense array of real numbers"),
        (GlobalAlignment(1.0), [np.zeros((2, 2, 2))], r"A\[0\] must be a series of shape"),
        (GlobalAlignment(1.0), [[1.0], [[1.0, 2.0]]], r"series of points of one dimension; got dimensions \[1, 2\]"),
        (GlobalAlignment(1.0), [], "A is empty"),
    ],
)
def test_bad_series_are_named(kernel, A, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel.check(A)


def test_bad_widths_are_named():
    for sigma, message in (("wide", "sigma of GlobalAlignment"), ("median", "call fit"), (0.0, "sigma")):
        with pytest.raises(ValueError, match=message):
            GlobalAlignment(sigma)._width()
    with pytest.raises(ValueError, match="A has points of dimension 1, but B of dimension 2"):
        GlobalAlignment(1.0)([[1.0]], [[[1.0, 2.0]]])


def test_the_recipe_of_the_guide_runs():
    pytest.importorskip("tslearn", reason="alignments need the extra psilearn[series]")
    page = (Path(__file__).parents[2] / "docs" / "outputs.md").read_text("utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "GlobalAlignment" in block)
    names = {"np": np, "rng": np.random.default_rng(0), "IOKR": IOKR, "Gaussian": Gaussian}
    exec(code, names)
    lengths = [[len(series) for series in part] for part in (names["model"].predict(names["speeds"]), names["series"])]
    assert np.corrcoef(lengths)[0, 1] > 0.9
