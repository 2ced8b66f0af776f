"""
Predict rankings
================

People rank seven cafés by how near they are, with some noise. The input is where a person lives and the output is a
ranking, one of 7! = 5040. With the :class:`~psilearn.kernels.Kemeny` kernel, whose distance is Kendall's distance, the
prediction is the nearest of *all* rankings and is found exactly, also rankings that no person in the training data has
given.

Guide: :doc:`/rankings`.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from psilearn import IOKRCV, OELCV
from psilearn.kernels import Gaussian, Kemeny
from psilearn.metrics import Mean, kendall_tau

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(1)
cafes = np.array([[0.2, 0.2], [0.8, 0.25], [0.5, 0.5], [0.25, 0.8], [0.8, 0.8], [0.1, 0.5], [0.55, 0.95]])


def rank_cafes(homes, noise=0.0):
    """Return the ranks of the cafés, 1 for the preferred one, by distance plus noise."""
    distances = np.linalg.norm(homes[:, None] - cafes, axis=2) + rng.normal(0, noise, (len(homes), 7))
    return np.argsort(np.argsort(distances, axis=1), axis=1) + 1


homes = rng.random((600, 2))
ranks = rank_cafes(homes, noise=0.15)
train, test = slice(100), slice(100, None)
print(f"{len(np.unique(ranks[train], axis=0))} of 5040 rankings occur among 100 persons; the first is {ranks[0]}")

# %%
# Fit and compare
# ---------------
#
# Kendall's τ between predicted and given rankings is limited by the noise: the last line is the τ of the ranking
# without noise, which no method can know. IOKR and OEL with validated parameters are equally good here. What matters is
# to choose among all rankings instead of those that occurred.

grid = {"alphas": np.logspace(-7, 0, 8), "scoring": "kendall_tau", "cv": 4}
smooth = Gaussian(0.1)  # wide, because preferences change slowly over the map
oel = OELCV(smooth, Kemeny(), n_components=[2, 3, 4, 6, 10], supervisions=[0.0, 0.5, 1.0], **grid)
oel.fit(homes[train], ranks[train])
iokr = IOKRCV(smooth, Kemeny(), **grid).fit(homes[train], ranks[train])
print({name: value for name, value in oel.best_params_.items() if name != "output_kernel"})
taus = {
    "IOKR, all rankings": kendall_tau(ranks[test], iokr.predict(homes[test])),
    "OEL, all rankings": kendall_tau(ranks[test], oel.predict(homes[test])),
    "OEL, known rankings": kendall_tau(ranks[test], oel.predict(homes[test], candidates=ranks[train])),
    "without noise": kendall_tau(ranks[test], rank_cafes(homes[test])),
}
for name, tau in taus.items():
    print(f"{name}: τ = {tau}")
print("all − known:", Mean(taus["OEL, all rankings"].values - taus["OEL, known rankings"].values))
print("OEL − IOKR:", Mean(taus["OEL, all rankings"].values - taus["IOKR, all rankings"].values))

# %%
# The preferred café on the map
# -----------------------------
#
# The model was never told where the cafés are. Its map of the preferred café resembles the map of the nearest café,
# although every training ranking is noisy.

axis = np.linspace(0, 1, 80)
grid_points = np.column_stack([values.ravel() for values in np.meshgrid(axis, axis)])
maps = {"Nearest café": rank_cafes(grid_points), "Predicted to be preferred": oel.predict(grid_points)}
colors = ["#006BA4", "#FF800E", "#ABABAB", "#A2C8EC", "#C85200", "#FFBC79", "#5F9ED1"]

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", width_ratios=[1, 1, 1.1])
for ax, (title, ranking) in zip(axes, maps.items(), strict=False):
    first = np.argmin(ranking, axis=1).reshape(80, 80)
    ax.imshow(first, origin="lower", extent=(0, 1, 0, 1), cmap=ListedColormap(colors), vmin=0, vmax=6, alpha=0.8)
    ax.scatter(*cafes.T, marker="*", s=160, color="black")
    for name, place in zip("ABCDEFG", cafes, strict=True):
        ax.annotate(name, place, xytext=(7, 4), textcoords="offset points", fontsize=12, weight="bold")
    ax.set(title=title, xlabel="west – east", ylabel="south – north", xticks=[], yticks=[])
axes[1].scatter(*homes[train].T, s=8, color="black", alpha=0.5)
axes[2].barh(
    list(taus), list(taus.values()), xerr=[tau.standard_error for tau in taus.values()], color=["C4", "C0", "C1", "C2"]
)
axes[2].set(xlabel="Kendall's τ of 500 test persons (± s.e.)", xlim=(0.4, None), title="Rankings")
axes[2].invert_yaxis()
plt.show()
