"""
The λ–p surface of a search
===========================

:class:`~psilearn.OELCV` scores every combination of λ, p and c without fitting each of them: one eigendecomposition
of the input kernel serves every λ, and one set of eigenvectors serves every p. So the whole surface of validation
scores costs a small part of the fits, and it is worth a look: it shows whether the optimum is sharp, and whether a
smaller embedding would do.

Guide: :doc:`/searches`.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from psilearn import OEL, OELCV
from psilearn.kernels import Gaussian
from psilearn.metrics import kernel_loss

plt.style.use("tableau-colorblind10")
images = load_digits().data[np.random.default_rng(0).permutation(1797)] / 16
X, Y, X_test, Y_test = images[:200, :32], images[:200, 32:], images[800:, :32], images[800:, 32:]

# %%
# Score 720 settings on five splits
# ---------------------------------
#
# The input is the upper half of a digit, the output the lower half. A low score is a large squared error of the
# predicted embedding.

alphas = np.logspace(-6, 0, 16)
sizes = [2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 115, 140, 158]
grid = {"alphas": alphas, "n_components": sizes, "supervisions": [0.0, 0.5, 1.0]}
start = perf_counter()
search = OELCV(Gaussian(0.2), Gaussian(0.5), **grid, random_state=0).fit(X, Y)
search_seconds = perf_counter() - start
start = perf_counter()
OEL(**search.best_params_).fit(X, Y)
fit_seconds = perf_counter() - start
n_fits = 5 * len(search.cv_results_["params"])
print(f"{n_fits} fits would take {n_fits * fit_seconds:.0f} s; the search took {search_seconds:.1f} s")

# %%
# The simplest setting within one standard error
# ----------------------------------------------
#
# ``one_standard_error=True`` chooses the smallest p, then the largest λ, whose score is within one standard error of
# the best one. Here it halves the dimension, at the price of a higher test loss.

simple = OELCV(Gaussian(0.2), Gaussian(0.5), **grid, one_standard_error=True, random_state=0).fit(X, Y)
for name, model in {"best": search, "simplest within one s.e.": simple}.items():
    loss = kernel_loss(Y_test, model.predict(X_test), Gaussian(0.5))
    chosen = {key: round(model.best_params_[key], 5) for key in ("alpha", "n_components", "supervision")}
    print(f"{name}: {chosen}, test loss {loss}")

# %%
# The surfaces
# ------------
#
# The optimum is flat: a tenfold change of λ or a fourfold change of p costs little. The two parameters replace each
# other in part: with too small a λ, a small p limits the damage, because the regression has fewer directions to
# overfit. The supervision c hardly matters on these data without unlabeled outputs.

results = search.cv_results_
errors = {
    c: -results["mean_test_score"][results["param_supervision"] == c].reshape(len(alphas), len(sizes))
    for c in grid["supervisions"]
}
lowest = min(surface.min() for surface in errors.values())
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
for ax, (c, surface) in zip(axes, errors.items(), strict=True):
    image = ax.contourf(sizes, alphas, surface, levels=lowest + np.linspace(0, 0.3, 16), cmap="cividis_r", extend="max")
    for marker, label, model in (("*", "best", search), ("o", "simplest within one s.e.", simple)):
        if model.best_params_["supervision"] == c:
            place = model.best_params_["n_components"], model.best_params_["alpha"]
            ax.scatter(*place, s=180, marker=marker, color="C1", edgecolor="black", label=label, zorder=3)
            ax.legend(loc="lower left")
    ax.set(xscale="log", yscale="log", xlabel="dimension p", title=f"supervision c = {c:g}")
    ax.set_xticks([2, 5, 10, 20, 50, 150], labels=["2", "5", "10", "20", "50", "150"])
    ax.set_xticks([], minor=True)
axes[0].set_ylabel("λ")
figure.colorbar(image, ax=axes, label="validation error", format="%.2f")
plt.show()
