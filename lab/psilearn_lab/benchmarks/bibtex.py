"""Bibtex: IOKR and OEL₀ against research-style code and against scikit-learn's KernelRidge on the label matrix.

4880 pairs, 2515 tests, L2-normalized rows, Gaussian inputs with γ = 0.5, Dice outputs, λ = 1e-5, p = 200; candidates
are the training outputs. KernelRidge regresses the 0/1 rows and returns the nearest training output.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import normalize

from psilearn import IOKR, OEL
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score
from psilearn.utils import Samples
from psilearn_lab.benchmarks.measurement import Array, Clock, Figures, Run, Timing, time_in_turns
from psilearn_lab.datasets import load

NEEDS = tuple(f"mulan/bibtex/bibtex{ending}" for ending in ("-train.arff", "-test.arff", ".xml"))
GAMMA, ALPHA = 0.5, 1e-5
COUNTERPARTS = {"naive IOKR": "IOKR", "naive OEL₀": "OEL₀", "KernelRidge": "IOKR"}
MIN_SPEEDUPS = {"IOKR": 3, "OEL₀": 5}
MAX_F1_DIFFERENCE = 0.05  # percentage points


class Model(Protocol):
    """An estimator, ours or naive."""

    def fit(self, X: Samples, Y: Samples) -> "Model":
        """Fit on pairs."""

    def predict(self, X: Samples) -> Samples:
        """Return predicted outputs."""


def measure(run: Run) -> Figures:
    """Print and return seconds, ratios and F1."""
    bibtex = load("bibtex")
    train, test = bibtex.train[: run.select(None, 400)], bibtex.test[: run.select(None, 200)]
    p = run.select(200, 50)
    X, Y = normalize(bibtex.X), bibtex.Y
    timings = time_in_turns(_make_methods(X[train], Y[train], X[test], p), run.repeats)
    figures: Figures = {"n": len(train), "p": p}
    rows = []
    for name, timing in timings.items():
        f1 = f1_score(Y[test], timing.result)
        ratio = timing.seconds["total"] / _counterpart(name, timings).seconds["total"]
        figures[name] = {**timing.seconds, "ratio": ratio, "f1": 100 * f1}
        seconds = [timing.seconds[stage] for stage in ("fit", "decode", "total")]
        rows.append([name, *seconds, f"{ratio:.1f}×", f"{100 * f1:.2f} ± {100 * f1.standard_error:.2f}"])
    columns = ["method", "fit s", "decode s", "total s", "ratio to ours", "F1"]
    run.show_table(f"Bibtex, n = {len(train)}, p = {p}", columns, rows)
    _check_claims(run, figures)
    return figures


def _counterpart(name: str, timings: dict[str, Timing[Any]]) -> Timing[Any]:
    """Return our method that a method is compared with."""
    return timings[COUNTERPARTS.get(name, name)]


def _make_methods(X: Samples, Y: Samples, X_test: Samples, p: int) -> dict[str, Callable[[Clock], Samples]]:
    """Return a function per method that runs one turn."""
    dense_X, dense_Y, dense_test = X.toarray(), Y.toarray().astype(float), X_test.toarray()
    kernels = Gaussian(GAMMA), Dice()

    def kernel_ridge(clock: Clock) -> Samples:
        with clock("fit"):
            model = KernelRidge(alpha=len(dense_X) * ALPHA, kernel="rbf", gamma=GAMMA).fit(X, dense_Y)
        with clock("decode"):
            return dense_Y[pairwise_distances_argmin(model.predict(X_test), dense_Y)]

    def oel() -> OEL:
        return OEL(*kernels, alpha=ALPHA, n_components=p, supervision=1.0)

    return {
        "IOKR": _make_turn(lambda: IOKR(*kernels, alpha=ALPHA), X, Y, X_test),
        "OEL₀": _make_turn(oel, X, Y, X_test),
        "naive IOKR": _make_turn(lambda: NaiveIOKR(GAMMA, ALPHA), dense_X, dense_Y, dense_test),
        "naive OEL₀": _make_turn(lambda: NaiveOEL0(GAMMA, ALPHA, p), dense_X, dense_Y, dense_test),
        "KernelRidge": kernel_ridge,
    }


def _make_turn(make_model: Callable[[], Model], X: Samples, Y: Samples, X_test: Samples) -> Callable[[Clock], Samples]:
    """Return a function that fits a new model and predicts."""

    def run_turn(clock: Clock) -> Samples:
        with clock("fit"):
            model = make_model().fit(X, Y)
        with clock("decode"):
            return model.predict(X_test)

    return run_turn


def _check_claims(run: Run, figures: Figures) -> None:
    for name, factor in MIN_SPEEDUPS.items():
        naive, ours = figures[f"naive {name}"], figures[name]
        same = abs(naive["f1"] - ours["f1"]) < MAX_F1_DIFFERENCE
        run.check_claim(
            f"Bibtex {name} is at least {factor}× faster than research-style code at the same F1",
            naive["ratio"] >= factor and same,
            f"{naive['ratio']:.1f}×, F1 {ours['f1']:.2f} and {naive['f1']:.2f}",
        )


def gaussian(A: Array, B: Array, gamma: float) -> Array:
    """Return exp(−γ|a − b|²) of dense rows."""
    squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
    K: Array = np.exp(-gamma * squared)
    return K


def dice(A: Array, B: Array) -> Array:
    """Return 2|A∩B| / (|A| + |B|) of dense 0/1 rows, none of which is empty."""
    K: Array = 2 * (A @ B.T) / (A.sum(1)[:, None] + B.sum(1))
    return K


class NaiveIOKR:
    """IOKR with weights K_test,train (K_x + nλI)⁻¹ on all n training outputs."""

    def __init__(self, gamma: float, alpha: float) -> None:
        self.gamma = gamma
        self.alpha = alpha

    def fit(self, X: Array, Y: Array) -> "NaiveIOKR":
        """Invert K_x + nλI and form K_y."""
        self.X, self.Y = X, Y
        K_x = gaussian(X, X, self.gamma)
        self.W = np.linalg.inv(K_x + len(X) * self.alpha * np.eye(len(X)))
        self.K_y = dice(Y, Y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the training output that minimizes k(y,y) − 2⟨ĥ(x), ψ(y)⟩."""
        scores = gaussian(X, self.X, self.gamma) @ self.W @ self.K_y  # (tests, n)
        nearest = np.argmin(np.diag(self.K_y) - 2 * scores, axis=1)
        predicted: Array = self.Y[nearest]
        return predicted


