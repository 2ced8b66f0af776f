"""
Why supervise an output embedding?
==================================

The paper motivates the supervision of the embedding with a remark on data in a plane. The input is :math:`x` and the
output is :math:`(x, z)`, where :math:`z` is independent of :math:`x` and has a larger variance. If only one dimension
is kept, kernel PCA of the outputs (:class:`~psilearn.KDE`) keeps :math:`z`, because it varies most, although it cannot
be predicted. The supervised embedding (:class:`~psilearn.OEL` with ``supervision=1``) keeps :math:`x`.

Guide: :doc:`/theory`.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import KDE, OEL
from psilearn.kernels import Linear
from psilearn.metrics import Mean

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)


def make_data(n, noise):
    """Return inputs x and outputs (x, z), where z has the standard deviation ``noise`` and x has 1."""
    x, z = rng.normal(0, 1, n), rng.normal(0, noise, n)
    return x[:, None], np.column_stack([x, z])


# %%
# One dimension of two
# --------------------
#
# With a linear output kernel the embedding is a projection of the plane on a line. ``transform_outputs`` of the unit
# vectors gives the coordinates of its direction.

models = {
    "KDE (unsupervised)": KDE(Linear(), Linear(), alpha=1e-3, n_components=1),
    "OEL (supervised)": OEL(Linear(), Linear(), alpha=1e-3, n_components=1, supervision=1.0),
}
X, Y = make_data(500, noise=3.0)
directions = {}
for name, model in models.items():
    model.fit(X, Y)
    directions[name] = model.transform_outputs(np.eye(2))[:, 0]
    explained = np.corrcoef(model.embed(X)[:, 0], model.transform_outputs(Y)[:, 0])[0, 1] ** 2
    print(f"{name} keeps the direction {directions[name].round(2)}; inputs explain {explained:.1%} of its variance")

# %%
# How much noise does it take?
# ----------------------------
#
# The test error is the squared distance between the true output and the predicted point :math:`G^*z(x)` of the plane.
# The noise contributes its variance to the error of every method, so it is subtracted here: 0 is the error of the best
# possible prediction :math:`(x, 0)`, and 1 is the error of predicting the mean.

noises = np.array([0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 4.0])
errors = {name: [] for name in models}
for noise in noises:
    X_train, Y_train = make_data(300, noise)
    X_test, _ = make_data(300, noise)
    best = np.column_stack([X_test[:, 0], np.zeros(300)])
    for name, model in models.items():
        model.fit(X_train, Y_train)
        predicted = model.embed(X_test) @ model.transform_outputs(np.eye(2)).T
        errors[name].append(Mean(np.sum((predicted - best) ** 2, axis=1)))

# %%
# The unsupervised embedding is as good as the supervised one while the part that can be predicted has clearly the
# larger variance, and no better than the mean once it has the smaller one; in between it mixes both. The supervised
# embedding hardly depends on the noise. Outputs usually have many directions, and noise changes only a part of their
# order: the gain is then smaller than here.

figure, (plane, curve) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plane.scatter(*Y.T, s=8, color="C2", label="outputs (x, z)")
for color, (name, direction) in zip(("C1", "C0"), directions.items(), strict=True):
    plane.axline((0, 0), tuple(direction), color=color, linewidth=3, label=name)
plane.set(xlabel="x, which the input determines", ylabel="z, noise", title="The direction that is kept")
plane.set(xlim=(-9, 9), ylim=(-9, 9), aspect="equal")
plane.legend(loc="upper left", framealpha=0.95)
for color, (name, means) in zip(("C1", "C0"), errors.items(), strict=True):
    curve.errorbar(noises, means, [2 * mean.standard_error for mean in means], color=color, marker="o", label=name)
curve.axvline(1, color="C3", linestyle=":", label="equal variances")
curve.set(xscale="log", xlabel="standard deviation of z (that of x is 1)", ylabel="excess squared error (± 2 s.e.)")
curve.set_xticks([0.25, 0.5, 1, 2, 4], labels=["0.25", "0.5", "1", "2", "4"])
curve.set_xticks([], minor=True)
curve.set_title("Test error with one dimension")
curve.legend()
plt.show()
