"""The accuracy that landmarks cost: the distance to the exact answer against the numbers of input and output landmarks.

Predictions are compared through ⟨z(x), g(y)⟩ for test inputs and test outputs, which does not depend on the choice of
coordinates: relative difference in the Frobenius norm. Each figure is the median over seeds. The data is USPS if it is
in the data home, and scikit-learn's digits otherwise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from psilearn import OEL, Landmarks
from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss
from psilearn_lab.benchmarks.measurement import Figures, Run
from psilearn_lab.datasets import data_home, load_usps

METHODS = ("uniform", "kmeans++", "leverage", "pivoted")
SHARES = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
MAX_GROWTH = 1.1  # an error that grows by less counts as noise
MIN_ERROR = 1e-8  # smaller errors are rounding


@dataclass(frozen=True)
class Problem:
    """Pairs, outputs without inputs and tests, with suitable kernels and p."""

    name: str
    kernels: tuple[Gaussian, Gaussian]
    n_components: int
    X: Array
    Y: Array
    unlabeled: Array
    X_test: Array
    Y_test: Array

    def solve(self, **landmarks: Any) -> tuple[Array, float]:
        """Return ⟨z(x), g(y)⟩ of tests and the test loss."""
        model = OEL(*self.kernels, alpha=1e-4, n_components=self.n_components, supervision=0.15, **landmarks)
        model.fit(self.X, self.Y, unlabeled=self.unlabeled)
        loss = kernel_loss(self.Y_test, model.predict(self.X_test), self.kernels[1])
        return model.embed(self.X_test) @ model.transform_outputs(self.Y_test[:500]).T, float(loss)


def load_problem(quick: bool) -> Problem:
    """Return USPS halves, or scikit-learn's digits for quick runs and without USPS."""
    if (data_home() / "usps/usps.h5").exists() and not quick:
        usps = load_usps()
        pairs, others, test = usps.train[:1000], usps.train[-2000:], usps.test
        arrays = usps.X[pairs], usps.Y[pairs], usps.Y[others], usps.X[test], usps.Y[test]
        return Problem("USPS", (Gaussian(0.04), Gaussian(0.05)), 98, *arrays)
    pixels = load_digits().data / 16
    train, test = train_test_split(pixels, test_size=400, random_state=0)
    arrays = train[:500, :32], train[:500, 32:], train[500:, 32:], test[:, :32], test[:, 32:]
    return Problem("digits", (Gaussian(0.2), Gaussian(0.2)), 50, *arrays)


def measure(run: Run) -> Figures:
    """Print and return both tables."""
    problem = load_problem(run.quick)
    n, m = len(problem.X), len(problem.unlabeled)
    exact = problem.solve()
    figures: Figures = {"data": problem.name, "n": n, "m": m, "p": problem.n_components, "exact_loss": exact[1]}
    sizes_of = {
        "input_landmarks": (SHARES * n).astype(int).tolist(),
        "output_landmarks": (SHARES / 2 * (n + m)).astype(int).tolist(),
    }
    for side, sizes in sizes_of.items():
        figures[side] = _measure_side(run, problem, exact, side, run.select(sizes, sizes[1::2]))
    return figures


def _measure_side(run: Run, problem: Problem, exact: tuple[Array, float], side: str, sizes: list[int]) -> Figures:
    """Measure errors and losses for growing numbers of landmarks on one side."""
    scores, loss = exact
    norm = np.linalg.norm(scores)
    figures: Figures = {"sizes": sizes}
    rows, increases = [], []
    for method in METHODS:
        errors, gaps = [], []
        for size in sizes:
            answers = [problem.solve(**{side: Landmarks(size, method, seed)}) for seed in range(run.repeats)]
            errors.append(float(np.median([np.linalg.norm(s - scores) / norm for s, _ in answers])))
            gaps.append(float(np.median([other - loss for _, other in answers])))
        figures[method] = {"error": errors, "loss_gap": gaps}
        rows.append([method, *(f"{e:.1e} / {g:+.4f}" for e, g in zip(errors, gaps, strict=True))])
        increases += [
            f"{method} at {size}"
            for size, before, after in zip(sizes[1:], errors, errors[1:], strict=False)
            if after > MAX_GROWTH * max(before, MIN_ERROR)
        ]
    title = f"{problem.name}, {side}: relative error of ⟨z(x), g(y)⟩ / test loss above the exact {loss:.4f}"
    run.show_table(title, ["method", *(f"{size:,}" for size in sizes)], rows)
    found = f"the error grows: {', '.join(increases)}" if increases else "no increase"
    run.check_claim(f"the error decreases with {side}, up to a tenth of noise", not increases, found)
    return figures
