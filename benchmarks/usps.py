"""USPS halves: OEL, exact and with output landmarks, against Algorithm 1 with a dense eigendecomposition.

1000 pairs and 6000 lower halves alone, γ_x = 0.04, k_y = exp(−d²/20), λ = 1e-4, p = 98, c = 0.15.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Clock, Run, in_turns
from psilearn import OEL
from psilearn._backend import on_host
from psilearn._linalg import Array
from psilearn.datasets import load_usps
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss

NEEDS = ("usps/usps.h5",)
INPUT, OUTPUT, ALPHA, SUPERVISION = Gaussian(0.04), Gaussian(0.05), 1e-4, 0.15


def algorithm_1_dense(clock: Clock, X: Array, Y: Array, U: Array, X_test: Array, p: int) -> Array:
    """Algorithm 1 as it is written, with every eigenvector of the (n+m, n+m) matrix; return the predictions."""
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
        return known[np.argmin(OUTPUT.diag(known) - 2 * Z @ g.T, axis=1)]


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds, ratios and test losses."""
    usps = load_usps()
    pairs, alone = usps.train[: run.size(1000, 150)], usps.train[-run.size(6000, 600) :]
    test = usps.test[: run.size(None, 200)]
    p = run.size(98, 30)
    X, Y, U, X_test = usps.X[pairs], usps.Y[pairs], usps.Y[alone], usps.X[test]

    def oel(**parameters: Any) -> Callable[[Clock], Any]:
        def turn(clock: Clock) -> Any:
            with clock("fit"):
                model = OEL(INPUT, OUTPUT, ALPHA, p, SUPERVISION, **parameters).fit(X, Y, unlabeled=U)
            with clock("decode"):
                return model.predict(X_test)

        return turn

    def dense(clock: Clock) -> Any:
        with on_host():
            return algorithm_1_dense(clock, X, Y, U, X_test, p)

    methods = {"exact": oel(), "Algorithm 1, dense": dense}
    for r in run.size((500, 1000, 2000), (50, 100, 200)):
        for dtype in ("float64", "float32"):
            methods[f"{r} landmarks, {dtype}"] = oel(output_landmarks=r, dtype=dtype)
    measured = in_turns(methods, run.repeats)

    dense = measured["Algorithm 1, dense"].seconds["fit"]
    figures: dict[str, Any] = {"n": len(X), "m": len(U), "p": p}
    rows = []
    for name, m in measured.items():
        loss = kernel_loss(usps.Y[test], m.result, OUTPUT)
        figures[name] = {**m.seconds, "ratio": dense / m.seconds["fit"], "loss": float(loss)}
        gap = float(loss) - figures["exact"]["loss"]
        rows.append(
            [name, m.seconds["fit"], m.seconds["decode"], f"{figures[name]['ratio']:.1f}×", str(loss), f"{gap:+.4f}"]
        )
    run.table(
        f"USPS, n = {len(X)}, m = {len(U)}, p = {p}",
        ["method", "fit s", "decode s", "faster than Algorithm 1", "test loss", "to exact"],
        rows,
    )
    exact = figures["exact"]
    within = {k: figures[k] for k in methods if "landmarks" in k and abs(figures[k]["loss"] - exact["loss"]) <= 0.002}
    best = max(within, key=lambda name: within[name]["ratio"], default=None)
    found = f"{best}: {within[best]['ratio']:.1f}×" if best else "no loss within 0.002"
    run.claim(
        "USPS OEL with landmarks at least 10× faster than dense Algorithm 1, loss within 0.002 of exact",
        best is not None and within[best]["ratio"] >= 10,
        f"{found}; exact {exact['ratio']:.1f}×",
    )
    return figures
