"""What landmarks cost in accuracy: the distance to the exact answer against q inputs and against r outputs.

Predictions are compared through ⟨z(x), g(y)⟩ for test inputs and test outputs, which does not depend on the choice of
coordinates: relative difference in the Frobenius norm. Each figure is the median over seeds. USPS halves where they are
in the data home, scikit-learn's digits otherwise.
"""

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks.report import Run
from psilearn import OEL, Landmarks
from psilearn.datasets import data_home, load_usps
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss

METHODS = ("uniform", "kmeans++", "leverage", "pivoted")
NOISE = 1.1  # a step up by a tenth of the error counts as noise


def data(quick: bool) -> dict[str, Any]:
    """Return pairs, outputs alone and tests, with the kernels that suit them."""
    if (data_home() / "usps/usps.h5").exists() and not quick:
        usps = load_usps()
        pairs, alone, test = usps.train[:1000], usps.train[-2000:], usps.test
        kernels = Gaussian(0.04), Gaussian(0.05), 1e-4
        arrays = usps.X[pairs], usps.Y[pairs], usps.Y[alone], usps.X[test], usps.Y[test]
        return {"name": "USPS", "kernels": kernels, "p": 98, "arrays": arrays}
    pixels = load_digits().data / 16
    train, test = train_test_split(pixels, test_size=400, random_state=0)
    arrays = train[:500, :32], train[:500, 32:], train[500:, 32:], test[:, :32], test[:, 32:]
    return {"name": "digits", "kernels": (Gaussian(0.2), Gaussian(0.2), 1e-4), "p": 50, "arrays": arrays}


def measure(run: Run) -> dict[str, Any]:
    """Print and return both tables."""
    problem = data(run.quick)
    X, Y, U, X_test, Y_test = problem["arrays"]
    kernels, p = problem["kernels"], problem["p"]

    def answer(**landmarks: Any) -> tuple[np.ndarray, float]:
        model = OEL(*kernels, p, 0.15, **landmarks).fit(X, Y, unlabeled=U)
        loss = kernel_loss(Y_test, model.predict(X_test), kernels[1])
        return model.embed(X_test) @ model.transform_outputs(Y_test[:500]).T, float(loss)

    scores, loss = answer()
    norm = np.linalg.norm(scores)
    figures: dict[str, Any] = {"data": problem["name"], "n": len(X), "m": len(U), "p": p, "exact_loss": loss}
    share = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
    plans = {
        "input_landmarks": (share * len(X)).astype(int).tolist(),
        "output_landmarks": (share / 2 * (len(X) + len(U))).astype(int).tolist(),
    }
    for side, sizes in plans.items():
        sizes = run.size(sizes, sizes[1::2])
        figures[side] = {"sizes": sizes}
        rows, steps_up = [], []
        for method in METHODS:
            errors, gaps = [], []
            for size in sizes:
                seeds = [answer(**{side: Landmarks(size, method, seed)}) for seed in range(run.repeats)]
                errors.append(float(np.median([np.linalg.norm(s - scores) / norm for s, _ in seeds])))
                gaps.append(float(np.median([other - loss for _, other in seeds])))
            figures[side][method] = {"error": errors, "loss_gap": gaps}
            rows.append([method, *(f"{e:.1e} / {g:+.4f}" for e, g in zip(errors, gaps, strict=True))])
            floor = 1e-8  # below it only rounding is left
            steps_up += [
                f"{method} at {b}"
                for b, before, after in zip(sizes[1:], errors, errors[1:], strict=False)
                if after > NOISE * max(before, floor)
            ]
        title = f"{problem['name']}, {side}: relative error of ⟨z(x), g(y)⟩ / test loss above the exact {loss:.4f}"
        run.table(title, ["method", *(f"{size:,}" for size in sizes)], rows)
        found = "no step up" if not steps_up else f"steps up: {', '.join(steps_up)}"
        run.claim(f"the error falls with {side}, within a tenth of noise", not steps_up, found)
    return figures
