"""The paper's grid on USPS, 25,920 settings over five splits, on the device and in NumPy side by side.

1000 pairs, 6000 lower halves without upper halves; 6 widths × 12 λ × 12 p × 6 c × 5 splits, scored in closed form.
``usps_path`` and ``psilearn reproduce usps --only usps-grid`` continue to the test set.
"""

import warnings
from time import perf_counter

import numpy as np
from sklearn.model_selection import ShuffleSplit

from psilearn import OELCV
from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn_lab.benchmarks.device import compute_on
from psilearn_lab.benchmarks.measurement import Figures, Run
from psilearn_lab.datasets import load_usps
from psilearn_lab.experiments.usps import GRID_CONFIG

NEEDS = ("usps/usps.h5",)
N_SPLITS = 5
OUTPUT_KERNEL = Gaussian(0.05)
GAMMAS, ALPHAS, SIZES, SUPERVISIONS = (GRID_CONFIG[name] for name in ("gammas", "alphas", "sizes", "supervisions"))


def load_halves(run: Run) -> tuple[Array, Array, Array]:
    """Return upper and lower halves of the pairs, and lower halves without upper halves."""
    usps = load_usps()
    pairs, others = usps.train[: run.select(1000, 100)], usps.train[-run.select(6000, 300) :]
    return usps.X[pairs], usps.Y[pairs], usps.Y[others]


def fit_search(run: Run, X: Array, Y: Array, unlabeled: Array) -> OELCV:
    """Return the fitted search."""
    search = OELCV(
        [Gaussian(gamma) for gamma in run.select(GAMMAS, GAMMAS[2:3])],
        OUTPUT_KERNEL,
        alphas=run.select(ALPHAS, ALPHAS[4:6]),
        n_components=run.select(SIZES, SIZES[:3]),
        supervisions=run.select(SUPERVISIONS, SUPERVISIONS[:3]),
        cv=ShuffleSplit(N_SPLITS, test_size=0.2, random_state=0),
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about edges
        return search.fit(X, Y, unlabeled=unlabeled)


def measure(run: Run) -> Figures:
    """Print and return seconds, and how far apart the scores of both are."""
    halves = load_halves(run)

    def run_search() -> tuple[OELCV, float]:
        start = perf_counter()
        search = fit_search(run, *halves)
        return search, perf_counter() - start

    with compute_on(None):
        host_search, host_seconds = run_search()
    n_settings = N_SPLITS * len(host_search.cv_results_["params"])
    figures: Figures = {"settings": n_settings, "NumPy": host_seconds}
    rows = [["NumPy", host_seconds, ""]]
    if run.device is not None:
        search, figures[run.device] = run_search()
        scores = [found.cv_results_["mean_test_score"] for found in (host_search, search)]
        figures["difference"] = float(np.max(np.abs(scores[0] - scores[1])))
        rows.append([run.device, figures[run.device], f"{figures['difference']:.1e}"])
        run.check_claim(
            "the device chooses the same parameters as NumPy",
            repr(host_search.best_params_) == repr(search.best_params_),
            f"{host_seconds / figures[run.device]:.1f}× NumPy's speed, scores differ by {figures['difference']:.1e}",
        )
    run.show_table(f"{n_settings:,} settings on USPS", ["device", "seconds", "largest difference of scores"], rows)
    return figures
