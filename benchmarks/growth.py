"""How the cost of fitting and decoding grows with n, m, q, p and the number of candidates; IOKR and OEL side by side.

Problems are random with the sizes of USPS (128 numbers in, 128 out, Gaussian kernels); read the ratios and the
exponents, not the seconds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Clock, Run, in_turns, slope
from psilearn import IOKR, OEL
from psilearn.kernels import Gaussian

RNG = np.random.default_rng(0)
X, Y = RNG.random((8000, 128)), RNG.random((8000, 128))
WIDTH = Gaussian(0.05)
Methods = dict[str, Callable[[Clock], Any]]


def fit(n: int, m: int, p: int, **parameters: Any) -> Methods:
    """Both fits."""
    U = Y[n : n + m] if m else None
    models = {"IOKR": IOKR(WIDTH, WIDTH, 1e-4), "OEL": OEL(WIDTH, WIDTH, 1e-4, p, 0.5 if m else 1.0)}

    def step(model: Any) -> Callable[[Clock], Any]:
        def turn(clock: Clock) -> None:
            with clock("fit"):
                model.set_params(**parameters).fit(X[:n], Y[:n], unlabeled=U)

        return turn

    return {name: step(model) for name, model in models.items()}


def decode(n: int, candidates: int, p: int) -> Methods:
    """Decoding of 500 queries against candidates that are embedded already."""
    models = {"IOKR": IOKR(WIDTH, WIDTH, 1e-4), "OEL": OEL(WIDTH, WIDTH, 1e-4, p, 1.0)}

    def step(model: Any) -> Callable[[Clock], Any]:
        model.fit(X[:n], Y[:n], unlabeled=Y[n:candidates])

        def turn(clock: Clock) -> None:
            with clock("decode"):
                model.predict(X[:500])

        return turn

    return {name: step(model) for name, model in models.items()}


def measure(run: Run) -> dict[str, Any]:
    """Print a table for each quantity that grows, with the exponents below, and return the figures."""
    k = run.size(1000, 125)  # the unit of all sizes
    h, p, sizes_p = k // 2, run.size(50, 10), run.size([16, 64, 256], [4, 8, 16])
    landmarks = {"output_landmarks": h}
    plans: dict[str, tuple[str, list[int], Callable[[int], Methods]]] = {
        "fit, n": (f"OEL₀, p = {p}", [h, k, 2 * k, 4 * k], lambda n: fit(n, 0, p)),
        "fit, m": (f"n = {h}, p = {p}", [h, k, 2 * k, 4 * k], lambda m: fit(h, m, p)),
        "fit, n at fixed q": (
            f"q = {h} input landmarks, {h} of outputs, OEL₀, p = {p}",
            [k, 2 * k, 4 * k, 8 * k],
            lambda n: fit(n, 0, p, input_landmarks=h, **landmarks),
        ),
        "fit, q": (
            f"input landmarks of n = {8 * k}, {h} of outputs, OEL₀, p = {p}",
            [h, k, 2 * k, 4 * k],
            lambda q: fit(8 * k, 0, p, input_landmarks=q, **landmarks),
        ),
        "fit, p": (f"n = {h}, m = {2 * k}", sizes_p, lambda p: fit(h, 2 * k, p)),
        "decode, candidates": (
            f"500 queries, n = {2 * k}, p = {p}",
            [2 * k, 4 * k, 8 * k],
            lambda c: decode(2 * k, c, p),
        ),
        "decode, p": (
            f"500 queries, n = {2 * k}, {8 * k} candidates",
            sizes_p,
            lambda p: decode(2 * k, 8 * k, p),
        ),
    }
    figures: dict[str, Any] = {}
    for title, (about, sizes, methods) in plans.items():
        rows, lines = [], {"IOKR": [], "OEL": []}
        for size in sizes:
            seconds = {name: m.seconds["total"] for name, m in in_turns(methods(size), run.repeats).items()}
            for name, line in lines.items():
                line.append((size, seconds[name]))
            rows.append([f"{size:,}", *seconds.values(), f"{seconds['IOKR'] / seconds['OEL']:.1f}"])
        exponents = {name: slope(*zip(*line, strict=True)) for name, line in lines.items()}
        rows.append(["exponent", *(f"{e:.2f}" for e in exponents.values()), ""])
        run.table(f"{title}: {about}", [title.split(", ")[1], "IOKR s", "OEL s", "ratio"], rows)
        run.curves[title] = lines
        seconds_of = {name: [seconds for _, seconds in line] for name, line in lines.items()}
        figures[title] = {"sizes": sizes, **seconds_of, "exponents": exponents}
    return figures
