"""Store small models of the current model format, with their predictions, for the tests of later versions of psilearn.

``python tools/store_models.py`` writes ``tests/io/stored_models/VERSION``. Run it once after the version of the format
in ``psilearn.io.saved_models`` was raised, and never change a stored file afterwards.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn import IOKR, KDE, OEL, save_model
from psilearn.io.saved_models import FORMAT
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear

STORED_MODELS = Path(__file__).parents[1] / "tests" / "io" / "stored_models"
N_TRAIN = 12


def fit_models() -> dict[str, tuple[Any, Any]]:
    """Return fitted models of each estimator, for label sets, rankings and real rows, and inputs to predict for."""
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((N_TRAIN, 3)), rng.standard_normal((5, 3))
    tags = (rng.random((N_TRAIN, 4)) < 0.5).astype(np.int8)
    ranks = np.argsort(np.argsort(X, axis=1), axis=1) + 1
    labels = OEL(Gaussian(0.5), Dice(), alpha=1e-2, n_components=3, supervision=0.5).fit(X, tags, unlabeled=tags[:4])
    return {
        "label_sets": (labels.calibrate(X, tags), new),
        "rankings": (IOKR(Gaussian("median"), Kemeny(), alpha=1e-2).fit(X, ranks), new),
        "landmarks": (
            KDE(Linear(), Gaussian(0.3), alpha=1e-2, n_components=2, input_landmarks=3, output_landmarks=5).fit(
                sparse.csr_matrix(X), X[:, :2]
            ),
            sparse.csr_matrix(new),
        ),
    }


def store_models(folder: Path) -> None:
    """Write each model, its inputs, its predictions and its distances into a new folder."""
    for name, (model, X) in fit_models().items():
        save_model(model, folder / f"{name}.psi")
        inputs = X.toarray() if sparse.issparse(X) else X
        nearest = model.predict_topk(X, k=1)
        np.savez(
            folder / f"{name}.npz",
            X=inputs,
            is_sparse=sparse.issparse(X),
            predictions=model.predict(X),
            embedded=model.embed(X),
            distances=nearest.distances,
        )


def main() -> int:
    """Store the models of the current version of the format; return 2 if they are stored already."""
    folder = STORED_MODELS / str(FORMAT.version)
    if folder.exists():
        print(f"{folder} exists: stored models are never changed.", file=sys.stderr)
        return 2
    store_models(folder)
    print(f"Wrote {folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
