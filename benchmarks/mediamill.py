"""Mediamill: OEL₀ with landmarks on all 30,993 pairs against exact IOKR on a random 8000.

Standardised features, Dice outputs. γ_x, λ and p are chosen by F1 on training rows alone: the first three on a random
6000, then λ for the larger number of pairs on 3000 held-out training rows. Each fit in a fresh process.
"""

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from benchmarks.child import child
from benchmarks.report import Clock, Run, median
from psilearn import IOKR, IOKRCV, OEL, OELCV
from psilearn.datasets import load_mediamill
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score

NEEDS = ("converted/mediamill.npz",)
GAMMAS = [0.001, 0.003, 0.01, 0.03]
ALPHAS = [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5]
FACTORS = [3.0, 1.0, 0.3]  # of λ, when there are more pairs
FULL = {
    "some": 6000,
    "exact": 8000,
    "all": None,
    "held": 3000,
    "q": 5000,
    "r": 3000,
    "p": [50, 100, 200, 400],
    "tests": None,
}
QUICK = {"some": 500, "exact": 500, "all": 1500, "held": 300, "q": 200, "r": 200, "p": [20, 50], "tests": 500}


def load(sizes: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return training and test rows, the training rows in random order."""
    bunch = load_mediamill()
    X, Y = bunch.X, bunch.Y
    train, test = np.random.default_rng(0).permutation(bunch.train)[: sizes["all"]], bunch.test[: sizes["tests"]]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), Y[train], scaler.transform(X[test]), Y[test]


def oel(sizes: dict[str, Any], gamma: float, alpha: float, p: int) -> OEL:
    """Return OEL₀ with landmarks on both sides."""
    landmarks = {"input_landmarks": sizes["q"], "output_landmarks": sizes["r"]}
    return OEL(Gaussian(gamma), Dice(), alpha, p, supervision=1.0, **landmarks)


def choose(sizes: dict[str, Any]) -> dict[str, Any]:
    """Choose by validation on training rows."""
    start = perf_counter()
    X, Y, _, _ = load(sizes)
    some = slice(0, sizes["some"])
    cv = ShuffleSplit(2, test_size=0.2, random_state=0)
    search = {"output_kernels": Dice(), "alphas": ALPHAS, "cv": cv, "scoring": "f1"}
    iokr = IOKRCV(input_kernels=[Gaussian(gamma) for gamma in GAMMAS], **search).fit(X[some], Y[some]).best_params_
    learned = OELCV(input_kernels=iokr["input_kernel"], n_components=sizes["p"], supervisions=1.0, **search)
    best = learned.fit(X[some], Y[some]).best_params_
    gamma, p = iokr["input_kernel"].gamma, best["n_components"]
    held, rest = slice(0, sizes["held"]), slice(sizes["held"], None)
    scores = {}
    for factor in FACTORS:
        alpha = float(best["alpha"]) * factor
        fitted = oel(sizes, gamma, alpha, p).fit(X[rest], Y[rest])
        scores[alpha] = float(f1_score(Y[held], fitted.predict(X[held])))
    return {
        "gamma": float(gamma),
        "alpha_exact": float(iokr["alpha"]),
        "p": int(p),
        "alpha": max(scores, key=scores.__getitem__),
        "held_out_f1": {f"{alpha:.2g}": score for alpha, score in scores.items()},
        "seconds": perf_counter() - start,
    }


def fit(sizes: dict[str, Any], exact: bool, chosen: dict[str, Any]) -> dict[str, float]:
    """Fit and decode the tests: exact IOKR on some rows, or OEL₀ with landmarks on all."""
    X, Y, X_test, Y_test = load(sizes)
    clock = Clock()
    if exact:
        X, Y = X[: sizes["exact"]], Y[: sizes["exact"]]
        model: Any = IOKR(Gaussian(chosen["gamma"]), Dice(), chosen["alpha_exact"])
    else:
        model = oel(sizes, chosen["gamma"], chosen["alpha"], chosen["p"])
    with clock("fit"):
        model.fit(X, Y)
    with clock("decode"):
        predicted = model.predict(X_test)
    f1 = f1_score(Y_test, predicted)
    return {**clock.with_total(), "n": X.shape[0], "f1": 100 * f1, "f1_error": 100 * f1.standard_error}


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds, peaks and F1."""
    sizes = run.size(FULL, QUICK)
    chosen = child("benchmarks.mediamill", "choose", sizes=sizes)
    run.say(f"chosen on training rows: {chosen}")
    methods = {"exact IOKR": True, "OEL₀ with landmarks": False}
    turns: dict[str, list[Any]] = {name: [] for name in methods}
    for _ in range(run.repeats):
        for name, exact in methods.items():
            turns[name].append(child("benchmarks.mediamill", "fit", sizes=sizes, exact=exact, chosen=chosen))
    figures: dict[str, Any] = {"sizes": sizes, "chosen": chosen}
    rows = []
    for name, results in turns.items():
        m = median(results)
        figures[name] = {**m, "peak_gib": max(row["peak_bytes"] for row in results) / 2**30}
        f1 = f"{m['f1']:.2f} ± {m['f1_error']:.2f}"
        rows.append([name, f"{m['n']:,.0f}", m["fit"], m["decode"], m["total"], figures[name]["peak_gib"], f1])
    run.table("Mediamill", ["method", "n", "fit s", "decode s", "total s", "peak GiB", "F1"], rows)
    exact, ours = figures["exact IOKR"], figures["OEL₀ with landmarks"]
    run.claim("Mediamill, all pairs, in 10 minutes", ours["total"] <= 600, f"{ours['total']:.0f} s")
    run.claim("Mediamill, all pairs, in less than 4 GiB", ours["peak_gib"] < 4, f"{ours['peak_gib']:.2f} GiB")
    found = f"{ours['f1']:.2f} and {exact['f1']:.2f} ± {exact['f1_error']:.2f}"
    run.claim("Mediamill F1 with all pairs at least that of exact IOKR on 8000", ours["f1"] >= exact["f1"], found)
    return figures
