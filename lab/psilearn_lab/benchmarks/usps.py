"""USPS halves: OEL, exact and with output landmarks, against Algorithm 1 with a dense eigendecomposition.

1000 pairs and 6000 lower halves without upper halves, γ_x = 0.04, k_y = exp(−d²/20), λ = 1e-4, p = 98, c = 0.15.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss
from psilearn_lab.benchmarks.measurement import Array, Clock, Figures, Run, Turn, compute_on, time_in_turns, time_stage
from psilearn_lab.datasets import load

NEEDS = ("usps/usps.h5",)
INPUT, OUTPUT, ALPHA, SUPERVISION = Gaussian(0.04), Gaussian(0.05), 1e-4, 0.15
MAX_LOSS_DIFFERENCE = 0.002
MIN_DECODING_REPEATS = 15  # a prediction is short
MIN_DECODING_RATIO = 9


def run_dense_algorithm_1(clock: Clock, X: Array, Y: Array, U: Array, X_test: Array, p: int) -> Array:
    """Run Algorithm 1 literally, with every eigenvector of the (n+m, n+m) matrix; return the predictions."""
    n, m = len(X), len(U)
    a, b = np.sqrt(SUPERVISION / n), np.sqrt((1 - SUPERVISION) / m)
    with clock("fit"):
        K_x = INPUT(X)
        W = np.linalg.inv(K_x + n * ALPHA * np.eye(n))
        smoother = W @ K_x
        known = np.concatenate([Y, U])
        K_y = OUTPUT(known)  # (n+m, n+m)
        K_h, K_hy = smoother.T @ K_y[:n, :n] @ smoother, smoother.T @ K_y[:n, n:]
        K = np.block([[a * a * K_h, a * b * K_hy], [a * b * K_hy.T, b * b * K_y[n:, n:]]])
        mu, vectors = np.linalg.eigh(K)
        beta = vectors[:, ::-1][:, :p] / np.sqrt(mu[::-1][:p])
        g = a * (K_y[:, :n] @ smoother) @ beta[:n] + b * K_y[:, n:] @ beta[n:]  # (n+m, p)
        coef = W @ g[:n]
    with clock("decode"):
        Z = INPUT(X_test, X) @ coef
        predicted: Array = known[np.argmin(OUTPUT.diag(known) - 2 * Z @ g.T, axis=1)]
        return predicted


def measure(run: Run) -> Figures:
    """Print and return seconds, ratios and test losses."""
    usps = load("usps")
    pairs, others = usps.train[: run.select(1000, 150)], usps.train[-run.select(6000, 600) :]
    test = usps.test[: run.select(None, 200)]
    p = run.select(98, 30)
    X, Y, U = usps.X[pairs], usps.Y[pairs], usps.Y[others]
    methods = _make_methods(X, Y, U, usps.X[test], p, run.select((500, 1000, 2000), (50, 100, 200)))
    timings = time_in_turns(methods, run.repeats)
    dense_seconds = timings["Algorithm 1, dense"].seconds["fit"]
    figures: Figures = {"n": len(X), "m": len(U), "p": p}
    rows = []
    for name, timing in timings.items():
        loss = kernel_loss(usps.Y[test], timing.result, OUTPUT)
        ratio = dense_seconds / timing.seconds["fit"]
        figures[name] = {**timing.seconds, "ratio": ratio, "loss": float(loss)}
        gap = float(loss) - figures["exact"]["loss"]
        seconds = [timing.seconds[stage] for stage in ("fit", "decode")]
        rows.append([name, *seconds, f"{ratio:.1f}×", str(loss), f"{gap:+.4f}"])
    columns = ["method", "fit s", "decode s", "faster than Algorithm 1", "test loss", "minus exact"]
    run.show_table(f"USPS, n = {len(X)}, m = {len(U)}, p = {p}", columns, rows)
    _check_claim(run, figures)
    return figures


def _make_methods(
    X: Array, Y: Array, U: Array, X_test: Array, p: int, numbers_of_landmarks: Sequence[int]
) -> dict[str, Turn[Array]]:
    """Return a function per method that runs one turn."""

    def make_oel(**parameters: Any) -> Turn[Array]:
        def run_turn(clock: Clock) -> Array:
            model = OEL(INPUT, OUTPUT, alpha=ALPHA, n_components=p, supervision=SUPERVISION, **parameters)
            with clock("fit"):
                model.fit(X, Y, unlabeled=U)
            with clock("decode"):
                predicted: Array = model.predict(X_test)
            return predicted

        return run_turn

    def run_dense(clock: Clock) -> Array:
        with compute_on(None):
            return run_dense_algorithm_1(clock, X, Y, U, X_test, p)

    methods = {"exact": make_oel(), "Algorithm 1, dense": run_dense}
    for r in numbers_of_landmarks:
        for dtype in ("float64", "float32"):
            methods[f"{r} landmarks, {dtype}"] = make_oel(output_landmarks=r, dtype=dtype)
    return methods


def _check_claim(run: Run, figures: Figures) -> None:
    """Check the speed of the fastest fit with landmarks whose loss is near that of the exact one."""
    exact = figures["exact"]
    near = {
        name: f
        for name, f in figures.items()
        if "landmarks" in name and abs(f["loss"] - exact["loss"]) <= MAX_LOSS_DIFFERENCE
    }
    best = max(near, key=lambda name: near[name]["ratio"], default=None)
    found = f"{best}: {near[best]['ratio']:.1f}×" if best else f"no loss within {MAX_LOSS_DIFFERENCE}"
    run.check_claim(
        f"USPS: OEL with landmarks is at least 10× faster than dense Algorithm 1, with a loss within "
        f"{MAX_LOSS_DIFFERENCE} of exact",
        best is not None and near[best]["ratio"] >= 10,
        f"{found}; exact {exact['ratio']:.1f}×",
    )


def measure_decoding(run: Run) -> Figures:
    """Print and return the seconds of decoding by IOKR and by OEL₀ with p = 64, and their ratio.

    The time of decoding is that of a prediction without k_x(tests, training inputs), which is the same for both models.
    Before every turn k_x is computed once more, so that the threads of BLAS are awake in all turns.
    """
    data = load("usps")
    n, m, n_tests, p = run.select((1000, 6000, 2007, 64), (150, 600, 200, 10))
    X, Y, U = data.X[data.train[:n]], data.Y[data.train[:n]], data.Y[data.train[-m:]]
    X_test = data.X[data.test[:n_tests]]
    models: dict[str, IOKR | OEL] = {
        "IOKR": IOKR(INPUT, OUTPUT, alpha=ALPHA),
        "OEL₀": OEL(INPUT, OUTPUT, alpha=ALPHA, n_components=p, supervision=1.0),
    }
    compute_kernel = partial(INPUT, X_test, X)

    def run_turn(work: Callable[[], Array], clock: Clock) -> Array:
        compute_kernel()
        return time_stage(work, clock)

    turns: dict[str, Turn[Array]] = {"kernel": partial(run_turn, compute_kernel)}
    for name, model in models.items():
        turns[name] = partial(run_turn, partial(model.fit(X, Y, unlabeled=U).predict, X_test))
    timings = time_in_turns(turns, max(run.repeats, MIN_DECODING_REPEATS))
    kernel = timings["kernel"].seconds["total"]
    seconds = {name: timings[name].seconds["total"] - kernel for name in models}
    ratio = seconds["IOKR"] / seconds["OEL₀"]
    run.show_table(
        f"decoding {n_tests:,} tests, {n + m:,} candidates; k_x takes {kernel:.3g} s in addition",
        ["method", "dimensions", "decode s"],
        [[name, models[name].n_components_, value] for name, value in seconds.items()],
    )
    claim = f"USPS: OEL₀ with p = {p} decodes at least {MIN_DECODING_RATIO} times faster than IOKR"
    run.check_claim(claim, ratio >= MIN_DECODING_RATIO, f"{ratio:.1f}×")
    return {"n": n, "m": m, "p": p, "kernel": kernel, **seconds, "ratio": ratio}
