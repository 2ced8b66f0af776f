"""
Predict label sets that never occurred
======================================

By default a multi-label prediction is one of the known label sets. With ``candidates="all"`` it is the nearest of all
:math:`2^L` label sets, found exactly and without listing them; with ``candidates="near"`` it is the nearest of the
known sets and those that differ from one of them by one label. Which of the three is best depends on how many of the
true sets are known.

Guide: :doc:`/label_sets`.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import IOKR, IOKRCV
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import Mean, f1_score, subset_accuracy

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)

# %%
# Two kinds of data
# -----------------
#
# In both cases 20 labels depend on 6 inputs. In the first the labels are independent of each other given the input, so
# that most sets are new. In the second the outputs are drawn from 30 random sets: the one that agrees best with the
# independent labels.

weights = rng.normal(size=(6, 20))


def make_data(n, sets=None):
    """Return inputs and label sets, which are arbitrary or come from a list."""
    X = rng.normal(size=(n, 6))
    scores = X @ weights + 0.5 * rng.normal(size=(n, 20)) - 2.5
    free = (scores > 0).astype(int)
    free[np.arange(n), np.argmax(scores, axis=1)] = 1  # at least one label
    return X, free if sets is None else sets[np.argmax(Dice()(free, sets), axis=1)]


vocabulary = (rng.random((30, 20)) < 0.25).astype(int)
problems = {"free sets": make_data(1200), "30 possible sets": make_data(1200, vocabulary)}

# %%
# The three kinds of candidates as the training data grow
# -------------------------------------------------------
#
# λ is chosen for each kind of candidates by the :math:`F_1` of decoded predictions. The test examples are scored by the
# :math:`F_1` and by the share of predicted sets that are exactly right.

sizes = [50, 100, 200, 400]
kinds = ["known", "near", "all"]
metrics = {"F₁": f1_score, "exactly right": subset_accuracy}
scores, new = {}, {}
for problem, (X, Y) in problems.items():
    X_test, Y_test = X[-600:], Y[-600:]
    for n in sizes:
        search = IOKRCV(
            Gaussian(0.05), Dice(), alphas=np.logspace(-5, -1, 5), scoring="f1", candidates=kinds, cv=3, refit=False
        ).fit(X[:n], Y[:n])
        known = {row.tobytes() for row in Y[:n]}
        new[problem, n] = np.mean([row.tobytes() not in known for row in Y_test])
        for kind in kinds:
            alpha = search.best_where(candidates=kind).params["alpha"]
            predicted = IOKR(Gaussian(0.05), Dice(), alpha=alpha).fit(X[:n], Y[:n]).predict(X_test, candidates=kind)
            for metric, score in metrics.items():
                scores[metric, problem, kind, n] = score(Y_test, predicted)

for problem in problems:
    for metric in metrics:
        gain = Mean(scores[metric, problem, "all", 400].values - scores[metric, problem, "known", 400].values)
        print(f"{problem}, 400 pairs, {metric}: all − known = {gain}")

# %%
# With few training pairs, all sets have the better :math:`F_1`, even where only some sets are possible: the nearest set
# to a prediction that hesitates between two of them may contain labels of both, which costs little :math:`F_1`. Such a
# set is never exactly right, though: by that measure known sets are far better if only some sets are possible.
# ``IOKRCV`` and ``OELCV`` choose the candidates by the metric that ``scoring`` names.

figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained", sharey="row", sharex=True)
for row, metric in zip(axes, metrics, strict=True):
    row[0].set_ylabel(f"{metric} (± s.e.)")
    for ax, problem in zip(row, problems, strict=True):
        for color, marker, kind in zip(("C1", "C3", "C0"), "s^o", kinds, strict=True):
            values = [scores[metric, problem, kind, n] for n in sizes]
            errors = [value.standard_error for value in values]
            ax.errorbar(sizes, values, errors, label=f'candidates="{kind}"', color=color, marker=marker, capsize=3)
for ax, problem in zip(axes[0], problems, strict=True):
    shares = ", ".join(f"{new[problem, n]:.0%}" for n in sizes)
    ax.set_title(f"{problem.capitalize()}\nnew sets among the tests: {shares}")
for ax in axes[1]:
    ax.set(xlabel="training pairs", xscale="log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.set_xticks([], minor=True)
axes[0, 0].legend(loc="lower right")
plt.show()
