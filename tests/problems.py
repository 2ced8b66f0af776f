"""Small structured problems that tests share: one a kind of output."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import computing, current_compute, to_numpy
from psilearn.kernels import Dice, Gaussian, GaussianTanimoto, Kemeny, Kernel, Linear, Pairwise, Precomputed


def block(kernel: Kernel, A: Any, B: Any = None) -> np.ndarray:
    """Return k(A, B) in NumPy, wherever it is computed."""
    return to_numpy(kernel(A, B))


def asarray(array: Any, dtype: Any = None) -> Any:
    """Return an array on the device of the surrounding ``computing`` block."""
    return current_compute().asarray(array, dtype)


def eye(rows: int, columns: int | None = None) -> Any:
    """Return the identity on the device of the surrounding ``computing`` block."""
    return current_compute().eye(rows, columns)


def precision(dtype: Any) -> Any:
    """Return a context with another precision on the device of the surrounding ``computing`` block."""
    return computing(dtype, current_compute().device)


@dataclass(frozen=True)
class Problem:
    """Inputs, outputs that repeat, unlabeled outputs, test inputs and fresh candidates, with an output kernel."""

    X: Any
    Y: Any
    unlabeled: Any
    X_test: Any
    candidates: Any
    kernel: Kernel


def _letters(a: str, b: str) -> float:
    return float(sum(x == y for x, y in zip(a, b, strict=True)))


def make(kind: str, seed: int = 0) -> Problem:
    """Make the problem of that kind: 40 pairs, 30 unlabeled outputs, 15 test inputs, 25 candidates."""
    rng = np.random.default_rng(seed)
    sizes = (40, 30, 25)
    inputs = rng.standard_normal((55, 3))
    if kind == "vectors":
        kernel, parts = Gaussian(0.3), [rng.standard_normal((s, 4)).round(1) for s in sizes]
        parts[0][20:] = parts[0][:20]  # outputs repeat
    elif kind == "unnormalised":
        kernel, parts = Linear(), [rng.standard_normal((s, 5)) * rng.uniform(0.2, 3, (s, 1)) for s in sizes]
        parts[2][::5] *= 1e3  # a few candidates are very long
    elif kind == "numbers":
        kernel, parts = Gaussian(2.0), [rng.integers(0, 9, s).astype(float) for s in sizes]
    elif kind in ("tags", "sparse tags", "fingerprints"):
        parts = [(rng.random((s, 6)) < 0.3).astype(int) for s in sizes]
        kernel = GaussianTanimoto() if kind == "fingerprints" else Dice()
        if kind == "sparse tags":
            parts = [sparse.csr_matrix(part) for part in parts]
    elif kind == "rankings":
        kernel, parts = Kemeny(), [np.array([rng.permutation(4) + 1 for _ in range(s)]) for s in sizes]
    elif kind == "strings":
        kernel, parts = Pairwise(_letters), [["".join(rng.choice(list("abc"), 4)) for _ in range(s)] for s in sizes]
    elif kind == "indices":
        F = rng.standard_normal((60, 7))
        kernel, parts = Precomputed(F @ F.T), [rng.integers(0, 60, s) for s in sizes]
    else:
        raise ValueError(kind)
    return Problem(inputs[:40], parts[0], parts[1], inputs[40:], parts[2], kernel)


KINDS = (
    "vectors",
    "unnormalised",
    "numbers",
    "tags",
    "sparse tags",
    "fingerprints",
    "rankings",
    "strings",
    "indices",
)
