"""The whole hyper-parameter grid on USPS next to single fits, and the parameters that validation chooses.

    PSILEARN_DATA=... python -m psilearn_lab.benchmarks.usps_path

The paper's protocol: 1000 pairs, 6000 lower halves without upper halves, five random 80/20 splits of the 1000 pairs,
closed-form validation error; then one fit with the chosen parameters and one test on the 2007 test images. 6 widths ×
12 λ × 12 p × 6 c × 5 splits = 25,920 settings. The cost of a single setting is measured in the same run: fit OEL on the
800 pairs of a split with all unlabeled outputs, and validate on its 200 others.
"""

import json
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import ShuffleSplit
from sklearn.utils import Bunch

from psilearn import IOKR, IOKRCV, KDE, OEL, OELCV
from psilearn._linalg import Array
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss
from psilearn_lab.benchmarks.usps_grid import ALPHAS, GAMMAS, N_SPLITS, OUTPUT_KERNEL, SIZES, SUPERVISIONS
from psilearn_lab.datasets import load_usps

PAPER = {"IOKR": 0.751, "KDE": 0.764, "OEL₀": 0.734, "OEL": 0.725}
SPLITS = ShuffleSplit(N_SPLITS, test_size=0.2, random_state=0)
INPUT_KERNELS = [Gaussian(gamma) for gamma in GAMMAS]
TYPICAL = {"supervision": 0.15, "n_components": 99, "alpha": float(ALPHAS[5]), "input_kernel": INPUT_KERNELS[2]}


@dataclass(frozen=True)
class Halves:
    """Pairs of upper and lower halves, and lower halves without upper halves."""

    X: Array
    Y: Array
    unlabeled: Array


def main() -> None:
    """Search the grid, compare its cost with single fits, and test the chosen parameters."""
    console, usps = Console(), load_usps()
    pairs, others = usps.train[:1000], usps.train[-6000:]
    halves = Halves(usps.X[pairs], usps.Y[pairs], usps.Y[others])
    search, grid_seconds = run_search(halves)
    n_settings = len(search.cv_results_["params"]) * N_SPLITS
    singles, difference = fit_typical_setting(search, halves)
    single = float(np.median(singles))
    ratio = grid_seconds / N_SPLITS / single
    console.print(
        f"{n_settings:,} settings in {grid_seconds:.0f} s; one fit and validation {single:.1f} s (median of "
        f"{N_SPLITS}). The {n_settings // N_SPLITS:,} settings of a split cost as much as {ratio:.1f} single ones; one "
        f"by one they would take {n_settings * single / 3600:.0f} hours. Largest difference of the two validation "
        f"errors: {difference:.1e}."
    )
    for edge in search.edges_:
        console.print(f"edge: {edge}")
    console.print(measure_test_losses(choose_models(search, halves), halves, usps))
    figures = {"grid": grid_seconds, "single": singles, "ratio": ratio, "max difference": difference}
    console.print_json(json.dumps(figures))


def run_search(halves: Halves) -> tuple[OELCV, float]:
    """Return the search of the whole grid, and its seconds."""
    start = perf_counter()
    search = OELCV(
        INPUT_KERNELS,
        OUTPUT_KERNEL,
        alphas=ALPHAS,
        n_components=SIZES,
        supervisions=SUPERVISIONS,
        cv=SPLITS,
        verbose=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about edges, which are printed
        search.fit(halves.X, halves.Y, unlabeled=halves.unlabeled)
    return search, perf_counter() - start


def fit_typical_setting(search: OELCV, halves: Halves) -> tuple[list[float], float]:
    """Fit one setting on each split; return the seconds, and the largest difference from the errors of the search."""
    results = search.cv_results_
    row = find_typical_row(results["params"])
    setting = {**TYPICAL, "n_components": results["params"][row]["n_components"]}
    seconds, differences = [], []
    for j, (train, held_out) in enumerate(SPLITS.split(halves.X)):
        error, took = fit_and_validate(halves, train, held_out, setting)
        seconds.append(took)
        differences.append(abs(error + results[f"split{j}_test_score"][row]))
    return seconds, max(differences)


def find_typical_row(settings: list[dict[str, Any]]) -> int:
    """Return the row of the typical setting; its p is near 99."""
    return next(
        i
        for i, params in enumerate(settings)
        if all(repr(params[name]) == repr(value) for name, value in TYPICAL.items() if name != "n_components")
        and abs(params["n_components"] - TYPICAL["n_components"]) < 3
    )


def fit_and_validate(
    halves: Halves, train: np.ndarray, held_out: np.ndarray, parameters: dict[str, Any]
) -> tuple[float, float]:
    """Return the validation error of one setting, and its seconds."""
    start = perf_counter()
    X, Y = halves.X, halves.Y
    model = OEL(output_kernel=OUTPUT_KERNEL, **parameters).fit(X[train], Y[train], unlabeled=halves.unlabeled)
    Z, g = model.embed(X[held_out]), model.transform_outputs(Y[held_out])
    error = float(np.mean((Z**2 - 2 * Z * g).sum(axis=1) + model.output_kernel_.diag(Y[held_out])))
    return error, perf_counter() - start


def choose_models(search: OELCV, halves: Halves) -> dict[str, IOKR | KDE | OEL]:
    """Return the unfitted models with the parameters that validation chooses."""
    iokr = IOKRCV(INPUT_KERNELS, OUTPUT_KERNEL, alphas=ALPHAS, cv=SPLITS)
    iokr.fit(halves.X, halves.Y, unlabeled=halves.unlabeled)
    kde = search.best_where(supervision=0.0).params
    return {
        "IOKR": IOKR(**iokr.best_params_),
        "KDE": KDE(**{name: value for name, value in kde.items() if name != "supervision"}),
        "OEL₀": OEL(**search.best_where(supervision=1.0).params),
        "OEL": OEL(**search.best_params_),
    }


def measure_test_losses(models: dict[str, IOKR | KDE | OEL], halves: Halves, usps: Bunch) -> Table:
    """Fit the models and return a table of their test losses."""
    columns = ("method", "test RBF loss", "paper", "γ_x", "λ", "p", "c")
    table = Table(*columns, title="USPS, parameters chosen by validation")
    for name, model in models.items():
        model.fit(halves.X, halves.Y, unlabeled=halves.unlabeled)
        loss = kernel_loss(usps.Y[usps.test], model.predict(usps.X[usps.test]), OUTPUT_KERNEL)
        parameters = model.get_params()
        table.add_row(
            name,
            f"{loss:.4f} ± {loss.standard_error:.4f}",
            f"{PAPER[name]:.3f}",
            f"{parameters['input_kernel__gamma']:g}",
            f"{parameters['alpha']:.2g}",
            str(model.n_components_),
            str(parameters.get("supervision", "")),
        )
    return table


if __name__ == "__main__":
    main()
