"""Dask collections as arguments of fitted and unfitted models: what is required, and predictions chunk by chunk."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from psilearn._distributed import (
    ChunkedRows,
    as_chunks,
    as_rows,
    check_aligned,
    is_dask,
    lazy_rows,
    line_from_memory,
    runs_on_cluster,
)
from psilearn._utils.samples import Samples, n_samples
from psilearn.decoding import ApproximateCandidates, Candidates, PerExampleCandidates, SharedCandidates, TopK
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


def lazy_embeddings(model: Any, method: str, A: Any, name: str) -> Any:
    """Return the result of ``embed`` or ``transform_outputs`` as a Dask array."""
    with model._computing() as compute:
        like = np.empty((0, model.n_components_), compute.dtype)
    return lazy_rows(_embed_chunk, as_chunks(A, name), (like,), (_without_candidates(model), method))[0]


def lazy_predictions(model: Any, X: Any, candidates: Any) -> Any:
    """Return the nearest candidate of each input as a Dask array; of objects if outputs are not arrays."""
    chunks = as_chunks(X, "X")
    prepared = _prepare_candidates(model, candidates, len(chunks))
    with model._computing() as compute:
        like = as_rows(prepared.nearest(np.zeros((1, model.n_components_)), 1, compute).nearest)
    return lazy_rows(_predict_chunk, chunks, (like,), (_without_candidates(model), prepared))[0]


def lazy_top_k(model: Any, X: Any, k: int, candidates: Any) -> TopK:
    """Return the k nearest candidates of each input with Dask arrays as indices and distances."""
    chunks = as_chunks(X, "X")
    prepared = _prepare_candidates(model, candidates, len(chunks))
    if not isinstance(prepared, SharedCandidates):
        raise TypeError(
            f"predict_topk of a Dask collection requires candidates that are listed, but {type(prepared).__name__} are "
            f"searched by a solver: use predict, or predict_topk(X.compute(), ...)."
        )
    width = min(k, len(prepared))
    likes = np.empty((0, width), np.intp), np.empty((0, width))
    indices, distances = lazy_rows(_search_chunk, chunks, likes, (_without_candidates(model), prepared, k))
    return TopK(indices, distances, prepared, k)


def _prepare_candidates(model: Any, candidates: Any, n: int) -> Candidates:
    """Return validated candidates, which all chunks share."""
    prepared: Candidates = model._candidates(candidates, n)
    if isinstance(prepared, PerExampleCandidates):
        raise TypeError(
            "A Dask collection of inputs requires one set of candidates for all inputs, or None: for one set per "
            "input, predict each partition on its own."
        )
    if isinstance(prepared, ApproximateCandidates) and runs_on_cluster():
        raise TypeError(
            "ApproximateCandidates hold an index of faiss, which cannot be sent to the workers of the default client. "
            "Give model.candidate_set(C, path) as candidates, or predict with X.compute()."
        )
    return prepared


def _without_candidates(model: Any) -> Any:
    """Return a model that predicts the same, with a single known output and without what ``partial_fit`` needs."""
    light = copy(model)
    light.candidates_ = model.candidates_._select(slice(0, 1))
    light._continuation = None
    return light


def _embed_chunk(A: Samples, model: Any, method: str) -> tuple[Any]:
    return (getattr(model, method)(A),)


def _predict_chunk(X: Samples, model: Any, candidates: Candidates) -> tuple[Any]:
    return (as_rows(model.predict(X, candidates)),)


def _search_chunk(X: Samples, model: Any, candidates: Candidates, k: int) -> tuple[Any, Any]:
    found = model.predict_topk(X, k, candidates)
    return found.indices, found.distances
