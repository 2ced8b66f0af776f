"""Dask collections as arguments of ``fit``: what is required of them, with advice."""

from __future__ import annotations

from typing import Any

from psilearn._distributed import ChunkedRows, as_chunks, check_aligned, is_dask, line_from_memory
from psilearn._utils.samples import n_samples
from psilearn.landmarks.selection import Landmarks


def convert_dask(X: Any, y: Any, unlabeled: Any) -> tuple[Any, Any, Any]:
    """Return the arguments of ``fit`` with Dask collections in row chunks; X and y must be aligned."""
    if is_dask(X) != is_dask(y):
        (given, name), (value, other) = ((X, "X"), (y, "y")) if is_dask(X) else ((y, "y"), (X, "X"))
        line = line_from_memory(as_chunks(given, name), name, value, other)
        raise TypeError(
            f"{name} is a Dask collection but {other} is not. Type: {line}, or {name} = {name}.compute() if it fits "
            f"into memory."
        )
    if is_dask(X):
        X, y = as_chunks(X, "X"), as_chunks(y, "y")
        check_aligned(X, "X", y, "y")
    return X, y, as_chunks(unlabeled, "unlabeled") if is_dask(unlabeled) else unlabeled


def require_memory(method: str, **arguments: Any) -> None:
    """Raise if an argument of a method is a Dask collection, which the method would have to gather."""
    for name, value in arguments.items():
        if is_dask(value):
            raise TypeError(
                f"{method} takes {name} in memory, but it is a Dask collection: give {name}.compute() if it fits, or "
                f"call {method} for each partition."
            )


def require_embedded(candidates: Any) -> None:
    """Raise if candidates are a Dask collection, which would have to be gathered."""
    if is_dask(candidates):
        raise TypeError(
            "candidates is a Dask collection: use candidate_set(candidates, path), which embeds its chunks on the "
            "workers and stores them, or give candidates.compute() if they fit into memory."
        )


def require_landmarks(
    X: Any, unlabeled: Any, input_landmarks: Landmarks | None, output_landmarks: Landmarks | None, regressor: Any
) -> None:
    """Raise if a fit to Dask collections would need a matrix of the size of the data, with its bytes and advice."""
    if isinstance(X, ChunkedRows):
        if regressor is not None:
            raise ValueError(
                "A regressor of scikit-learn needs all inputs in memory: fit(X.compute(), y.compute()), or leave "
                "regressor out and set input_landmarks."
            )
        _require(input_landmarks, "input_landmarks", "inputs X", n_samples(X))
        _require(output_landmarks, "output_landmarks", "outputs y", n_samples(X))
    if isinstance(unlabeled, ChunkedRows):
        _require(output_landmarks, "output_landmarks", "unlabeled outputs", n_samples(unlabeled))


def _require(landmarks: Landmarks | None, name: str, what: str, n: int) -> None:
    if landmarks is None:
        raise ValueError(
            f"Dask collections require {name}: without them the Gram matrix of the {n:,} {what} needs {8 * n * n:,} "
            f"bytes on one machine. Set {name}, such as {name}={min(n, 2000)}; for an exact fit of data that fit "
            f"into memory, pass .compute() of the collections."
        )
