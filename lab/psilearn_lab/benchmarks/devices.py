"""The same predictions on a device as in NumPy, and no memory kept on the device.

USPS halves and Bibtex at full size: IOKR, KDE and OEL in float64, and OEL in the other precisions. Reported are the
share of identical predictions, and how far apart the distances of the others are. Predictions whose distances differ
by no more than rounding are ties.
"""

import subprocess
import sys
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from psilearn import IOKR, KDE, OEL
from psilearn.decoding import TopK
from psilearn.kernels import Dice, Gaussian, Kernel
from psilearn.utils import Samples
from psilearn_lab.benchmarks.device import compute_on, find_device
from psilearn_lab.benchmarks.measurement import Figures, Run
from psilearn_lab.datasets import load_bibtex, load_usps

NEEDS = ("usps/usps.h5", "mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
MAX_TIE = 1e-9  # relative difference of two distances that counts as a tie in float64
MAX_DIFFERENT = 0.001  # share of predictions that may differ by a tie
APPROXIMATE = ("float32", "tf32")


@dataclass(frozen=True)
class Problem:
    """Kernels, parameters and data."""

    input_kernel: Kernel
    output_kernel: Kernel
    alpha: float
    n_components: int
    X: Samples
    Y: Samples
    unlabeled: Samples | None
    X_test: Samples

    def make_models(self, n_landmarks: int) -> dict[str, IOKR | KDE | OEL]:
        """Return the models that are compared."""
        base: dict[str, Any] = {
            "input_kernel": self.input_kernel,
            "output_kernel": self.output_kernel,
            "alpha": self.alpha,
        }
        size: dict[str, Any] = {"n_components": self.n_components}
        landmarks: dict[str, Any] = {"input_landmarks": n_landmarks, "output_landmarks": n_landmarks}
        return {
            "IOKR": IOKR(**base),
            "KDE": KDE(**base, **size),
            "OEL": OEL(**base, **size, supervision=0.15 if self.unlabeled is not None else 1.0),
            "OEL, landmarks": OEL(**base, **size, supervision=0.5, **landmarks),
            **{f"OEL, {dtype}": OEL(**base, **size, supervision=0.5, dtype=dtype) for dtype in APPROXIMATE},
        }

    def fit_and_predict(self, model: IOKR | KDE | OEL) -> tuple[TopK, float, float]:
        """Return the two nearest candidates of each test, and the seconds of fit and prediction."""
        start = perf_counter()
        model.fit(self.X, self.Y, unlabeled=self.unlabeled)
        fitted = perf_counter()
        top = model.predict_topk(self.X_test, 2)
        return top, fitted - start, perf_counter() - fitted


def load_problems(run: Run) -> dict[str, Problem]:
    """Return both problems."""
    usps, bibtex = load_usps(), load_bibtex()
    n, m, q = run.select((1000, 6000, None), (150, 300, 100))
    pairs, others, test = usps.train[:n], usps.train[-m:], usps.test[:q]
    usps_data = usps.X[pairs], usps.Y[pairs], usps.Y[others], usps.X[test]
    X = normalize(bibtex.X)
    train = bibtex.train[: run.select(None, 300)]
    bibtex_data = X[train], bibtex.Y[train], None, X[bibtex.test[:q]]
    return {
        "USPS": Problem(Gaussian(0.04), Gaussian(0.05), 1e-4, run.select(98, 30), *usps_data),
        "Bibtex": Problem(Gaussian(0.5), Dice(), 1e-5, run.select(200, 30), *bibtex_data),
    }


def measure(run: Run) -> Figures:
    """Print and return seconds of both and the share of identical predictions."""
    if run.device is None:
        run.log("devices: needs --device cpu or --device cuda")
        return {}
    figures: Figures = {}
    for name, problem in load_problems(run).items():
        for label, model in problem.make_models(run.select(500, 60)).items():
            figures[f"{name}, {label}"] = _compare(problem, model)
    _report(run, figures)
    figures["memory"] = _measure_memory(run)
    return figures


def _compare(problem: Problem, model: IOKR | KDE | OEL) -> Figures:
    """Fit and predict in NumPy and on the device of the run, and compare the predictions."""
    with compute_on(None):
        host, *host_seconds = problem.fit_and_predict(model)
    device, *device_seconds = problem.fit_and_predict(model)
    differ = host.indices[:, 0] != device.indices[:, 0]
    gap = np.abs(host.distances - device.distances) / (1 + host.distances)
    margins = host.margins[differ] / (1 + host.distances[differ, 0])
    return {
        "identical": float(1 - differ.mean()),
        "largest gap": float(gap.max()),
        "largest margin that changed": float(margins.max(initial=0.0)),
        "NumPy": host_seconds,
        "device": device_seconds,
    }


def _report(run: Run, figures: Figures) -> None:
    """Print the table and check that only ties differ."""
    rows = []
    for name, f in figures.items():
        identical, margin = f["identical"], f["largest margin that changed"]
        share = f"{100 * identical:.2f} %"
        rows.append([name, share, f["largest gap"], margin, *f["NumPy"], *f["device"]])
        if not name.endswith(APPROXIMATE):
            met = 1 - identical <= MAX_DIFFERENT and margin < MAX_TIE
            run.check_claim(f"{name}: the same predictions except for ties", met, share)
    columns = ["model", "identical", "distances differ by", "largest margin that changed"]
    columns += ["NumPy fit s", "decode s", f"{run.device} fit s", "decode s"]
    run.show_table(f"predictions in NumPy and on {run.device}", columns, rows)


def _measure_memory(run: Run) -> Figures:
    """Check that importing psilearn does not import torch, and that a deleted model leaves no memory on the GPU."""
    code = "import sys, psilearn, psilearn.estimators; print('torch' in sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    run.check_claim("importing psilearn does not import torch", imported == "False", f"imported: {imported}")
    if run.device == "cpu":
        return {"imported": imported}
    import torch

    device = find_device(run.device)
    X = np.random.default_rng(0).standard_normal((2000, 20))
    kept = []
    for _ in range(2):  # the first turn leaves the workspaces of torch's libraries
        model = OEL(n_components=20, input_landmarks=500, output_landmarks=500).fit(X, X, unlabeled=X + 0.1)
        model.predict(X)
        held = torch.cuda.memory_allocated(device)
        del model
        kept.append(torch.cuda.memory_allocated(device))
    found = f"{held:,} bytes, {kept[1]:,} after"
    run.check_claim("a deleted model leaves nothing on the GPU", kept[0] == kept[1] == held, found)
    return {"imported": imported, "held by a model": held - kept[0], "kept": kept[1] - kept[0]}
