"""USPS halves: OEL, exact and with output landmarks, against Algorithm 1 with a dense eigendecomposition.

1000 pairs and 6000 lower halves without upper halves, γ_x = 0.04, k_y = exp(−d²/20), λ = 1e-4, p = 98, c = 0.15.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from psilearn import OEL
from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss
from psilearn_lab.benchmarks.device import compute_on
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, Turn, time_in_turns
from psilearn_lab.datasets import load_usps

NEEDS = ("usps/usps.h5",)
INPUT, OUTPUT, ALPHA, SUPERVISION = Gaussian(0.04), Gaussian(0.05), 1e-4, 0.15
MAX_LOSS_DIFFERENCE = 0.002


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
    usps = load_usps()
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
