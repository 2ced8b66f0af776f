"""The cost table: seconds, flops, bytes and the share of the machine's speed of fits and predictions, and their growth.

USPS halves (1000 pairs, 6000 unlabeled outputs), exact and with 500 output landmarks, and Bibtex (4880 pairs), both in
float64. Then each size of USPS is halved: the exponent of the time in that size, next to that of the counted flops.
Counted are matrix products and factorizations. Kernel values of sparse rows, exponentials, checks and selection are
not, so they appear as a lower share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from psilearn import OEL
from psilearn.kernels import Dice, Gaussian
from psilearn.memory import fit_bytes, predict_bytes
from psilearn_lab.benchmarks import bibtex, usps
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, synchronize, time_in_turns, warm_up
from psilearn_lab.datasets import load

NEEDS = (*usps.NEEDS, *bibtex.NEEDS)
KRYLOV_BLOCKS = 10  # blocks of 1.1 p vectors that the directions take on USPS
LANDMARKS = 500


@dataclass(frozen=True)
class Cost:
    """The cost of one step: measured seconds, and what was counted.

    ``operations`` maps the name of a rate of the machine to flops of matrix products and factorizations, or to bytes of
    copies. It is empty if they are not counted.
    """

    name: str
    seconds: float
    operations: Mapping[str, float]
    n_bytes: float | None  # of memory at the peak, predicted by psilearn.memory or measured on the device
    growth: str = ""  # the leading term of the flops

    def share(self, rates: Mapping[str, float]) -> float:
        """Return the time of the same operations at the highest rates, divided by the measured time."""
        return sum(amount / rates[name] for name, amount in self.operations.items()) / self.seconds


def show_costs(run: Run, title: str, costs: Sequence[Cost]) -> Figures:
    """Print one row per step and return the figures; the ceiling is the speed of this machine in this run."""
    figures: Figures = {}
    for cost in costs:
        flops = sum(amount for name, amount in cost.operations.items() if name in run.gemm)
        figures[cost.name] = {
            "seconds": cost.seconds,
            "gflop": flops / 1e9 if cost.operations else None,
            "gigabytes": None if cost.n_bytes is None else cost.n_bytes / 1e9,
            "percent_of_ceiling": 100 * cost.share(run.rates) if cost.operations else None,
        }
    columns = ["step", "seconds", "GFLOP", "peak GB", "% of the highest rates"]
    rows = [
        [name, *("" if value is None else value for value in found.values()), cost.growth]
        for cost, (name, found) in zip(costs, figures.items(), strict=True)
    ]
    run.show_table(title, [*columns, "flops grow as"], rows)
    return figures


@dataclass(frozen=True)
class Sizes:
    """The sizes of a fit and a prediction."""

    n: int  # pairs
    d: int  # distinct outputs, which are the candidates too
    r: int  # output coordinates: the rank, or the landmarks
    p: int
    tests: int
    n_labeled: int  # distinct labeled outputs
    inputs: int  # numbers in an input, 0 if sparse
    outputs: int  # numbers in an output, 0 if sparse

    def regression_flops(self, n_targets: int) -> float:
        """Return the flops of K_x, its Cholesky factor and the solution for targets."""
        return self.n**2 * self.inputs + self.n**3 / 3 + 2 * self.n**2 * n_targets

    def gram_fit_flops(self) -> float:
        """Return the flops of an exact fit that uses the Gram matrix of the outputs without coordinates."""
        width = 1.1 * self.p
        products = 2 * self.d**2 * (KRYLOV_BLOCKS * width + self.p)
        orthogonalization = 2 * self.d * (KRYLOV_BLOCKS * width) ** 2
        return self.d**2 * self.outputs + self.regression_flops(self.n_labeled) + products + orthogonalization

    def coordinates_fit_flops(self) -> float:
        """Return the flops of a fit in r coordinates of all d outputs, with a dense eigensolver."""
        coordinates = self.d**2 * self.outputs + self.d**2 * self.r - self.d * self.r**2 + self.r**3 / 3
        directions = self.n * self.r**2 + 4 / 3 * self.r**3 + 2 * self.r**2 * self.p
        return coordinates + self.regression_flops(self.r) + directions + 2 * self.d * self.r * self.p

    def landmark_fit_flops(self) -> float:
        """Return the flops of a fit with r output landmarks, with a dense eigensolver."""
        values = 2 * (self.n + 2 * self.d) * self.r * self.outputs + (2 * self.n + self.d) * self.r**2
        moments = (self.n + self.d) * self.r**2 + self.n * self.r**2
        return values + moments + self.regression_flops(self.r) + 10 * self.r**3 + 2 * self.d * self.r * self.p

    def predict_flops(self) -> dict[str, float]:
        """Return the flops of a prediction: the regression in float64 and the search in float32."""
        regression = 2 * self.tests * self.n * (self.inputs + self.p)
        return {"float64": regression, "float32": 2 * self.tests * self.d * (self.p + 2)}


def measure(run: Run) -> Figures:
    """Print and return the table and the growth."""
    warm_up()
    problem = load_usps_problem(run)
    sizes = problem["sizes"]
    costs = [
        *measure_model(run, "USPS, exact", problem, sizes, sizes.gram_fit_flops(), "22 d²p", {}),
        *measure_landmarks(run, problem, sizes),
        *measure_bibtex(run),
    ]
    threads = "" if run.device is not None else ", NumPy"
    figures: Figures = {"costs": show_costs(run, f"costs in float64{threads}", costs)}
    figures["growth"] = measure_growth(run, problem)
    return figures


def load_usps_problem(run: Run) -> dict[str, Any]:
    """Return the data, the model and the sizes of USPS."""
    data, (n, m, tests, p) = load("usps"), run.select((1000, 6000, 2007, 98), (200, 2600, 200, 30))
    X, Y, U = data.X[data.train[:n]], data.Y[data.train[:n]], data.Y[data.train[-m:]]
    model = OEL(usps.INPUT, usps.OUTPUT, alpha=usps.ALPHA, n_components=p, supervision=usps.SUPERVISION)
    sizes = Sizes(n, n + m, n + m, p, tests, n, X.shape[1], Y.shape[1])
    return {"model": model, "X": X, "Y": Y, "U": U, "X_test": data.X[data.test[:tests]], "sizes": sizes}


def measure_landmarks(run: Run, problem: dict[str, Any], exact: Sizes) -> list[Cost]:
    """Return the costs of USPS with output landmarks."""
    r = run.select(LANDMARKS, 100)
    sizes = replace(exact, r=r)
    name, growth = f"USPS, {r} output landmarks", "2 (d + 2n) r² + 4 d r·128"
    return measure_model(run, name, problem, sizes, sizes.landmark_fit_flops(), growth, {"output_landmarks": r})


def measure_bibtex(run: Run) -> list[Cost]:
    """Return the costs of OEL₀ on Bibtex, whose inputs and outputs are sparse."""
    data = load("bibtex")
    train, test = data.train[: run.select(None, 400)], data.test[: run.select(None, 200)]
    X, Y, p = normalize(data.X), data.Y, run.select(200, 50)
    model = OEL(Gaussian(bibtex.GAMMA), Dice(), alpha=bibtex.ALPHA, n_components=p, supervision=1.0)
    fitted = model.fit(X[train], Y[train])
    d = len(fitted.candidates_)
    sizes = Sizes(len(train), d, len(fitted.embedding_.basis), p, len(test), d, 0, 0)
    problem = {"model": model, "X": X[train], "Y": Y[train], "U": None, "X_test": X[test]}
    return measure_model(run, "Bibtex, exact", problem, sizes, sizes.coordinates_fit_flops(), "2 n²r + n r²", {})


def measure_model(
    run: Run,
    name: str,
    problem: dict[str, Any],
    sizes: Sizes,
    fit_flops: float,
    growth: str,
    parameters: dict[str, Any],
) -> list[Cost]:
    """Return the costs of a fit and of a prediction."""
    seconds = time_model(run, problem, parameters)
    supervision, landmarks = problem["model"].supervision, parameters.get("output_landmarks")
    options: dict[str, Any] = {"n_labeled": sizes.n_labeled, "rank": sizes.r, "output_landmarks": landmarks}
    fit = fit_bytes(sizes.n, sizes.d, n_components=sizes.p, supervision=supervision, **options)
    predict = predict_bytes(sizes.tests, sizes.p, n_anchors=sizes.n, n_candidates=sizes.d)
    return [
        Cost(f"{name}: fit", seconds["fit"], {"float64": fit_flops}, fit, growth),
        Cost(f"{name}: predict", seconds["predict"], sizes.predict_flops(), predict, "2 tests·(n + d)·p"),
    ]


def time_model(run: Run, problem: dict[str, Any], parameters: dict[str, Any]) -> dict[str, float]:
    """Return the median seconds of a fit and of a prediction."""

    def run_turn(clock: Clock) -> None:
        model = problem["model"].set_params(output_landmarks=None).set_params(**parameters)
        with clock("fit"):
            model.fit(problem["X"], problem["Y"], unlabeled=problem["U"])
            synchronize()
        with clock("predict"):
            model.predict(problem["X_test"])

    return time_in_turns({"model": run_turn}, run.repeats)["model"].seconds


def measure_growth(run: Run, problem: dict[str, Any]) -> Figures:
    """Halve one size of USPS at a time; print and return the exponents of the seconds and of the flops."""
    full = problem["sizes"]
    reference = _seconds_and_flops(run, problem, full)
    halved = {
        "n": replace(full, n=full.n // 2, n_labeled=full.n // 2, d=full.d - full.n // 2),
        "m": replace(full, d=full.n + (full.d - full.n) // 2),
        "p": replace(full, p=full.p // 2),
        "tests": replace(full, tests=full.tests // 2),
    }
    figures: Figures = {}
    for name, sizes in halved.items():
        found = _seconds_and_flops(run, problem, sizes)
        exponents = {key: float(np.log2(reference[key] / found[key])) for key in found}
        figures[name] = exponents
    columns = ["size that is halved", "fit, seconds", "fit, flops", "predict, seconds", "predict, flops"]
    run.show_table("exponents of growth, USPS, exact", columns, [[name, *f.values()] for name, f in figures.items()])
    return figures


def _seconds_and_flops(run: Run, problem: dict[str, Any], sizes: Sizes) -> dict[str, float]:
    n, m = sizes.n, sizes.d - sizes.n
    part = {
        "model": problem["model"].set_params(n_components=sizes.p),
        "X": problem["X"][:n],
        "Y": problem["Y"][:n],
        "U": problem["U"][:m],
        "X_test": problem["X_test"][: sizes.tests],
    }
    seconds = time_model(run, part, {})
    flops = {"fit": sizes.gram_fit_flops(), "predict": sum(sizes.predict_flops().values())}
    return {f"{step}, {kind}": v[step] for step in flops for kind, v in (("seconds", seconds), ("flops", flops))}
