"""
Few pairs, many outputs
=======================

Outputs without inputs are often cheap: tag sets without documents, molecules without spectra, or here lower halves of
digits without their upper halves. They help in two ways, which this example separates. They are further *candidates*
for predictions, for every method. And :class:`~psilearn.OEL` uses them to learn its *embedding*.

Guide: :doc:`/unlabeled`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from psilearn import IOKRCV, OELCV
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean, kernel_loss

plt.style.use("tableau-colorblind10")
images = load_digits().data / 16
output_kernel = Gaussian(0.5)
N_PAIRS, N_UNLABELED, N_DRAWS = 60, [0, 60, 120, 240, 480], 4
grid = {
    "input_kernels": Gaussian(0.2),
    "output_kernels": output_kernel,
    "alphas": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2],
    "scoring": "loss",
    "cv": 3,
}

# %%
# Three ways to use the unlabeled outputs
# ---------------------------------------
#
# For each of four random draws of 60 pairs, the parameters of every method are chosen by validation on the pairs, with
# the loss of decoded predictions. ``fit(..., unlabeled=...)`` is the only change for the embedding.

warnings.filterwarnings("ignore", message="The best")  # 20 held-out pairs sometimes choose the edge of a grid


def test_losses(seed, m):
    """Return the mean test losses of three methods with 60 pairs and m unlabeled outputs."""
    rows = images[np.random.default_rng(seed).permutation(len(images))]
    X, Y, X_test, Y_test = rows[:N_PAIRS, :32], rows[:N_PAIRS, 32:], rows[800:, :32], rows[800:, 32:]
    unlabeled = rows[N_PAIRS : N_PAIRS + m, 32:]
    known = np.vstack([Y, unlabeled])
    iokr = IOKRCV(**grid).fit(X, Y)
    oel = OELCV(**grid, n_components=[5, 10, 20, 40], supervisions=[0.0, 0.3, 1.0])
    oel.fit(X, Y, unlabeled=unlabeled if m else None)
    predictions = {
        "IOKR, 60 labeled candidates": iokr.predict(X_test),
        "IOKR, all candidates": iokr.predict(X_test, candidates=known),
        "OEL, all candidates and embedding": oel.predict(X_test, candidates=known),
    }
    return {name: float(kernel_loss(Y_test, rows, output_kernel)) for name, rows in predictions.items()}


losses = {m: [test_losses(seed, m) for seed in range(N_DRAWS)] for m in N_UNLABELED}
curves = {name: [Mean([draw[name] for draw in losses[m]]) for m in N_UNLABELED] for name in losses[0][0]}
for name, means in curves.items():
    print(f"{name}: " + ", ".join(str(mean) for mean in means))
gain = Mean(curves["IOKR, all candidates"][-1].values - curves["OEL, all candidates and embedding"][-1].values)
print(f"{N_UNLABELED[-1]} unlabeled outputs, IOKR − OEL with the same candidates, paired over the draws: {gain}")

# %%
# Without unlabeled outputs OEL is not better than IOKR. Further candidates alone help little: a prediction from 60
# pairs is too inaccurate to make use of them. The embedding that is learned from hundreds of outputs lowers the loss
# more than that.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for color, marker, (name, means) in zip(("C2", "C1", "C0"), "^so", curves.items(), strict=True):
    ax.errorbar(
        N_UNLABELED, means, [m.standard_error for m in means], color=color, marker=marker, capsize=3, label=name
    )
ax.set(xlabel="unlabeled outputs m", ylabel="test loss (± s.e. of 4 draws)")
ax.set_title("60 pairs and m outputs without inputs")
ax.set_xticks(N_UNLABELED)
ax.legend()
plt.show()
