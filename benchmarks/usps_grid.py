"""The paper's grid on USPS, 25,920 settings over five splits, on the device and in NumPy side by side.

1000 pairs, 6000 lower halves alone; 6 widths × 12 λ × 12 p × 6 c × 5 splits, scored in closed form. ``usps_path`` goes
on from there to the test set.
"""

import warnings
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit

from benchmarks.report import Run
from psilearn import OELCV
from psilearn._backend import on_host
from psilearn.datasets import load_usps
from psilearn.kernels import Gaussian

NEEDS = ("usps/usps.h5",)
GAMMAS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32]
ALPHAS = np.logspace(-6.5, -1, 12)
SIZES = np.unique(np.geomspace(8, 128, 12).round().astype(int))
SUPERVISIONS = [0.0, 0.15, 0.3, 0.5, 0.75, 1.0]


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds, and how far the scores of both are apart."""
    usps = load_usps()
    pairs, alone = usps.train[: run.size(1000, 100)], usps.train[-run.size(6000, 300) :]
    X, Y, U = usps.X[pairs], usps.Y[pairs], usps.Y[alone]
    grid = (
        [Gaussian(gamma) for gamma in run.size(GAMMAS, GAMMAS[2:3])],
        Gaussian(0.05),
        run.size(ALPHAS, ALPHAS[4:6]),
        run.size(SIZES, SIZES[:3]),
        run.size(SUPERVISIONS, SUPERVISIONS[:3]),
    )

    def search() -> tuple[OELCV, float]:
        start = perf_counter()
        found = OELCV(*grid, cv=ShuffleSplit(5, test_size=0.2, random_state=0), refit=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of edges
            found.fit(X, Y, unlabeled=U)
        return found, perf_counter() - start

    with on_host():
        ours, seconds = search()
    settings = 5 * len(ours.cv_results_["params"])
    figures: dict[str, Any] = {"settings": settings, "NumPy": seconds}
    rows = [["NumPy", seconds, ""]]
    if run.device is not None:
        other, figures[run.device] = search()
        scores = [found.cv_results_["mean_test_score"] for found in (ours, other)]
        figures["difference"] = float(np.max(np.abs(scores[0] - scores[1])))
        rows.append([run.device, figures[run.device], f"{figures['difference']:.1e}"])
        run.claim(
            "the device chooses what NumPy chooses",
            repr(ours.best_params_) == repr(other.best_params_),
            f"{seconds / figures[run.device]:.1f}× NumPy's speed, scores differ by {figures['difference']:.1e}",
        )
    run.table(f"{settings:,} settings on USPS", ["where", "seconds", "largest difference of scores"], rows)
    return figures
