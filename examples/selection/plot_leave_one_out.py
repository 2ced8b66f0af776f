"""
Leave-one-out scores without refitting
======================================

Kernel ridge regression has a closed form for the prediction of an example by the model that is fitted without it. With
``cv="loo"`` the searches use it: all n examples are left out one at a time at the cost of a single split, which makes
the most of small data. This example checks the closed form, and compares the choice with that of five splits and with
the best choice in hindsight.

Guide: :doc:`/searches`.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import IOKR, IOKRCV
from psilearn.kernels import Gaussian
from psilearn.metrics import Mean

plt.style.use("tableau-colorblind10")
input_kernel, output_kernel = Gaussian(10.0), Gaussian(0.5)
alphas = np.logspace(-5, 0, 11)


def make_data(n, rng):
    """Return inputs in [0, 1] and noisy points on a curve in the plane."""
    x = rng.random((n, 1))
    curve = np.hstack([np.cos(9 * x), np.sin(6 * x)])
    return x, curve + 0.4 * rng.normal(size=(n, 2))


# %%
# The closed form is exact
# ------------------------
#
# Refit 40 times without one example, with the same ridge nλ, and compare with the score of the search.

X, Y = make_data(40, np.random.default_rng(0))
search = IOKRCV(input_kernel, output_kernel, alphas=alphas, cv="loo", refit=False).fit(X, Y)
alpha = search.best_params_["alpha"]
left_out = []
for i in range(40):
    others = np.delete(np.arange(40), i)
    model = IOKR(input_kernel, output_kernel, alpha=alpha * 40 / 39).fit(X[others], Y[others])
    left_out.append(model.predict_topk(X[[i]], k=1, candidates=Y[[i]]).distances[0, 0])  # |ĥ(x) − ψ(y)|²
print(f"λ = {alpha:.2e}: closed form {-search.best_score_:.12f}, 40 fits {np.mean(left_out):.12f}")

# %%
# Does it choose well?
# --------------------
#
# For 20 random training sets of 40 examples, λ is chosen by leave-one-out and by five random splits of 80 % and 20 %.
# The regret is the error of 300 test examples above that of the best λ of the grid in hindsight.

X_test, Y_test = make_data(300, np.random.default_rng(1))


def test_error(X, Y, alpha):
    """Return the mean of |ĥ(x) − ψ(y)|² over the test examples, where ĥ(x) = Σ αᵢ(x) ψ(yᵢ)."""
    ridge = input_kernel.gram(X) + len(X) * alpha * np.eye(len(X))
    weights = np.linalg.solve(ridge, input_kernel(X, X_test)).T  # αᵢ(x), one row per test example
    lengths = np.sum((weights @ output_kernel.gram(Y)) * weights, axis=1)
    return np.mean(lengths - 2 * np.sum(weights * output_kernel(Y_test, Y), axis=1) + 1)


paths, regrets = [], {"leave-one-out": [], "five splits": []}
for seed in range(20):
    X, Y = make_data(40, np.random.default_rng(2 + seed))
    test_errors = [test_error(X, Y, alpha) for alpha in alphas]
    scores = {}
    for name, cv in {"leave-one-out": "loo", "five splits": None}.items():
        search = IOKRCV(input_kernel, output_kernel, alphas=alphas, cv=cv, refit=False, random_state=0).fit(X, Y)
        scores[name] = -search.cv_results_["mean_test_score"]
        regrets[name].append(test_errors[search.best_index_] - min(test_errors))
    paths.append((scores, test_errors))
regrets = {name: Mean(values) for name, values in regrets.items()}
for name, regret in regrets.items():
    print(f"{name}: mean regret {regret}")
print("five splits − leave-one-out, paired:", Mean(regrets["five splits"].values - regrets["leave-one-out"].values))

# %%
# Both choose well, and their difference is within its standard error: leave-one-out needs one decomposition instead of
# five for that. Its score is also closer to the error of the final model, because it leaves out one example and not a
# fifth of them. Of a learned embedding (:class:`~psilearn.OELCV`), only the regression is fitted without the example,
# not the directions; see the parameter ``cv``.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=[1.5, 1])
scores, test_errors = paths[0]
for color, style, (name, errors) in zip(("C0", "C1"), ("-", "--"), scores.items(), strict=True):
    left.plot(alphas, errors, style, color=color, linewidth=2, label=name)
    left.plot(alphas[np.argmin(errors)], min(errors), "o", color=color, markersize=9)
left.plot(alphas, test_errors, color="C3", linewidth=2, linestyle=":", label="300 test examples")
left.set(xscale="log", xlabel="λ", ylabel="squared error in the output space", title="One training set of 40 examples")
left.legend()
errors = [regret.standard_error for regret in regrets.values()]
right.bar(list(regrets), list(regrets.values()), yerr=errors, color=["C0", "C1"], capsize=5)
right.set(ylabel="mean regret (± s.e. of 20 training sets)", title="Lower is better")
plt.show()
