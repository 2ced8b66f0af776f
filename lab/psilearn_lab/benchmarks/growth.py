"""How the cost of fitting and decoding grows with n, m, q, p and the number of candidates; IOKR and OEL side by side.

Problems are random with the sizes of USPS (128 numbers in, 128 out, Gaussian kernels). Read the ratios and the
exponents, not the seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn.kernels import Gaussian
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, Turn, growth_exponent, time_in_turns

MAX_ROWS = 32_000
RNG = np.random.default_rng(0)
X, Y = RNG.random((MAX_ROWS, 128)), RNG.random((MAX_ROWS, 128))
KERNEL = Gaussian(0.05)
ALPHA = 1e-4
N_QUERIES = 500


@dataclass(frozen=True)
class Plan:
    """A quantity that grows: its sizes, and the turns of both methods at a size."""

    description: str
    sizes: list[int]
    make_turns: Callable[[int], dict[str, Turn[None]]]


def make_models(p: int, supervision: float, **parameters: Any) -> dict[str, IOKR | OEL]:
    """Return both models."""
    iokr = IOKR(KERNEL, KERNEL, alpha=ALPHA, **parameters)
    oel = OEL(KERNEL, KERNEL, alpha=ALPHA, n_components=p, supervision=supervision, **parameters)
    return {"IOKR": iokr, "OEL": oel}


def make_fits(n: int, m: int, p: int, **parameters: Any) -> dict[str, Turn[None]]:
    """Return the turns that fit both models on n pairs and m outputs without inputs."""

    def run_turn(model: IOKR | OEL, clock: Clock) -> None:
        with clock("fit"):
            model.fit(X[:n], Y[:n], unlabeled=Y[n : n + m] if m else None)

    models = make_models(p, 0.5 if m else 1.0, **parameters)
    return {name: partial(run_turn, model) for name, model in models.items()}


def make_decodings(n: int, n_candidates: int, p: int) -> dict[str, Turn[None]]:
    """Return the turns that decode 500 queries with both models; the candidates are embedded beforehand."""

    def run_turn(model: IOKR | OEL, clock: Clock) -> None:
        with clock("decode"):
            model.predict(X[:N_QUERIES])

    models = make_models(p, 1.0)
    return {
        name: partial(run_turn, model.fit(X[:n], Y[:n], unlabeled=Y[n:n_candidates])) for name, model in models.items()
    }


def make_plans(run: Run) -> dict[str, Plan]:
    """Return what grows, and from where to where; on a GPU four times the sizes, without the largest ones."""
    on_gpu = run.device not in (None, "cpu")
    k = run.select(MAX_ROWS // 8 if on_gpu else 1000, 125)  # the unit of all sizes
    h, p, sizes_p = k // 2, run.select(50, 10), run.select([16, 64, 256], [4, 8, 16])
    landmarks = {"output_landmarks": h}
    cubic = [h, k, 2 * k] if on_gpu else [h, k, 2 * k, 4 * k]
    return {
        "fit, n": Plan(f"OEL₀, p = {p}", cubic, lambda n: make_fits(n, 0, p)),
        "fit, m": Plan(f"n = {h}, p = {p}", cubic, lambda m: make_fits(h, m, p)),
        "fit, n at fixed q": Plan(
            f"q = {h} input landmarks, {h} output landmarks, OEL₀, p = {p}",
            [k, 2 * k, 4 * k, 8 * k],
            lambda n: make_fits(n, 0, p, input_landmarks=h, **landmarks),
        ),
        "fit, q": Plan(
            f"input landmarks of n = {8 * k}, {h} output landmarks, OEL₀, p = {p}",
            cubic,
            lambda q: make_fits(8 * k, 0, p, input_landmarks=q, **landmarks),
        ),
        "fit, p": Plan(f"n = {h}, m = {2 * k}", sizes_p, lambda p: make_fits(h, 2 * k, p)),
        "decode, candidates": Plan(
            f"{N_QUERIES} queries, n = {2 * k}, p = {p}",
            [2 * k, 4 * k, 8 * k],
            lambda c: make_decodings(2 * k, c, p),
        ),
        "decode, p": Plan(
            f"{N_QUERIES} queries, n = {2 * k}, {8 * k} candidates",
            sizes_p,
            lambda p: make_decodings(2 * k, 8 * k, p),
        ),
    }


def measure(run: Run) -> Figures:
    """Print a table for each quantity that grows, with the exponents below, and return the figures."""
    return {title: _measure_plan(run, title, plan) for title, plan in make_plans(run).items()}


def _measure_plan(run: Run, title: str, plan: Plan) -> Figures:
    rows: list[list[object]] = []
    series: dict[str, list[float]] = {"IOKR": [], "OEL": []}
    for size in plan.sizes:
        timings = time_in_turns(plan.make_turns(size), run.repeats)
        seconds = {name: timing.seconds["total"] for name, timing in timings.items()}
        for name, values in series.items():
            values.append(seconds[name])
        rows.append([f"{size:,}", *seconds.values(), f"{seconds['IOKR'] / seconds['OEL']:.1f}"])
    exponents = {name: growth_exponent(plan.sizes, values) for name, values in series.items()}
    rows.append(["exponent", *(f"{exponent:.2f}" for exponent in exponents.values()), ""])
    run.show_table(f"{title}: {plan.description}", [title.split(", ")[1], "IOKR s", "OEL s", "ratio"], rows)
    run.curves[title] = {name: list(zip(plan.sizes, values, strict=True)) for name, values in series.items()}
    return {"sizes": plan.sizes, **series, "exponents": exponents}
