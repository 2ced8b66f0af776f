"""Small tasks that every baseline must learn, and the baselines at a small size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from psilearn_lab.baselines import DVN, ECC, KNN, KRR, LR, NN, PLS, PRLR, RRR, SPEN

torch_or_skip = pytest.mark.skipif(
    "not __import__('importlib.util').util.find_spec('torch')", reason="torch is not installed"
)
SMALL: dict[str, Any] = {"hidden": (16,), "dropout": 0.0, "epochs": 25, "patience": 25, "batch_size": 16}
PLAIN = {
    "LR": LR(C=10.0),
    "ECC": ECC(C=10.0, n_chains=3),
    "PRLR": PRLR(rank_penalty=0.1, missing=0.02, C=10.0, n_rounds=2),
    "KNN": KNN(n_neighbors=(1, 5, 9)),
    "KRR": KRR(alpha=(1e-4, 1e-2)),
    "RRR": RRR(alpha=1e-3, n_components=(2, 3)),
    "PLS": PLS(n_components=(2, 3)),
}
NETWORKS = {
    "NN": NN(learning_rate=0.01, **SMALL),
    "SPEN": SPEN(learning_rate=0.01, energy_hidden=3, energy_epochs=5, steps=5, **SMALL),
    "DVN": DVN(energy_hidden=3, steps=10, learning_rate=0.03, **SMALL),
}
EVERY = [*PLAIN, *(pytest.param(name, marks=torch_or_skip) for name in NETWORKS)]
NUMBERS = ["KNN", "KRR", "RRR", "PLS", *(pytest.param(name, marks=torch_or_skip) for name in ("NN", "SPEN"))]
LABELS_ONLY = ["LR", "ECC", "PRLR", pytest.param("DVN", marks=torch_or_skip)]


def model(name: str, **changes: Any) -> Any:
    from sklearn.base import clone

    return clone({**PLAIN, **NETWORKS}[name]).set_params(**changes)


def labels(n: int = 160, seed: int = 0) -> tuple[Any, Any]:
    """Three labels of three inputs; the first two always occur together, and some rows are empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0.2]).astype(int)


def numbers(n: int = 160, seed: int = 0) -> tuple[Any, Any]:
    """Three numbers that are linear in the inputs and span two dimensions."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 1]])


def forms(X: Any, Y: Any) -> dict[str, tuple[Any, Any]]:
    return {"dense": (X, Y), "csr": (sparse.csr_matrix(X), sparse.csr_matrix(Y))}
