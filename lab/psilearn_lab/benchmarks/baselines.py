"""Baselines next to OEL₀ on Bibtex: seconds to fit and to predict at fixed parameters, and how they grow with n.

Parameters are fixed and not chosen: the F1 only shows that the methods work, not how good they can be.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from psilearn import OEL
from psilearn._linalg import Array
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score
from psilearn_lab.baselines import DVN, KNN, KRR, LR, NN, PRLR, RRR, SPEN, Baseline, best_threshold
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, growth_exponent, time_in_turns
from psilearn_lab.experiments.multilabel import Multilabel, load

NEEDS = ("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
NETWORK: dict[str, Any] = {"hidden": (500,), "weight_decay": 0.1, "standardize": False}  # inputs have length one
REFERENCE = "OEL₀, Dice"
MIN_SPEEDUP = 50


def make_models(quick: bool) -> dict[str, Baseline | OEL]:
    """Return models with parameters near those that validation chooses."""
    models: dict[str, Baseline | OEL] = {
        REFERENCE: OEL(Gaussian(0.5), Dice(), alpha=1e-5, n_components=20 if quick else 200, supervision=1.0),
        "LR": LR(C=10.0),
        "PRLR": PRLR(rank_penalty=3.0, n_rounds=1 if quick else 5),
        "k-NN": KNN(n_neighbors=10, weights="distance"),
        "KRR": KRR(Gaussian(0.5), alpha=1e-4),
        "reduced rank": RRR(Gaussian(0.5), alpha=1e-4, n_components=20 if quick else 120),
    }
    if find_spec("torch"):
        network = NETWORK | ({"epochs": 2} if quick else {})
        models["NN"] = NN(learning_rate=3e-3, **network)
        models["SPEN"] = SPEN(learning_rate=3e-3, energy_epochs=2 if quick else 40, **network)
        models["DVN"] = DVN(**network)
    return models


def fit_and_predict(model: Baseline | OEL, source: Multilabel, n: int, n_tests: int, clock: Clock) -> float:
    """Fit on n pairs and predict; return the F1."""
    data = source.split(n, n_tests=n_tests)
    with clock("fit"):
        model.fit(data.X, data.Y)
    with clock("predict"):
        predicted = model.predict(data.X_test)
    return float(f1_score(data.Y_test, predicted))


def try_every_threshold(Y: Array, scores: Array) -> float:
    """Return the best threshold by trying every score."""
    return float(max(np.unique(scores), key=lambda t: float(f1_score(Y, scores >= t))))


def time_threshold(find_threshold: Callable[[Array, Array], float], Y: Array, scores: Array, clock: Clock) -> float:
    """Run one turn and return the F1 at the threshold that was found."""
    with clock("seconds"):
        threshold = find_threshold(Y, scores)
    return float(f1_score(Y, scores >= threshold))


def measure(run: Run) -> Figures:
    """Print seconds, F1 and growth, and return them."""
    source = load("bibtex", 0)
    sizes, n_tests = run.select([1220, 2440, 4880], [30, 60]), run.select(2515, 40)
    figures: dict[str, dict[str, list[float]]] = {}
    for n in sizes:
        models = make_models(run.quick)
        turns = {name: partial(fit_and_predict, model, source, n, n_tests) for name, model in models.items()}
        for name, timing in time_in_turns(turns, run.repeats if n == sizes[-1] else 1).items():
            series = figures.setdefault(name, {"fit": [], "predict": [], "f1": []})
            series["fit"].append(timing.seconds["fit"])
            series["predict"].append(timing.seconds["predict"])
            series["f1"].append(100 * timing.result)
    reference = figures[REFERENCE]["fit"][-1]
    rows = [
        [
            name,
            series["fit"][-1],
            series["fit"][-1] / reference,
            series["predict"][-1],
            series["f1"][-1],
            growth_exponent(sizes, series["fit"]),
        ]
        for name, series in figures.items()
    ]
    headings = ["method", "fit, s", f"ratio to {REFERENCE}", "predict, s", "F1", "exponent of fit in n"]
    run.show_table(f"Bibtex, {sizes[-1]} pairs, {n_tests} tests", headings, rows)
    run.curves["baselines"] = {name: list(zip(sizes, series["fit"], strict=True)) for name, series in figures.items()}
    return {"sizes": sizes, "methods": figures, "threshold": _measure_threshold(run)}


def _measure_threshold(run: Run) -> dict[str, float]:
    """Compare the exact threshold from one sort with the one from trying every score."""
    rng = np.random.default_rng(0)
    n = run.select(60, 8)
    Y, scores = (rng.random((n, 20)) < 0.1).astype(int), rng.random((n, 20))
    routes = {"one sort": best_threshold, "every score": try_every_threshold}
    turns = {name: partial(time_threshold, route, Y, scores) for name, route in routes.items()}
    timings = time_in_turns(turns, run.repeats)
    assert np.isclose(timings["one sort"].result, timings["every score"].result), "the routes disagree"
    seconds = {name: timing.seconds["seconds"] for name, timing in timings.items()}
    ratio = seconds["every score"] / seconds["one sort"]
    run.show_table(
        f"best threshold of {n} × 20 scores", ["route", "seconds"], [[name, s] for name, s in seconds.items()]
    )
    run.check_claim(
        f"the threshold from one sort is at least {MIN_SPEEDUP} times as fast as trying every score",
        ratio >= MIN_SPEEDUP,
        f"{ratio:.0f} times",
    )
    return seconds
