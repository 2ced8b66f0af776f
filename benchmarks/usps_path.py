"""The whole hyper-parameter grid on USPS against one single fit, and what validation chooses.

    PSILEARN_DATA=... python -m benchmarks.usps_path

The paper's protocol: 1000 pairs, 6000 lower halves alone, five random 80/20 splits of the 1000 pairs, closed-form
validation error; then one fit with the chosen parameters and one look at the 2007 test images. 6 widths × 12 λ × 12 p ×
6 c × 5 splits = 25,920 settings. The price of one setting is measured beside it in the same run: fit OEL on a split's
800 pairs with all unlabeled outputs, and validate on its 200.
"""

import json
import warnings
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import ShuffleSplit

from benchmarks.usps_grid import ALPHAS, GAMMAS, SIZES, SUPERVISIONS
from psilearn import IOKR, IOKRCV, KDE, OEL, OELCV
from psilearn.datasets import load_usps
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss

OUTPUT_KERNEL = Gaussian(0.05)
PAPER = {"IOKR": 0.751, "KDE": 0.764, "OEL₀": 0.734, "OEL": 0.725}
SPLITS = ShuffleSplit(5, test_size=0.2, random_state=0)

console = Console()
usps = load_usps()
pairs, alone = usps.train[:1000], usps.train[-6000:]
X, Y, U = usps.X[pairs], usps.Y[pairs], usps.Y[alone]
kernels = [Gaussian(gamma) for gamma in GAMMAS]


def fit_and_validate(train: np.ndarray, held: np.ndarray, **parameters: object) -> tuple[float, float]:
    """Return the validation error of one setting, and the seconds it took."""
    start = perf_counter()
    model = OEL(output_kernel=OUTPUT_KERNEL, **parameters).fit(X[train], Y[train], unlabeled=U)
    Z, g = model.embed(X[held]), model.transform_outputs(Y[held])
    error = float(np.mean((Z**2 - 2 * Z * g).sum(axis=1) + model.output_kernel_.diag(Y[held])))
    return error, perf_counter() - start


start = perf_counter()
search = OELCV(kernels, OUTPUT_KERNEL, ALPHAS, SIZES, SUPERVISIONS, cv=SPLITS, verbose=1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # of edges, which are printed below
    search.fit(X, Y, unlabeled=U)
whole = perf_counter() - start
iokr = IOKRCV(kernels, OUTPUT_KERNEL, ALPHAS, cv=SPLITS).fit(X, Y, unlabeled=U)
results = search.cv_results_
n_settings = len(results["params"]) * SPLITS.get_n_splits()

singles, differences = [], []
typical = {"supervision": 0.15, "n_components": 99, "alpha": float(ALPHAS[5]), "input_kernel": kernels[2]}
row = next(
    i
    for i, params in enumerate(results["params"])
    if all(repr(params[name]) == repr(value) for name, value in typical.items() if name != "n_components")
    and abs(params["n_components"] - typical["n_components"]) < 3
)
typical["n_components"] = results["params"][row]["n_components"]
for j, (train, held) in enumerate(SPLITS.split(X)):
    error, seconds = fit_and_validate(train, held, **typical)
    singles.append(seconds)
    differences.append(abs(error + results[f"split{j}_test_score"][row]))
single = float(np.median(singles))
console.print(
    f"{n_settings:,} settings in {whole:.0f} s; one fit-and-validate {single:.1f} s (median of 5). A split's "
    f"{n_settings // 5:,} settings cost {whole / 5 / single:.1f} single ones; one by one they would cost "
    f"{n_settings * single / 3600:.0f} hours. Largest difference of the two validation errors: {max(differences):.1e}."
)
for edge in search.edges_:
    console.print(f"edge: {edge}")

kde = search.best_where(supervision=0.0).params
del kde["supervision"]
chosen = {
    "IOKR": IOKR(**iokr.best_params_),
    "KDE": KDE(**kde),
    "OEL₀": OEL(**search.best_where(supervision=1.0).params),
    "OEL": OEL(**search.best_params_),
}
table = Table(
    "method", "test RBF loss", "the paper", "γ_x", "λ", "p", "c", title="USPS, parameters chosen by validation"
)
for name, model in chosen.items():
    model.fit(X, Y, unlabeled=U)
    loss = kernel_loss(usps.Y[usps.test], model.predict(usps.X[usps.test]), OUTPUT_KERNEL)
    parameters = model.get_params()
    table.add_row(
        name,
        f"{loss:.4f} ± {loss.standard_error:.4f}",
        f"{PAPER[name]:.3f}",
        f"{parameters['input_kernel__gamma']:g}",
        f"{parameters['alpha']:.2g}",
        str(model.n_components_),
        f"{parameters.get('supervision', '')}",
    )
console.print(table)
console.print_json(
    json.dumps({"grid": whole, "single": singles, "ratio": whole / 5 / single, "max difference": max(differences)})
)
