"""
Save a model, load it elsewhere
===============================

``save_model`` writes one safetensors file: arrays, and the classes and parameters as JSON, with a SHA-256 of every
byte. Nothing in it is a pickle, so loading a model executes no code, and a damaged file is noticed. This example looks
into such a file, and shows what the dimension of the embedding and landmarks contribute to its size.

Guide: :doc:`/saving`.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from safetensors import safe_open
from sklearn.datasets import load_digits

from psilearn import IOKR, OEL, load_model, save_model
from psilearn.io import read_notes
from psilearn.kernels import Gaussian

plt.style.use("tableau-colorblind10")
images = load_digits().data[np.random.default_rng(0).permutation(1797)] / 16
X, Y = images[:, :32], images[:, 32:]
n = 600

# %%
# Save, look, load
# ----------------

model = OEL(Gaussian(0.2), Gaussian(0.5), alpha=1e-3, n_components=40).fit(X[:n], Y[:n])
with tempfile.TemporaryDirectory() as temporary:
    path = Path(temporary, "model.psi")
    save_model(model, path, notes={"data": "halves of digits", "pairs": n})
    with safe_open(path, "np") as file:
        for name in file.keys():  # noqa: SIM118
            print(name, file.get_tensor(name).shape)
    print(read_notes(path))

    loaded = load_model(path)
    print("same predictions:", np.array_equal(loaded.predict(X[n:]), model.predict(X[n:])))

    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # flip one bit
    path.write_bytes(content)
    try:
        load_model(path)
    except ValueError as error:
        print("after one flipped bit:", str(error).replace(str(path), path.name)[:100], "…")

# %%
# What does a model weigh?
# ------------------------
#
# An exact model keeps its training inputs with p coefficients each, and its candidates with p coordinates each. IOKR
# keeps every direction. Landmarks replace the training inputs and span the outputs.


def saved_bytes(model):
    """Return the size of the saved model in bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        save_model(model.fit(X[:n], Y[:n]), Path(temporary, "model.psi"))
        return Path(temporary, "model.psi").stat().st_size


kernels = {"input_kernel": Gaussian(0.2), "output_kernel": Gaussian(0.5), "alpha": 1e-3}
landmarks = {"input_landmarks": 200, "output_landmarks": 200}
sizes = [5, 10, 20, 40, 80]
curves = {
    "OEL": [saved_bytes(OEL(**kernels, n_components=p)) for p in sizes],
    "OEL, 200 landmarks": [saved_bytes(OEL(**kernels, **landmarks, n_components=p)) for p in sizes],
}
iokr = saved_bytes(IOKR(**kernels))
for name, weights in curves.items():
    print(f"{name}: {weights[0] / 2**20:.1f} MiB for p = {sizes[0]}, {weights[-1] / 2**20:.1f} MiB for p = {sizes[-1]}")
print(f"IOKR: {iokr / 2**20:.1f} MiB")

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.axhline(iokr / 2**20, color="C3", linestyle="--", label="IOKR")
for color, marker, (name, weights) in zip(("C0", "C1"), "os", curves.items(), strict=True):
    ax.plot(sizes, np.divide(weights, 2**20), color=color, marker=marker, label=name)
ax.set(xscale="log", yscale="log", xlabel="dimension p of the embedding", ylabel="saved model, MiB")
ax.set_xticks(sizes, [str(p) for p in sizes])
ax.set_xticks([], minor=True)
ax.set_title("A model of 600 pairs on disk")
ax.legend(loc="center left")
plt.show()
