"""Is preconditioned conjugate gradient better than the direct Nyström solution? FALKON against ``NystromRidge``.

Both minimize 1/n Σ|vᵢ − ĥ(xᵢ)|² + λ|ĥ|² over the span of the same landmarks, for r targets at once: the
coefficients solve (K_nqᵀK_nq + nλK_qq) C = K_nqᵀV. FALKON (Rudi, Carratino and Rosasco, 2017) never forms the matrix:
with TᵀT = K_qq and AᵀA = TTᵀ/q + λI it iterates on the system in A⁻ᵀT⁻ᵀ·T⁻¹A⁻¹ and computes K_nq again in each step.
Both are compared by the error of their predictions on new inputs against the noiseless truth.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from psilearn import Landmarks
from psilearn._backend import Compute
from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn.regression import NystromRidge
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, Turn, time_in_turns

Predict: TypeAlias = Callable[[Array], Array]  # from new inputs to their predicted targets

GAMMA, N_FEATURES, N_WAVES, NOISE, BLOCK_ROWS = 0.05, 10, 150, 0.1, 2000
ALPHA = 1e-5  # near the best for these targets, on the side where conjugate gradient converges faster
MAX_ERROR_RATIO = 1.01


def gaussian(A: Array, B: Array) -> Array:
    """Return exp(−γ|a − b|²) in the dtype of the rows."""
    K = A @ B.T
    K *= 2 * GAMMA
    K -= GAMMA * np.einsum("ij,ij->i", A, A)[:, None]
    K -= GAMMA * np.einsum("ij,ij->i", B, B)
    return np.exp(np.minimum(K, 0, out=K), out=K)


def falkon(X: Array, V: Array, S: Array, alpha: float, iterations: int) -> Array:
    """Return the coefficients (q, r) after some steps of conjugate gradient, one search per column of V."""
    n, q = len(X), len(S)
    K = gaussian(S, S)
    K.flat[:: q + 1] += q * np.finfo(K.dtype).eps
    T = cholesky(K, check_finite=False)  # upper: TᵀT = K_qq
    A = T @ T.T / q
    A.flat[:: q + 1] += alpha
    A = cholesky(A, overwrite_a=True, check_finite=False)

    def solve(R: Array, B: Array, trans: str = "N") -> Array:
        solution: Array = solve_triangular(R, B, trans=trans, check_finite=False)
        return solution

    def multiply(W: Array | None = None, C: Array | None = None) -> Array:
        """Return K_nqᵀ(W + K_nq C)/n in one pass over the rows; a missing term is zero."""
        total = np.zeros((q, V.shape[1]), dtype=X.dtype)
        for start in range(0, n, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            block = gaussian(X[rows], S)
            if W is not None:
                total += block.T @ W[rows]
            if C is not None:
                total += block.T @ (block @ C)
        return total / n

    def operator(B: Array) -> Array:
        """Return A⁻ᵀ(T⁻ᵀ K_nqᵀK_nq T⁻¹/n + λ) A⁻¹ B."""
        U = solve(A, B)
        return solve(A, solve(T, multiply(C=solve(T, U)), "T") + alpha * U, "T")

    residual = solve(A, solve(T, multiply(W=V), "T"), "T")
    solution, direction = np.zeros_like(residual), residual.copy()
    rho = np.einsum("ij,ij->j", residual, residual)
    for _ in range(iterations):
        image = operator(direction)
        step = rho / np.maximum(np.einsum("ij,ij->j", direction, image), np.finfo(rho.dtype).tiny)
        solution += step * direction
        residual -= step * image
        previous, rho = rho, np.einsum("ij,ij->j", residual, residual)
        direction = residual + (rho / np.maximum(previous, np.finfo(rho.dtype).tiny)) * direction
    return solve(T, solve(A, solution))


def make_problem(n: int, r: int) -> tuple[Array, Array, Array, Array]:
    """Return inputs, noisy targets, new inputs and their noiseless targets: r random smooth functions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 1000, N_FEATURES))
    waves = np.cos(X @ rng.normal(0, 0.3, (N_FEATURES, N_WAVES)) + rng.uniform(0, 6, N_WAVES))
    truth = waves @ rng.standard_normal((N_WAVES, r))
    truth /= truth.std(axis=0)
    return X[:n], truth[:n] + NOISE * rng.standard_normal((n, r)), X[n:], truth[n:]


def measure(run: Run) -> Figures:
    """Print and return seconds and errors of both for several sizes and numbers of steps."""
    n = run.select(20000, 1500)
    figures: Figures = {}
    for q in run.select((2000, 4000), (100, 300)):
        for r in run.select((50, 500), (5, 20)):
            figures[f"n={n}, q={q}, r={r}"] = compare(run, n, q, r)
    ratios = {name: f["ratio"] for name, f in figures.items()}
    run.check_claim(
        "the direct Nyström solution is at least as fast as the fastest FALKON within 1 % of its error",
        all(ratio is None or ratio >= 1 for ratio in ratios.values()),
        "; ".join(f"{name}: {'never within' if x is None else f'{x:.2f}×'}" for name, x in ratios.items()),
    )
    return figures


def compare(run: Run, n: int, q: int, r: int) -> Figures:
    """Compare both methods at one size."""
    X, V, X_new, truth = make_problem(n, r)
    sampling = Landmarks(q, "uniform", 0)
    landmarks = X[sampling.choose(Gaussian(GAMMA), X)]  # the same for both methods

    def direct(dtype: str) -> Turn[Predict]:
        def run_turn(clock: Clock) -> Predict:
            with clock("solve"):
                ridge = NystromRidge(Gaussian(GAMMA), ALPHA, sampling, Compute(dtype=np.dtype(dtype)))
                return ridge.fit(X).regress(V).predict

        return run_turn

    def iterated(dtype: str, steps: int) -> Turn[Predict]:
        def run_turn(clock: Clock) -> Predict:
            with clock("solve"):
                coef = falkon(X.astype(dtype), V.astype(dtype), landmarks.astype(dtype), ALPHA, steps)
            return lambda X_new: gaussian(X_new, landmarks) @ coef

        return run_turn

    methods = {f"direct, {dtype}": direct(dtype) for dtype in ("float64", "float32")}
    methods |= {f"FALKON, float64, {steps} steps": iterated("float64", steps) for steps in (5, 10, 20)}
    methods |= {f"FALKON, float32, {steps} steps": iterated("float32", steps) for steps in (10, 20)}
    timings = time_in_turns(methods, run.repeats)
    figures: Figures = {}
    for name, timing in timings.items():
        error = float(np.sqrt(np.mean((timing.result(X_new) - truth) ** 2)))
        figures[name] = {"seconds": timing.seconds["total"], "error": error}
    run.show_table(
        f"n = {n:,}, q = {q:,}, r = {r}, λ = {ALPHA:g}",
        ["method", "seconds", "error on new inputs"],
        [[name, f["seconds"], f"{f['error']:.5f}"] for name, f in figures.items()],
    )
    ratios = []
    for dtype in ("float64", "float32"):  # compare within a dtype
        ours = figures[f"direct, {dtype}"]
        ratios += [
            f["seconds"] / ours["seconds"]
            for name, f in figures.items()
            if name.startswith(f"FALKON, {dtype}") and f["error"] <= MAX_ERROR_RATIO * ours["error"]
        ]
    return {**figures, "ratio": min(ratios) if ratios else None}
