"""Mediamill: OEL₀ with landmarks on all 30,993 pairs against exact IOKR on 8000 random pairs.

Standardized features, Dice outputs. γ_x, λ and p are chosen by F1 on training rows only: all three on 6000 random rows,
then λ again for the larger number of pairs on 3000 held-out training rows. Each fit runs in a new process.
"""

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from psilearn import IOKR, IOKRCV, OEL, OELCV
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score
from psilearn.utils import Samples
from psilearn_lab.benchmarks.child_process import run_in_child
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, median_of_each
from psilearn_lab.datasets import load_mediamill

NEEDS = ("converted/mediamill.npz",)
GAMMAS = [0.001, 0.003, 0.01, 0.03]
ALPHAS = [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5]
FACTORS = [3.0, 1.0, 0.3]  # of λ, for the larger number of pairs
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


def load(sizes: dict[str, Any]) -> tuple[Samples, Samples, Samples, Samples]:
    """Return training rows in random order, and test rows."""
    bunch = load_mediamill()
    X, Y = bunch.X, bunch.Y
    train, test = np.random.default_rng(0).permutation(bunch.train)[: sizes["all"]], bunch.test[: sizes["tests"]]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), Y[train], scaler.transform(X[test]), Y[test]


def make_oel(sizes: dict[str, Any], gamma: float, alpha: float, p: int) -> OEL:
    """Return OEL₀ with landmarks on both sides."""
    return OEL(
        Gaussian(gamma),
        Dice(),
        alpha=alpha,
        n_components=p,
        supervision=1.0,
        input_landmarks=sizes["q"],
        output_landmarks=sizes["r"],
    )


def choose_parameters(sizes: dict[str, Any]) -> Figures:
    """Choose the parameters by validation on training rows."""
    start = perf_counter()
    X, Y, _, _ = load(sizes)
    subset = slice(0, sizes["some"])
    cv = ShuffleSplit(2, test_size=0.2, random_state=0)
    search = {"output_kernels": Dice(), "alphas": ALPHAS, "cv": cv, "scoring": "f1"}
    iokr = IOKRCV(input_kernels=[Gaussian(gamma) for gamma in GAMMAS], **search).fit(X[subset], Y[subset]).best_params_
    learned = OELCV(input_kernels=iokr["input_kernel"], n_components=sizes["p"], supervisions=1.0, **search)
    best = learned.fit(X[subset], Y[subset]).best_params_
    gamma, p = iokr["input_kernel"].gamma, best["n_components"]
    held_out, rest = slice(0, sizes["held"]), slice(sizes["held"], None)
    scores = {}
    for factor in FACTORS:
        alpha = float(best["alpha"]) * factor
        model = make_oel(sizes, gamma, alpha, p).fit(X[rest], Y[rest])
        scores[alpha] = float(f1_score(Y[held_out], model.predict(X[held_out])))
    return {
        "gamma": float(gamma),
        "alpha_exact": float(iokr["alpha"]),
        "p": int(p),
        "alpha": max(scores, key=scores.__getitem__),
        "held_out_f1": {f"{alpha:.2g}": score for alpha, score in scores.items()},
        "seconds": perf_counter() - start,
    }


def fit_and_decode(sizes: dict[str, Any], exact: bool, chosen: Figures) -> dict[str, float]:
    """Fit and decode the tests: exact IOKR on a part of the rows, or OEL₀ with landmarks on all rows."""
    X, Y, X_test, Y_test = load(sizes)
    clock = Clock()
    if exact:
        X, Y = X[: sizes["exact"]], Y[: sizes["exact"]]
        model: IOKR | OEL = IOKR(Gaussian(chosen["gamma"]), Dice(), alpha=chosen["alpha_exact"])
    else:
        model = make_oel(sizes, chosen["gamma"], chosen["alpha"], chosen["p"])
    with clock("fit"):
        model.fit(X, Y)
    with clock("decode"):
        predicted = model.predict(X_test)
    f1 = f1_score(Y_test, predicted)
    return {**clock.with_total(), "n": X.shape[0], "f1": 100 * f1, "f1_error": 100 * f1.standard_error}


def measure(run: Run) -> Figures:
    """Print and return seconds, peaks and F1."""
    sizes = run.select(FULL, QUICK)
    chosen = run_in_child("psilearn_lab.benchmarks.mediamill", "choose_parameters", device=run.device, sizes=sizes)
    run.log(f"chosen on training rows: {chosen}")
    methods = {"exact IOKR": True, "OEL₀ with landmarks": False}
    turns: dict[str, list[Figures]] = {name: [] for name in methods}
    for _ in range(run.repeats):
        for name, exact in methods.items():
            arguments = {"sizes": sizes, "exact": exact, "chosen": chosen}
            turns[name].append(
                run_in_child("psilearn_lab.benchmarks.mediamill", "fit_and_decode", device=run.device, **arguments)
            )
    figures: Figures = {"sizes": sizes, "chosen": chosen}
    rows = []
    for name, results in turns.items():
        medians = median_of_each(results)
        peak = max(result["peak_bytes"] for result in results) / 2**30
        figures[name] = {**medians, "peak_gib": peak}
        f1 = f"{medians['f1']:.2f} ± {medians['f1_error']:.2f}"
        seconds = [medians[stage] for stage in ("fit", "decode", "total")]
        rows.append([name, f"{medians['n']:,.0f}", *seconds, peak, f1])
    run.show_table("Mediamill", ["method", "n", "fit s", "decode s", "total s", "peak GiB", "F1"], rows)
    exact, ours = figures["exact IOKR"], figures["OEL₀ with landmarks"]
    run.check_claim("Mediamill with all pairs takes at most 10 minutes", ours["total"] <= 600, f"{ours['total']:.0f} s")
    run.check_claim(
        "Mediamill with all pairs takes less than 4 GiB", ours["peak_gib"] < 4, f"{ours['peak_gib']:.2f} GiB"
    )
    found = f"{ours['f1']:.2f} and {exact['f1']:.2f} ± {exact['f1_error']:.2f}"
    run.check_claim(
        "Mediamill: F1 with all pairs is at least that of exact IOKR on 8000", ours["f1"] >= exact["f1"], found
    )
    return figures
