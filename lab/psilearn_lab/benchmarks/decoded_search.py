"""Searches by decoded scores next to searches by the squared error, with the default grids and one BLAS thread.

Label sets with 45 labels that repeat, as in small multi-label data sets. "f1" is scored by pairs of a true output and a
candidate; a function that returns one number is scored once per different vector of predictions. CPU seconds.
"""

import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from psilearn import OELCV
from psilearn._linalg import Array
from psilearn.metrics import f1_score
from psilearn.utils import Samples
from psilearn_lab.benchmarks.measurement import Figures, Run

N_LABELS, N_SETS, N_FEATURES = 45, 120, 100
MAX_RATIO = 3.0
LARGE = {"n": 1100, "n_features": 1000}  # of the search by the squared error


def make_label_sets(n: int, n_features: int) -> tuple[Array, Array]:
    """Return inputs that depend on label sets, and the sets: noisy copies of a few, by Zipf's law."""
    rng = np.random.default_rng(0)
    sets = (rng.random((N_SETS, N_LABELS)) < 3 / N_LABELS).astype(float)
    sets[np.arange(N_SETS), rng.integers(0, N_LABELS, N_SETS)] = 1
    weights = 1 / np.arange(1, N_SETS + 1)
    Y = sets[rng.choice(N_SETS, n, p=weights / weights.sum())]
    Y = np.abs(Y - (rng.random(Y.shape) < 0.005))
    return Y @ rng.random((N_LABELS, n_features)) * (rng.random((n, n_features)) < 0.1), Y


def whole_f1(y: Samples, prediction: Samples) -> float:
    """Return the same score as one number, so that it is not known to be a mean over examples."""
    return float(f1_score(y, prediction))


def search_once(X: Array, Y: Array, scoring: Any) -> tuple[float, OELCV]:
    """Return the CPU seconds of a default search without the last fit, and the search."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = process_time()
        search = OELCV(scoring=scoring, random_state=0, refit=False).fit(X, Y)
        return process_time() - start, search


def measure(run: Run) -> Figures:
    """Print CPU seconds of each score, and return the figures."""
    n = run.select(350, 80)
    X, Y = make_label_sets(n, N_FEATURES)
    scorings: dict[str, str | Callable[..., float]] = {"mse": "mse", "f1": "f1", "f1 as one number": whole_f1}
    seconds: dict[str, list[float]] = {name: [] for name in scorings}
    found = {}
    for _ in range(run.repeats):
        for name, scoring in scorings.items():
            taken, found[name] = search_once(X, Y, scoring)
            seconds[name].append(taken)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    ratio = float(np.median(np.array(seconds["f1"]) / np.array(seconds["mse"])))
    n_settings = len(found["mse"].cv_results_["params"])
    rows = [[name, value, value / medians["mse"]] for name, value in medians.items()]
    title = f"{n_settings:,} settings on 5 splits, {n} examples, {N_LABELS} labels"
    run.show_table(title, ["score", "CPU seconds", "times mse"], rows)
    scores = [found[name].cv_results_["mean_test_score"] for name in ("f1", "f1 as one number")]
    difference = float(np.abs(scores[0] - scores[1]).max())
    run.check_claim("both routes to F1 agree", difference < 1e-12, f"largest difference {difference:.1e}")
    claim = f"a search by F1 costs at most {MAX_RATIO:g} times the squared error"
    run.check_claim(claim, ratio <= MAX_RATIO, f"{ratio:.2f}")
    large = run.select(LARGE, {"n": 120, "n_features": 50})
    default, search = search_once(*make_label_sets(**large), "mse")
    run.log(f"default search, {large}, rank {search.ranks_[0]}: {default:.1f} CPU seconds")
    return {
        "n": n,
        "settings": n_settings,
        "cpu_seconds": medians,
        "ratio": ratio,
        "default": {**large, "cpu": default},
    }
