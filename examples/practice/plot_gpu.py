"""
The same model on a GPU
=======================

``device="cuda"`` moves the computation of a fit and of predictions to a GPU; everything else stays the same. Without a
GPU this example runs in NumPy and shows what a lower precision does there. On a machine with a GPU it compares the two.

Guide: :doc:`/gpu`.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from psilearn import OEL
from psilearn.kernels import Dice, Gaussian

plt.style.use("tableau-colorblind10")

# %%
# Find a device
# -------------
#
# psilearn imports torch only if a device is named, so torch need not be installed.

try:
    import torch

    device = "cuda" if torch.cuda.is_available() else None
except ImportError:
    device = None
print("device:", device or "none, NumPy computes")

# %%
# Fit and predict with growing data
# ---------------------------------

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
Y = (X @ rng.normal(size=(20, 15)) > 4).astype(int)
settings = {"NumPy, float64": {}, "NumPy, float32": {"dtype": "float32"}}
if device:
    settings |= {"GPU, float64": {"device": device}, "GPU, float32": {"device": device, "dtype": "float32"}}

numbers = [250, 500, 1000, 2000]
seconds = {name: [] for name in settings}
predictions = {}
for name, parameters in settings.items():
    model = OEL(Gaussian(0.02), Dice(), alpha=1e-4, n_components=50, output_landmarks=200, **parameters)
    model.fit(X[:250], Y[:250]).predict(X[2000:])  # the first call also starts the device
    for n in numbers:
        start = perf_counter()
        predictions[name] = model.fit(X[:n], Y[:n]).predict(X[2000:])
        seconds[name].append(perf_counter() - start)
    agree = np.mean(np.all(predictions[name] == predictions["NumPy, float64"], axis=1))
    print(f"{name}: {seconds[name][-1]:.2f} s for {numbers[-1]} pairs; {agree:.1%} of the predictions as in float64")

# %%
# A fitted model holds NumPy arrays wherever it was computed, so it can be saved on one machine and used on another:
# ``model.set_params(device=None)`` computes in NumPy again.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for color, marker, (name, times) in zip(("C0", "C4", "C1", "C5"), "osv^", seconds.items(), strict=False):
    ax.plot(numbers, times, color=color, marker=marker, label=name)
ax.set(xscale="log", yscale="log", xlabel="training pairs n", ylabel="seconds for fit and 1000 predictions")
ax.set_xticks(numbers, [str(n) for n in numbers])
ax.set_xticks([], minor=True)
ax.set_title("Time on this machine")
ax.legend()
plt.show()
