"""Kernel ridge regression with many targets and a path of λ, chosen by validation: psilearn, himalaya, scikit-learn.

The same sub-problem for all: one Gaussian kernel, one λ for all targets, no intercept, and the same splits; the score
of a λ is the squared error of held-out rows, summed over the targets, and the best λ is fitted to all rows. Splits have
equal sizes n', and the ridge is n'λ for all methods. psilearn's search is ``IOKRCV`` with a linear output kernel;
himalaya's is ``KernelRidgeCV`` with ``local_alpha=False``; scikit-learn's refits ``KernelRidge`` for every λ and split.
Leave-one-out, in closed form: ``IOKRCV(cv="loo")`` and ``RidgeCV`` on the rows of a factor L of K_x = LLᵀ.

himalaya (``pip install himalaya``) is optional: its rows are left out if it is not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold

from psilearn import IOKRCV
from psilearn.kernels import Gaussian, Linear
from psilearn_lab.benchmarks.measurement import (
    Array,
    Clock,
    Figures,
    Run,
    Turn,
    synchronize,
    time_in_turns,
    time_stage,
    warm_up,
)

GAMMA, N_FEATURES, N_WAVES, NOISE = 0.05, 10, 150, 0.1
N_SPLITS = 5
ALPHAS = tuple(float(alpha) for alpha in np.logspace(-8, -1, 15))  # λ
MAX_SCORE_DIFFERENCE = 1e-6  # relative


class Best(NamedTuple):
    """The chosen λ and its squared error per row."""

    alpha: float
    error: float


def make_problem(n: int, r: int) -> tuple[Array, Array]:
    """Return inputs and noisy targets: r random smooth functions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, N_FEATURES))
    waves = np.cos(X @ rng.normal(0, 0.3, (N_FEATURES, N_WAVES)) + rng.uniform(0, 6, N_WAVES))
    truth = waves @ rng.standard_normal((N_WAVES, r))
    truth /= truth.std(axis=0)
    return X, truth + NOISE * rng.standard_normal((n, r))


def search_with_psilearn(X: Array, V: Array, cv: Any) -> Best:
    """Search with IOKRCV: targets are outputs with the linear kernel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the best λ may be at an edge
        search = IOKRCV(Gaussian(GAMMA), Linear(), alphas=list(ALPHAS), cv=cv).fit(X, V)
    synchronize()
    return Best(search.best_params_["alpha"], -search.best_score_)


def search_with_himalaya(X: Array, V: Array, cv: KFold, backend: str) -> Best:
    """Search with himalaya's KernelRidgeCV in one of its backends, in float64."""
    himalaya = importlib.import_module("himalaya.backend").set_backend(backend)
    model = importlib.import_module("himalaya.kernel_ridge").KernelRidgeCV(
        alphas=ridges(len(X)), kernel="rbf", kernel_params={"gamma": GAMMA}, cv=cv, solver_params={"local_alpha": False}
    )
    model.fit(*(himalaya.asarray(part, dtype="float64") for part in (X, V)))
    synchronize()
    alpha, scores = (np.asarray(himalaya.to_numpy(part)) for part in (model.best_alphas_, model.cv_scores_))
    return Best(float(alpha[0]) / training_rows(len(X)), -float(scores.sum()))


def search_with_scikit_learn(X: Array, V: Array, cv: KFold) -> Best:
    """Search with scikit-learn's KernelRidge, which is fitted again for every λ and split."""
    grid = {"alpha": list(ridges(len(X)))}
    search = GridSearchCV(KernelRidge(kernel="rbf", gamma=GAMMA), grid, cv=cv, scoring="neg_mean_squared_error")
    search.fit(X, V)
    return Best(search.best_params_["alpha"] / training_rows(len(X)), -search.best_score_ * V.shape[1])


def leave_one_out_with_scikit_learn(X: Array, V: Array) -> Best:
    """Search with scikit-learn's RidgeCV, on the rows of a Cholesky factor of K_x."""
    L = np.linalg.cholesky(Gaussian(GAMMA)(X) + 1e-13 * np.eye(len(X)))
    search = RidgeCV([len(X) * alpha for alpha in ALPHAS], fit_intercept=False, gcv_mode="eigen").fit(L, V)
    return Best(search.alpha_ / len(X), -search.best_score_ * V.shape[1])


def training_rows(n: int) -> int:
    """Return n', the rows of a training split."""
    return n - n // N_SPLITS


