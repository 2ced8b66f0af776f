"""
Landmarks: less time and memory for a small error
=================================================

An exact fit stores :math:`n^2` numbers for the inputs. With ``input_landmarks=q`` the regression is restricted to the
span of q inputs, and its cost grows linearly in n. This example shows how the error of the approximation decreases
with q, how much of it reaches the predictions, and what the choice of the landmarks contributes.

Guide: :doc:`/scale`.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from psilearn import OEL, Landmarks
from psilearn.kernels import Dice, Gaussian
from psilearn.memory import fit_bytes
from psilearn.metrics import Mean, f1_score

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n, n_labels = 3000, 12

# %%
# Data that are unevenly distributed
# ----------------------------------
#
# Nine tenths of the inputs lie in one cluster and one tenth in fifty small ones.

centers = np.vstack([np.zeros((1, 5)), 4 * rng.normal(size=(50, 5))])
cluster = np.where(rng.random(n + 1000) < 0.9, 0, rng.integers(1, 51, n + 1000))
X = centers[cluster] + 0.5 * rng.normal(size=(n + 1000, 5))
Y = (np.sin(X) @ rng.normal(size=(5, n_labels)) + 0.3 * rng.normal(size=(n + 1000, n_labels)) > 0.5).astype(int)
parameters = {"input_kernel": Gaussian(0.3), "output_kernel": Dice(), "alpha": 1e-4, "n_components": 40}

# %%
# Exact and approximate fits
# --------------------------
#
# The parameters are the same for all fits, because the question is how close an approximation comes to the exact model.

start = perf_counter()
exact = OEL(**parameters, output_landmarks=200).fit(X[:n], Y[:n])
exact_seconds = perf_counter() - start
exact_score = f1_score(Y[n:], exact.predict(X[n:]))
n_sets = len(np.unique(Y[:n], axis=0))
for q in (None, 400):
    needed = fit_bytes(n, n_sets, input_landmarks=q, output_landmarks=200, n_components=40)
    print(f"input_landmarks={q}: {needed / 2**20:.0f} MiB are needed in addition to the data")
print(f"exact: {exact_seconds:.1f} s")

numbers = [25, 50, 100, 200, 400]
errors, scores, seconds = {}, {}, []
for method in ("uniform", "pivoted"):
    errors[method], scores[method] = [], []
    for q in numbers:
        start = perf_counter()
        model = OEL(**parameters, input_landmarks=Landmarks(q, method), output_landmarks=200).fit(X[:n], Y[:n])
        seconds.append(perf_counter() - start)
        errors[method].append(model.input_approximation_error_)
        scores[method].append(f1_score(Y[n:], model.predict(X[n:])))
        loss = Mean(exact_score.values - scores[method][-1].values)
        print(f"{q} {method} landmarks: {seconds[-1]:.2f} s, error {errors[method][-1]:.3f}, F₁ lower by {loss}")

# %%
# The score approaches the exact one as the span grows. Landmarks that are drawn uniformly come mostly from the large
# cluster and rarely from the small ones. Randomly pivoted Cholesky (``"pivoted"``) prefers inputs that are not yet
# spanned: with 400 of them, the loss of :math:`F_1` is a tenth of that with 400 uniform ones. If the data were evenly
# distributed, uniform landmarks would do, and they cost nothing to choose.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
right.axhline(exact_score, color="C3", linestyle="--", label="exact")
right.axhspan(exact_score - exact_score.standard_error, exact_score + exact_score.standard_error, color="C2", alpha=0.3)
for color, marker, method in zip(("C1", "C0"), "so", errors, strict=True):
    left.plot(numbers, errors[method], color=color, marker=marker, label=method)
    values = scores[method]
    right.errorbar(
        numbers, values, [v.standard_error for v in values], color=color, marker=marker, capsize=3, label=method
    )
left.set(ylabel="share of the inputs outside the span", title="Approximation error", yscale="log")
right.set(ylabel="F₁ of 1000 test examples (± s.e.)", title="Predictions")
for ax in (left, right):
    ax.set(xscale="log", xlabel="input landmarks q")
    ax.set_xticks(numbers, [str(q) for q in numbers])
    ax.set_xticks([], minor=True)
    ax.legend()
plt.show()
