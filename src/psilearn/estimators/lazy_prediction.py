"""Predictions for Dask collections: Dask arrays, chunk by chunk, that are computed when they are needed."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from psilearn._distributed import as_chunks, as_rows, lazy_rows, runs_on_cluster
from psilearn._utils.samples import Samples
from psilearn.decoding import ApproximateCandidates, Candidates, PerExampleCandidates, SharedCandidates, TopK


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