def ridges(n: int) -> Array:
    """Return n'λ for all λ."""
    return training_rows(n) * np.array(ALPHAS)


def measure(run: Run) -> Figures:
    """Print and return seconds, the chosen λ and its error for all methods, at several numbers of targets."""
    on_gpu = run.device not in (None, "cpu")
    n = run.select(10_000 if on_gpu else 2000, 200)
    warm_up()
    figures: Figures = {}
    for r in run.select((100, 1000), (5, 20)):
        X, V = make_problem(n, r)
        figures[f"n={n}, r={r}"] = compare(run, X, V, make_searches(run, on_gpu, X, V))
    return figures


def make_searches(run: Run, on_gpu: bool, X: Array, V: Array) -> dict[str, dict[str, Callable[[], Best]]]:
    """Return the searches by sub-problem and name; the first one of each sub-problem is psilearn's."""
    cv = KFold(N_SPLITS)
    name = "psilearn, NumPy" if run.device is None else f"psilearn, torch {run.device}"
    folds: dict[str, Callable[[], Best]] = {name: partial(search_with_psilearn, X, V, cv)}
    if importlib.util.find_spec("himalaya") is None:
        run.log("himalaya is not installed: its rows are left out.")
    else:
        has_torch = importlib.util.find_spec("torch") is not None
        backends = ["torch_cuda"] if on_gpu else ["numpy", "torch"] if has_torch else ["numpy"]
        for backend in backends:
            search_with_himalaya(X[:50], V[:50, :2], cv, backend)  # loading libraries is not measured
        folds |= {f"himalaya, {backend}": partial(search_with_himalaya, X, V, cv, backend) for backend in backends}
    left_out: dict[str, Callable[[], Best]] = {name: partial(search_with_psilearn, X, V, "loo")}
    if not on_gpu:
        folds["scikit-learn, KernelRidge per λ"] = partial(search_with_scikit_learn, X, V, cv)
        left_out["scikit-learn, RidgeCV"] = partial(leave_one_out_with_scikit_learn, X, V)
    return {f"{N_SPLITS} splits": folds, "leave one out": left_out}


def compare(run: Run, X: Array, V: Array, searches: dict[str, dict[str, Callable[[], Best]]]) -> Figures:
    """Time the searches of each sub-problem in turns, and check that they choose the same λ with the same error."""
    figures: Figures = {}
    for problem, methods in searches.items():
        turns: dict[str, Turn[Best]] = {name: partial(_run_turn, method) for name, method in methods.items()}
        timings = time_in_turns(turns, run.repeats)
        ours = next(iter(timings.values()))
        found: Figures = {}
        for name, timing in timings.items():
            seconds, best = timing.seconds["total"], timing.result
            found[name] = {"seconds": seconds, "ratio": seconds / ours.seconds["total"], **best._asdict()}
        figures[problem] = found
        run.show_table(
            f"{problem}: n = {len(X):,}, {V.shape[1]:,} targets, {len(ALPHAS)} values of λ",
            ["method", "seconds", "times psilearn's", "λ", "squared error"],
            [[k, f["seconds"], f"{f['ratio']:.2f}×", f["alpha"], f"{f['error']:.8g}"] for k, f in found.items()],
        )
        _check_claims(run, f"{problem}, {V.shape[1]} targets", found)
    return figures


def _run_turn(search: Callable[[], Best], clock: Clock) -> Best:
    return time_stage(search, clock)


def _check_claims(run: Run, problem: str, found: Figures) -> None:
    """Check that all methods agree, and that none is faster than psilearn."""
    ours = next(iter(found.values()))
    gaps = [abs(f["error"] / ours["error"] - 1) for f in found.values()]
    same = all(np.isclose(f["alpha"], ours["alpha"], rtol=1e-6) for f in found.values())
    run.check_claim(
        f"{problem}: all methods choose the same λ, with errors within {MAX_SCORE_DIFFERENCE:g} of each other",
        same and max(gaps) <= MAX_SCORE_DIFFERENCE,
        f"largest relative difference {max(gaps):.1e}",
    )
    others = {name: f["ratio"] for name, f in found.items() if f is not ours}
    run.check_claim(
        f"{problem}: no other method is faster than psilearn",
        all(ratio >= 1 for ratio in others.values()),
        ", ".join(f"{name} {ratio:.2f}×" for name, ratio in others.items()) or "no other method",
    )
