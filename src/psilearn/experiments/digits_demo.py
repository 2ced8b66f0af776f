"""The demo: complete handwritten digits, offline, on the data that scikit-learn includes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from psilearn import IOKRCV, KDECV, OELCV
from psilearn.experiments.experiment import Array, Log
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean, kernel_loss

WIDTH = 8  # pixels per image line
N_LABELED = 150  # images with both halves
N_UNLABELED = 450  # images with the lower half only
N_SPLITS = 5  # the default of the searches
OUTPUT_KERNEL = Gaussian(0.2)  # fixed, because it defines the loss
GRID: dict[str, Any] = {
    "input_kernels": [Gaussian(gamma) for gamma in (0.06, 0.2, 0.6)],
    "output_kernels": OUTPUT_KERNEL,
    "alphas": np.logspace(-4, -1.5, 6),
}
SIZES = [5, 8, 13, 20, 32, 50, 80]


@dataclass(frozen=True)
class DigitHalves:
    """Upper and lower halves of digits, with pixels in [0, 1]."""

    X: Array  # (n, 32)  upper halves
    Y: Array  # (n, 32)  lower halves
    unlabeled: Array  # (m, 32)  lower halves without upper halves
    X_test: Array
    Y_test: Array
    digits_test: Array


@dataclass(frozen=True)
class DemoResult:
    """The test loss of a method, its parameters, its times and its predictions."""

    method: str
    loss: Mean
    chosen: dict[str, float]
    n_components: int
    n_settings: int
    choose_seconds: float
    fit_seconds: float
    decode_seconds: float
    prediction: Array


def load_halves(seed: int) -> DigitHalves:
    """Cut scikit-learn's 1797 digits into halves and split them at random."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.data))
    images = bunch.data[order] / 16.0
    upper, lower = images[:, : images.shape[1] // 2], images[:, images.shape[1] // 2 :]
    n_known = N_LABELED + N_UNLABELED
    return DigitHalves(
        upper[:N_LABELED],
        lower[:N_LABELED],
        lower[N_LABELED:n_known],
        upper[n_known:],
        lower[n_known:],
        bunch.target[order][n_known:],
    )


def run(digits: DigitHalves, seed: int, log: Log) -> Iterator[DemoResult]:
    """Choose each method's parameters by validation on the labeled pairs, fit, and decode the test images once."""
    sizes = [p for p in SIZES if p <= N_LABELED]
    searches = {
        "IOKR": IOKRCV(**GRID, random_state=seed),
        "KDE": KDECV(**GRID, n_components=sizes, random_state=seed),
        "OEL₀": OELCV(**GRID, n_components=sizes, supervisions=[1.0], random_state=seed),
        "OEL": OELCV(**GRID, n_components=sizes, supervisions=[0.2, 0.5, 0.8], random_state=seed),
    }
    for method, search in searches.items():
        log(f"{method}: choosing parameters")
        yield _run_method(method, search, digits)


def _run_method(method: str, search: IOKRCV | KDECV | OELCV, digits: DigitHalves) -> DemoResult:
    """Choose, fit and test one method."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about parameters at the edge of the grid
        search.fit(digits.X, digits.Y, unlabeled=digits.unlabeled)
    searched = perf_counter()
    model = search.best_estimator_.fit(digits.X, digits.Y, unlabeled=digits.unlabeled)
    fitted = perf_counter()
    prediction = model.predict(digits.X_test)
    decoded = perf_counter()
    names = ["input_kernel__gamma", "alpha", *(["supervision"] if method == "OEL" else [])]
    return DemoResult(
        method,
        loss=kernel_loss(digits.Y_test, prediction, OUTPUT_KERNEL),
        chosen={name: model.get_params()[name] for name in names},
        n_components=model.n_components_,
        n_settings=len(search.cv_results_["params"]),
        choose_seconds=searched - start,
        fit_seconds=fitted - searched,
        decode_seconds=decoded - fitted,
        prediction=prediction,
    )
