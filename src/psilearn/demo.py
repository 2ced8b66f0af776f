"""The demo: complete handwritten digits, offline, on scikit-learn's bundled data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import ShuffleSplit

from psilearn.estimators import IOKR, KDE, OEL
from psilearn.kernels import Gaussian
from psilearn.linalg import Array
from psilearn.metrics import Mean, kernel_loss

WIDTH = 8  # pixels a line
N_LABELED = 150  # images whose upper and lower half are both known
N_UNLABELED = 700  # images of which only the lower half is known


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
    """Choose each method's parameters on the labeled pairs alone, fit, and decode the test images once.

    λ and the input width are chosen for IOKR and kept for the others; p, then c, are chosen on top. The output kernel
    is fixed: it is the loss.
    """
    output_kernel = Gaussian(0.2)
    splits = list(ShuffleSplit(3, test_size=0.2, random_state=seed).split(digits.X))

    def choose(model: Any, name: str, **grid: list[Any]) -> Any:
        """Return the model with the best of the grid's values, one parameter after the other."""
        for parameter, values in grid.items():
            progress(f"{name}: choosing {parameter}")
            models = [clone(model).set_params(**{parameter: value}) for value in values]
            model = models[int(np.argmax([_validate(candidate, digits, splits) for candidate in models]))]
        return model

    base = choose(
        IOKR(Gaussian(0.1), output_kernel),
        "IOKR",
        input_kernel__gamma=[0.01, 0.03, 0.1, 0.3],
        alpha=[1e-5, 1e-4, 1e-3, 1e-2],
    )
    shared = {"input_kernel": base.input_kernel, "output_kernel": output_kernel, "alpha": base.alpha}
    p = [8, 16, 32, 64]
    models = {
        "IOKR": lambda: base,
        "KDE": lambda: choose(KDE(**shared), "KDE", n_components=p),
        "OEL₀": lambda: choose(OEL(**shared, supervision=1.0), "OEL₀", n_components=p),
        "OEL": lambda: choose(OEL(**shared), "OEL", n_components=p, supervision=[0.1, 0.3, 0.5, 0.7, 0.9]),
    }
    for name, chosen in models.items():
        model = chosen()
        progress(f"{name}: fitting")
        start = perf_counter()
        model.fit(digits.X, digits.Y, unlabeled=digits.unlabeled)
        fitted = perf_counter()
        prediction = model.predict(digits.X_test)
        decoded = perf_counter()
        yield Row(
            name,
            kernel_loss(digits.Y_test, prediction, output_kernel),
            {key: model.get_params()[key] for key in ("input_kernel__gamma", "alpha")}
            | ({"supervision": model.supervision} if name == "OEL" else {}),
            model.n_components_,
            fitted - start,
            decoded - fitted,
            prediction,
        )


def _validate(model: Any, digits: Digits, splits: list[Any]) -> float:
    scores = [
        clone(model)
        .fit(digits.X[train], digits.Y[train], unlabeled=digits.unlabeled)
        .score(digits.X[held], digits.Y[held])
        for train, held in splits
    ]
    return float(np.mean(scores))
