"""The demo: complete handwritten digits, offline, on scikit-learn's bundled data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean, kernel_loss
from psilearn.model_selection import IOKRCV, KDECV, OELCV

WIDTH = 8  # pixels a line
N_LABELED = 150  # images whose upper and lower half are both known
N_UNLABELED = 450  # images of which only the lower half is known
OUTPUT_KERNEL = Gaussian(0.2)  # fixed: it is the loss
GRID: dict[str, Any] = {
    "input_kernels": [Gaussian(gamma) for gamma in (0.06, 0.2, 0.6)],
    "output_kernels": OUTPUT_KERNEL,
    "alphas": np.logspace(-4, -1.5, 6),
}
SIZES = [5, 8, 13, 20, 32, 50, 80]


@dataclass(frozen=True)
class Digits:
    """Digits cut in halves, pixels in [0, 1]."""

    X: Array  # (n, 32)  upper halves
    Y: Array  # (n, 32)  lower halves
    unlabeled: Array  # (m, 32)  lower halves alone
    X_test: Array
    Y_test: Array
    digits_test: Array


@dataclass(frozen=True)
class Row:
    """One line of the demo's table."""

    method: str
    loss: Mean
    chosen: dict[str, Any]
    n_components: int
    n_settings: int
    choose_seconds: float
    fit_seconds: float
    decode_seconds: float
    prediction: Array


def halves(seed: int) -> Digits:
    """Cut scikit-learn's 1797 digits into halves and split them at random."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.data))
    images = bunch.data[order] / 16.0
    upper, lower = images[:, : images.shape[1] // 2], images[:, images.shape[1] // 2 :]
    known = N_LABELED + N_UNLABELED
    return Digits(
        upper[:N_LABELED],
        lower[:N_LABELED],
        lower[N_LABELED:known],
        upper[known:],
        lower[known:],
        bunch.target[order][known:],
    )


def run(digits: Digits, seed: int, progress: Callable[[str], None]) -> Iterator[Row]:
    """Choose each method's parameters by validation on the labeled pairs, fit, and decode the test images once."""
    sizes = [p for p in SIZES if p <= N_LABELED]
    searches = {
        "IOKR": IOKRCV(**GRID, random_state=seed),
        "KDE": KDECV(**GRID, n_components=sizes, random_state=seed),
        "OEL₀": OELCV(**GRID, n_components=sizes, supervisions=[1.0], random_state=seed),
        "OEL": OELCV(**GRID, n_components=sizes, supervisions=[0.2, 0.5, 0.8], random_state=seed),
    }
    for name, search in searches.items():
        progress(f"{name}: choosing parameters")
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # edges of the grid: not what the demo is about
            search.fit(digits.X, digits.Y, unlabeled=digits.unlabeled)
        searched = perf_counter()
        model = search.best_estimator_.fit(digits.X, digits.Y, unlabeled=digits.unlabeled)
        fitted = perf_counter()
        prediction = model.predict(digits.X_test)
        decoded = perf_counter()
        yield Row(
            name,
            kernel_loss(digits.Y_test, prediction, OUTPUT_KERNEL),
            {key: model.get_params()[key] for key in ("input_kernel__gamma", "alpha")}
            | ({"supervision": model.supervision} if name == "OEL" else {}),
            model.n_components_,
            len(search.cv_results_["params"]),
            searched - start,
            fitted - searched,
            decoded - fitted,
            prediction,
        )
