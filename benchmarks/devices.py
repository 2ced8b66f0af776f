"""The same predictions on a device as in NumPy, and no memory of the device kept.

USPS halves and Bibtex at full size: IOKR, KDE and OEL in float64, and OEL in each other precision; the share of
identical predictions, and how far apart the distances of the others are. Predictions that differ by no more than
rounding are ties.
"""

import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.report import Run
from psilearn import IOKR, KDE, OEL
from psilearn._backend import find_device, on_host
from psilearn.datasets import load_bibtex, load_usps
from psilearn.kernels import Dice, Gaussian

NEEDS = ("usps/usps.h5", "mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
ROUNDING = 1e-9  # relative difference of two distances that counts as a tie in float64


def problems(run: Run) -> dict[str, Any]:
    """Return the kernels, λ, p and data of both problems."""
    usps, bibtex = load_usps(), load_bibtex()
    n, m, q = run.size((1000, 6000, None), (150, 300, 100))
    pairs, alone, test = usps.train[:n], usps.train[-m:], usps.test[:q]
    X = normalize(bibtex.X)
    train, tested = bibtex.train[: run.size(None, 300)], bibtex.test[:q]
    return {
        "USPS": (Gaussian(0.04), Gaussian(0.05), 1e-4, run.size(98, 30), usps.X[pairs], usps.Y[pairs], usps.Y[alone],
                 usps.X[test]),
        "Bibtex": (Gaussian(0.5), Dice(), 1e-5, run.size(200, 30), X[train], bibtex.Y[train], None, X[tested]),
    }  # fmt: skip


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds of both and the share of identical predictions."""
    if run.device is None:
        run.say("devices: needs --device cpu or --device cuda")
        return {}
    figures: dict[str, Any] = {}
    rows = []
    for name, (kernel_x, kernel_y, alpha, p, X, Y, U, X_test) in problems(run).items():
        models = {
            "IOKR": IOKR(kernel_x, kernel_y, alpha),
            "KDE": KDE(kernel_x, kernel_y, alpha, p),
            "OEL": OEL(kernel_x, kernel_y, alpha, p, 0.15 if U is not None else 1.0),
            "OEL, landmarks": OEL(
                kernel_x, kernel_y, alpha, p, 0.5, input_landmarks=run.size(500, 60), output_landmarks=run.size(500, 60)
            ),
            "OEL, float32": OEL(kernel_x, kernel_y, alpha, p, 0.5, dtype="float32"),
            "OEL, tf32": OEL(kernel_x, kernel_y, alpha, p, 0.5, dtype="tf32"),
        }
        for label, model in models.items():
            found = []
            for place in ("NumPy", run.device):
                seconds = [perf_counter()]
                if place == "NumPy":
                    with on_host():
                        model.fit(X, Y, unlabeled=U)
                        seconds.append(perf_counter())
                        top = model.predict_topk(X_test, 2)
                else:
                    model.fit(X, Y, unlabeled=U)
                    seconds.append(perf_counter())
                    top = model.predict_topk(X_test, 2)
                found.append((top, *np.diff([*seconds, perf_counter()])))
            (ours, fit, decode), (theirs, device_fit, device_decode) = found
            differ = ours.indices[:, 0] != theirs.indices[:, 0]
            gap = np.abs(ours.distances - theirs.distances) / (1 + ours.distances)
            margins = ours.margins[differ] / (1 + ours.distances[differ, 0])
            figures[f"{name}, {label}"] = {
                "identical": float(1 - differ.mean()),
                "largest gap": float(gap.max()),
                "largest margin that changed": float(margins.max(initial=0.0)),
                "NumPy": [fit, decode],
                "device": [device_fit, device_decode],
            }
            rows.append([f"{name}, {label}", f"{100 * (1 - differ.mean()):.2f} %", gap.max(), margins.max(initial=0.0),
                         fit, decode, device_fit, device_decode])  # fmt: skip
            if "float32" not in label and "tf32" not in label:
                met = differ.mean() <= 0.001 and margins.max(initial=0.0) < ROUNDING
                run.claim(
                    f"{name}, {label}: the same predictions but for ties", met, f"{100 * (1 - differ.mean()):.2f} %"
                )
    columns = ["model", "identical", "distances differ by", "largest margin that changed", "NumPy fit s", "decode s",
               f"{run.device} fit s", "decode s"]  # fmt: skip
    run.table(f"predictions in NumPy and on {run.device}", columns, rows)
    figures["memory"] = _memory(run)
    return figures


def _memory(run: Run) -> dict[str, Any]:
    """Look whether importing takes torch, and whether a deleted model leaves memory on the GPU."""
    code = "import sys, psilearn, psilearn.estimators; print('torch' in sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    run.claim("importing psilearn imports no torch", imported == "False", f"imported: {imported}")
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
    run.claim(
        "a deleted model leaves nothing on the GPU", kept[0] == kept[1] == held, f"{held:,} bytes, {kept[1]:,} after"
    )
    return {"imported": imported, "held by a model": held - kept[0], "kept": kept[1] - kept[0]}
