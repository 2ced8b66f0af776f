"""
A forest instead of kernel ridge regression
===========================================

OEL needs a regression from inputs into the output space. By default it is kernel ridge regression; with ``regressor=``
it is any scikit-learn regressor with several targets. This example compares a Gaussian kernel with a forest as inputs
gain columns that have nothing to do with the output. A kernel that measures distances over all columns suffers from
them; trees select columns.

Guide: :doc:`/regressors`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from psilearn import OEL, OELCV
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import Mean, f1_score

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n, n_labels = 900, 8
informative = rng.normal(size=(n, 4))
hidden = np.sin(2 * informative) @ rng.normal(size=(4, n_labels)) + 0.5 * rng.normal(size=(n, n_labels))
Y = (hidden > 0.5).astype(int)
irrelevant = rng.normal(size=(n, 32))
train, test = slice(300), slice(300, None)

# %%
# Fit both with 0 to 32 irrelevant columns
# ----------------------------------------
#
# The kernel's width, λ and p are chosen by validation for each number of columns. The forest is used with the default
# depth and p = 20: OEL fits it six times, because its embedding is learned from out-of-fold predictions.

columns = [0, 4, 16, 32]
scores = {"Gaussian kernel": [], "forest": []}
for k in columns:
    X = np.hstack([informative, irrelevant[:, :k]])
    kernel_model = OELCV(
        [Gaussian(gamma / (4 + k)) for gamma in (0.1, 0.3, 1.0, 3.0, 10.0)],
        Dice(),
        alphas=np.logspace(-5, 0, 6),
        n_components=[3, 5, 10, 20, 35],
        supervisions=0.5,
        scoring="f1",
        cv=3,
    ).fit(X[train], Y[train])
    forest = ExtraTreesRegressor(60, min_samples_leaf=3, random_state=0)
    forest_model = OEL(output_kernel=Dice(), n_components=20, regressor=forest).fit(X[train], Y[train])
    for name, model in {"Gaussian kernel": kernel_model, "forest": forest_model}.items():
        scores[name].append(f1_score(Y[test], model.predict(X[test])))
    difference = Mean(scores["forest"][-1].values - scores["Gaussian kernel"][-1].values)
    print(f"{k} irrelevant columns: F₁ of forest − kernel = {difference}")

# %%
# Without irrelevant columns kernel ridge regression is the better of the two: the labels depend smoothly on the inputs.
# Four irrelevant columns reverse the order, because the kernel has one width for all columns, while the score of the
# forest hardly changes.

importances = forest_model.regression_.estimator.feature_importances_
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for color, marker, (name, values) in zip(("C0", "C1"), "os", scores.items(), strict=True):
    errors = [value.standard_error for value in values]
    left.errorbar(columns, values, errors, color=color, marker=marker, capsize=3, label=name)
left.set(xlabel="irrelevant columns", ylabel="F₁ of 600 test examples (± s.e.)", title="Which regression?")
left.set_xticks(columns)
left.legend()
right.bar(range(4), importances[:4], color="C1", label="informative")
right.bar(range(4, 36), importances[4:], color="C2", label="irrelevant")
right.set(xlabel="column of the input", ylabel="importance in the forest")
right.set_title("The forest finds the informative columns")
right.legend()
plt.show()