class NaiveOEL0:
    """Algorithm 1 with c = 1: the p leading eigenvectors of the (n, n) Gram matrix of the fitted values."""

    def __init__(self, gamma: float, alpha: float, n_components: int) -> None:
        self.gamma = gamma
        self.alpha = alpha
        self.n_components = n_components

    def fit(self, X: Array, Y: Array) -> "NaiveOEL0":
        """Compute all eigenvectors of K_h = (W K_x)ᵀ K_y (W K_x) / n and keep the leading ones."""
        self.X, self.Y = X, Y
        n = len(X)
        K_x = gaussian(X, X, self.gamma)
        self.W = np.linalg.inv(K_x + n * self.alpha * np.eye(n))
        smoother = self.W @ K_x
        K_y = dice(Y, Y)
        mu, U = np.linalg.eigh(smoother.T @ K_y @ smoother / n)
        mu, U = mu[::-1][: self.n_components], U[:, ::-1][:, : self.n_components]
        self.G = K_y @ smoother @ (U / np.sqrt(mu * n))  # (n, p)  g(yᵢ)
        self.squared_norms = np.diag(K_y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the training output that minimizes k(y,y) − 2⟨z(x), g(y)⟩."""
        Z = gaussian(X, self.X, self.gamma) @ self.W @ self.G  # (tests, p)
        nearest = np.argmin(self.squared_norms - 2 * Z @ self.G.T, axis=1)
        predicted: Array = self.Y[nearest]
        return predicted
