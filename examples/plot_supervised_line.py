"""
Why supervise an output embedding?
==================================

The paper's remark, in two dimensions. The input is x and the output is (x, z), where z is independent of x and has a
larger variance. One dimension is kept. Kernel PCA of the outputs keeps z, which cannot be predicted from x; the
supervised embedding keeps x.
"""

import matplotlib.pyplot as plt
import numpy as np

from psilearn import KDE, OEL
from psilearn.kernels import Linear

rng = np.random.default_rng(0)
x, z = rng.normal(0, 1, 500), rng.normal(0, 3, 500)
X, Y = x[:, None], np.column_stack([x, z])

models = {
    "KDE, unsupervised": KDE(Linear(), Linear(), alpha=1e-3, n_components=1),
    "OEL₀, supervised": OEL(Linear(), Linear(), alpha=1e-3, n_components=1, supervision=1.0),
}

fig, ax = plt.subplots(figsize=(6, 5))
ax.scatter(*Y.T, s=6, color="0.7")
for name, model in models.items():
    model.fit(X, Y)
    direction = model.transform_outputs(np.eye(2))[:, 0]  # G in the coordinates (x, z)
    explained = np.corrcoef(model.embed(X)[:, 0], model.transform_outputs(Y)[:, 0])[0, 1] ** 2
    print(
        f"{name}: keeps the direction ({direction[0]:+.2f}, {direction[1]:+.2f}) and predicts {100 * explained:.0f} % "
        f"of its variance"
    )
    ax.axline((0, 0), tuple(direction), label=f"{name}: {100 * explained:.0f} % predictable", color=f"C{len(ax.lines)}")
ax.set(xlabel="x, which the input determines", ylabel="z, noise", aspect="equal")
ax.legend()
plt.show()
