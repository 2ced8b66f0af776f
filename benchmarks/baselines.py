"""Baselines beside OEL₀ on Bibtex: seconds to learn and to predict, at fixed parameters, and how they grow with n.

Parameters are fixed, not chosen: the F1 that is shown says that the work was done, not how good a method can be.
"""

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.report import Clock, Run, in_turns, slope
from psilearn import OEL
from psilearn._linalg import Array
from psilearn.baselines import DVN, KNN, KRR, LR, NN, PRLR, RRR, SPEN, best_threshold
from psilearn.experiments.multilabel import Multilabel, load
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score

NEEDS = ("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
WORDS: dict[str, Any] = {"hidden": (500,), "weight_decay": 0.1, "standardize": False}  # rows of length one
REFERENCE = "OEL₀, Dice"


def methods(quick: bool) -> dict[str, Any]:
    """Return estimators with parameters near those that validation chooses."""
    chosen = {
        REFERENCE: OEL(Gaussian(0.5), Dice(), alpha=1e-5, n_components=20 if quick else 200, supervision=1.0),
        "LR": LR(C=10.0),
        "PRLR": PRLR(rank_penalty=3.0),
        "k-NN": KNN(n_neighbors=10, weights="distance"),
        "KRR": KRR(Gaussian(0.5), alpha=1e-4),
        "reduced rank": RRR(Gaussian(0.5), alpha=1e-4, n_components=20 if quick else 120),
    }
    if find_spec("torch"):
        short = {"epochs": 2} if quick else {}
        chosen["NN"] = NN(learning_rate=3e-3, **WORDS, **short)
        chosen["SPEN"] = SPEN(learning_rate=3e-3, energy_epochs=2 if quick else 40, **WORDS, **short)
        chosen["DVN"] = DVN(**WORDS, **short)
    return chosen


def one_turn(model: Any, source: Multilabel, n: int, tests: int, clock: Clock) -> Any:
    """Learn from n pairs and predict; return the F1."""
    data = source.data(n, tests=tests)
    with clock("fit"):
        model.fit(data.X, data.Y)
    with clock("predict"):
        predicted = model.predict(data.X_test)
    return f1_score(data.Y_test, predicted)


def every_threshold(Y: Array, scores: Array) -> float:
    """Return the best threshold by trying every score."""
    return max(np.unique(scores), key=lambda t: float(f1_score(Y, scores >= t)))


def timed_threshold(route: Any, Y: Array, scores: Array, clock: Clock) -> float:
    """Run one turn and return the F1 that it reaches."""
    with clock("seconds"):
        found = route(Y, scores)
    return float(f1_score(Y, scores >= found))


def measure(run: Run) -> dict[str, Any]:
    """Print seconds, F1 and growth, and return them."""
    source = load("bibtex", 0)
    sizes, tests = run.size([1220, 2440, 4880], [60, 120]), run.size(2515, 40)
    found: dict[str, dict[str, list[float]]] = {}
    for n in sizes:
        turns = {name: partial(one_turn, model, source, n, tests) for name, model in methods(run.quick).items()}
        for name, one in in_turns(turns, run.repeats if n == sizes[-1] else 1).items():
            kept = found.setdefault(name, {"fit": [], "predict": [], "f1": []})
            kept["fit"].append(one.seconds["fit"])
            kept["predict"].append(one.seconds["predict"])
            kept["f1"].append(100 * float(one.result))
    base = found[REFERENCE]
    rows = [
        [
            name,
            own["fit"][-1],
            own["fit"][-1] / base["fit"][-1],
            own["predict"][-1],
            own["f1"][-1],
            slope(sizes, own["fit"]),
        ]
        for name, own in found.items()
    ]
    headings = ["method", "fit, s", f"times {REFERENCE}'s", "predict, s", "F1", "fit grows as n^"]
    run.table(f"Bibtex, {sizes[-1]} pairs, {tests} tests", headings, rows)
    run.curves["baselines"] = {name: list(zip(sizes, own["fit"], strict=True)) for name, own in found.items()}
    return {"sizes": sizes, "methods": found, "threshold": _threshold(run)}


def _threshold(run: Run) -> dict[str, Any]:
    """Compare the exact threshold from one sort with that from every score in turn."""
    rng = np.random.default_rng(0)
    n = run.size(60, 8)
    Y, scores = (rng.random((n, 20)) < 0.1).astype(int), rng.random((n, 20))
    routes = {"one sort": best_threshold, "every score": every_threshold}
    measured = in_turns(
        {name: partial(timed_threshold, route, Y, scores) for name, route in routes.items()}, run.repeats
    )
    assert np.isclose(measured["one sort"].result, measured["every score"].result), "the routes disagree"
    seconds = {name: one.seconds["seconds"] for name, one in measured.items()}
    ratio = seconds["every score"] / seconds["one sort"]
    run.table(f"best threshold of {n} × 20 scores", ["route", "seconds"], [[name, s] for name, s in seconds.items()])
    run.claim(
        "the threshold from one sort at least 50 times as fast as from every score", ratio >= 50, f"{ratio:.0f} times"
    )
    return seconds
