"""
Prediction sets that contain the truth
======================================

A single prediction does not tell how sure it is. ``calibrate`` and ``predict_set`` return sets of candidates that
contain the true output with a chosen probability, whatever the model and the data are, as long as the calibration
examples were not used in the fit and are exchangeable with the new ones. The model decides only how large the sets
are: this example compares a model of 40 pairs with a model of 400.

Guide: :doc:`/conformal`.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import OEL
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import Mean

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 4))
hidden = np.sin(X) @ rng.normal(size=(4, 6)) + 0.15 * rng.normal(size=(1000, 6))
Y = (hidden > 0.3).astype(int)
candidates = np.unique(Y, axis=0)
print(f"{len(candidates)} label sets are candidates")

# %%
# Calibrate and predict
# ---------------------
#
# 300 examples calibrate both models. The remaining 300 are predicted.

calibration, test = slice(400, 700), slice(700, None)
models = {}
for n in (40, 400):
    model = OEL(Gaussian(0.2), Dice(), alpha=1e-3, n_components=15).fit(X[:n], Y[:n])
    models[n] = model.calibrate(X[calibration], Y[calibration], candidates=candidates)

sets = models[400].predict_set(X[test], coverage=0.9, candidates=candidates)
for i in (int(np.argmin(sets.sizes)), int(np.argsort(sets.sizes)[150])):
    members = [tuple(int(label) for label in np.flatnonzero(row)) for row in sets.outputs[i]]
    print(f"true labels {tuple(int(label) for label in np.flatnonzero(Y[test][i]))}; set of 90 %: {members}")

# %%
# Coverage and size
# -----------------
#
# A set covers if the true output is one of its members. The share of test examples whose sets cover is compared with
# the requested probability, over 12 random splits into calibration and test examples, because the guarantee holds on
# average over both.

levels = np.array([0.6, 0.7, 0.8, 0.9, 0.95])
truth = np.array([np.flatnonzero((candidates == row).all(axis=1))[0] for row in Y])
held_out = np.arange(400, 1000)
covered, sizes = {}, {}
for n, model in models.items():
    shares = []
    for split in range(12):
        order = np.random.default_rng(split).permutation(held_out)
        model.calibrate(X[order[:300]], Y[order[:300]], candidates=candidates)
        rows = order[300:]
        row = []
        for level in levels:
            prediction = model.predict_set(X[rows], coverage=level, candidates=candidates)
            row.append(np.mean([truth[i] in index for i, index in zip(rows, prediction.indices, strict=True)]))
            if level == 0.9 and split == 0:
                sizes[n] = prediction.sizes
        shares.append(row)
    covered[n] = [Mean(column) for column in np.array(shares).T]
    print(f"{n} pairs: requested 90 %, covered {covered[n][3]}; mean size {Mean(sizes[n].astype(float))}")

# %%
# Both models keep the promise, up to the standard error of twelve splits. What they differ in is the price: the model
# of 400 pairs needs sets of about half the size. Sizes also differ between examples, and tell which predictions are
# sure.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(levels, levels, color="C3", linestyle=":", label="as requested")
for color, marker, (n, shares) in zip(("C1", "C0"), "so", covered.items(), strict=True):
    errors = [2 * share.standard_error for share in shares]
    left.errorbar(levels, shares, errors, color=color, marker=marker, capsize=3, label=f"{n} pairs")
left.set(xlabel="requested coverage", ylabel="covered test examples (± 2 s.e.)")
left.set_title("The guarantee holds for both models")
left.legend()
bins = np.arange(0.5, max(size.max() for size in sizes.values()) + 1.5)
for color, (n, size) in zip(("C1", "C0"), sizes.items(), strict=True):
    right.hist(size, bins, color=color, alpha=0.7, label=f"{n} pairs, mean {size.mean():.1f}")
right.set(xlabel="size of a set", ylabel="test examples", title="Sets of 90 %: the better model has smaller ones")
right.legend()
plt.show()
