"""Why supervise an output embedding? The paper's remark, in two dimensions.

The input is x and the output is (x, z), where z is independent of x and has a larger variance. One dimension is kept.
Kernel PCA of the outputs keeps z, which cannot be predicted from x; the supervised embedding keeps x.

    python examples/supervised_line.py
"""

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
for name, model in models.items():
    model.fit(X, Y)
    direction = model.transform_outputs(np.eye(2))[:, 0]  # G in the coordinates (x, z)
    explained = np.corrcoef(model.embed(X)[:, 0], model.transform_outputs(Y)[:, 0])[0, 1] ** 2
    print(
        f"{name}: keeps the direction ({direction[0]:+.2f}, {direction[1]:+.2f}) and predicts {100 * explained:.0f} % "
        f"of its variance"
    )
