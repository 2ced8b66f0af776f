"""Is preconditioned conjugate gradient better than the direct Nyström solution? FALKON against ``NystromRidge``.

Both minimise 1/n Σ|vᵢ − ĥ(xᵢ)|² + λ|ĥ|² over the span of the same landmarks, for r targets at once: the
coefficients solve (K_nqᵀK_nq + nλK_qq) C = K_nqᵀV. FALKON (Rudi, Carratino and Rosasco, 2017) never forms the matrix:
with TᵀT = K_qq and AᵀA = TTᵀ/q + λI it iterates on the system in A⁻ᵀT⁻ᵀ·T⁻¹A⁻¹ and makes K_nq anew in each step.
Judged by the error of the prediction on new inputs against the noiseless truth.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from benchmarks.report import Clock, Run, in_turns
from psilearn import Landmarks
from psilearn._backend import precision
from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn.regression import NystromRidge

WIDTH, FEATURES, NOISE, BLOCK = 0.05, 10, 0.1, 2000
ALPHA = 1e-5  # near the best for these targets, on the side that conjugate gradient likes


def gaussian(A: Array, B: Array) -> Array:
    """Return exp(−γ|a − b|²) in the dtype of the rows."""
    K = A @ B.T
    K *= 2 * WIDTH
    K -= WIDTH * np.einsum("ij,ij->i", A, A)[:, None]
    K -= WIDTH * np.einsum("ij,ij->i", B, B)
    return np.exp(np.minimum(K, 0, out=K), out=K)


def falkon(X: Array, V: Array, S: Array, alpha: float, iterations: int) -> Array:
    """Return the coefficients (q, r) after so many steps of conjugate gradient, one search a column of V."""
    n, q = len(X), len(S)
    K = gaussian(S, S)
    K.flat[:: q + 1] += q * np.finfo(K.dtype).eps
    T = cholesky(K, check_finite=False)  # upper: TᵀT = K_qq
    A = T @ T.T / q
    A.flat[:: q + 1] += alpha
    A = cholesky(A, overwrite_a=True, check_finite=False)

    def solve(R: Array, B: Array, trans: str = "N") -> Array:
        return solve_triangular(R, B, trans=trans, check_finite=False)

    def normal(C: Array | None, V: Array | None) -> Array:
        """Return K_nqᵀ(K_nq C), or K_nqᵀV, over n, in one pass over the rows."""
        total = np.zeros((q, (V if C is None else C).shape[1]), dtype=X.dtype)
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            block = gaussian(X[rows], S)
            total += block.T @ (V[rows] if C is None else block @ C)
        return total / n

    def operator(B: Array) -> Array:
        """A⁻ᵀ(T⁻ᵀ K_nqᵀK_nq T⁻¹/n + λ) A⁻¹ B."""
        U = solve(A, B)
        return solve(A, solve(T, normal(solve(T, U), None), "T") + alpha * U, "T")

    residual = solve(A, solve(T, normal(None, V), "T"), "T")
    solution, direction = np.zeros_like(residual), residual.copy()
    rho = np.einsum("ij,ij->j", residual, residual)
    for _ in range(iterations):
        image = operator(direction)
        step = rho / np.maximum(np.einsum("ij,ij->j", direction, image), np.finfo(rho.dtype).tiny)
        solution += step * direction
        residual -= step * image
        former, rho = rho, np.einsum("ij,ij->j", residual, residual)
        direction = residual + (rho / np.maximum(former, np.finfo(rho.dtype).tiny)) * direction
    return solve(T, solve(A, solution))


def problem(n: int, r: int) -> tuple[Array, Array, Array, Array]:
    """Return inputs, noisy targets, new inputs and their noiseless targets: r random smooth functions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 1000, FEATURES))
    truth = np.cos(X @ rng.normal(0, 0.3, (FEATURES, 3 * 50)) + rng.uniform(0, 6, 150)) @ rng.standard_normal((150, r))
    truth /= truth.std(axis=0)
    return X[:n], truth[:n] + NOISE * rng.standard_normal((n, r)), X[n:], truth[n:]


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds and errors of both for several sizes and numbers of steps."""
    n = run.size(20000, 1500)
    figures: dict[str, Any] = {}
    for q in run.size((2000, 4000), (100, 300)):
        for r in run.size((50, 500), (5, 20)):
            figures[f"n={n}, q={q}, r={r}"] = compare(run, n, q, r)
    ratios = {name: f["ratio"] for name, f in figures.items()}
    run.claim(
        "the direct Nyström solution is at least as fast as the fastest FALKON within 1 % of its error",
        all(ratio is None or ratio >= 1 for ratio in ratios.values()),
        "; ".join(f"{name}: {'never within' if x is None else f'{x:.2f}×'}" for name, x in ratios.items()),
    )
    return figures


def compare(run: Run, n: int, q: int, r: int) -> dict[str, Any]:
    """Compare at one size."""
    X, V, X_new, truth = problem(n, r)
    ridge = NystromRidge(Gaussian(WIDTH), ALPHA, Landmarks(q, "uniform", 0))
    landmarks = ridge.fit(X).landmarks_  # the same for both

    def direct(dtype: str) -> Callable[[Clock], tuple[Array, Array]]:
        def turn(clock: Clock) -> tuple[Array, Array]:
            with clock("solve"), precision(dtype):
                fitted = ridge.fit(X).regress(V)
            return np.asarray(fitted.anchors), fitted.coef()

        return turn

    def iterated(dtype: str, steps: int) -> Callable[[Clock], tuple[Array, Array]]:
        def turn(clock: Clock) -> tuple[Array, Array]:
            with clock("solve"):
                S = landmarks.astype(dtype)
                return S, falkon(X.astype(dtype), V.astype(dtype), S, ALPHA, steps)

        return turn

    methods = {f"direct, {dtype}": direct(dtype) for dtype in ("float64", "float32")}
    methods |= {f"FALKON, float64, {steps} steps": iterated("float64", steps) for steps in (5, 10, 20)}
    methods |= {f"FALKON, float32, {steps} steps": iterated("float32", steps) for steps in (10, 20)}
    measured = in_turns(methods, run.repeats)
    figures: dict[str, Any] = {}
    for name, m in measured.items():
        S, coef = m.result
        error = float(np.sqrt(np.mean((gaussian(X_new, S.astype(float)) @ coef - truth) ** 2)))
        figures[name] = {"seconds": m.seconds["total"], "error": error}
    run.table(
        f"n = {n:,}, q = {q:,}, r = {r}, λ = {ALPHA:g}",
        ["method", "seconds", "error on new inputs"],
        [[name, f["seconds"], f"{f['error']:.5f}"] for name, f in figures.items()],
    )
    ratios = []
    for dtype in ("float64", "float32"):  # like against like
        ours = figures[f"direct, {dtype}"]
        ratios += [
            f["seconds"] / ours["seconds"]
            for name, f in figures.items()
            if name.startswith(f"FALKON, {dtype}") and f["error"] <= 1.01 * ours["error"]
        ]
    return {**figures, "ratio": min(ratios) if ratios else None}
