"""Routes of models: predictions, nearest candidates, conformal sets and embeddings."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from psilearn.app.serve.http_schemas import (
    EmbedResponse,
    ErrorResponse,
    InputsRequest,
    LabeledGraph,
    PredictRequest,
    PredictResponse,
    SetsRequest,
    SetsResponse,
    TopKRequest,
    TopKResponse,
)
from psilearn.app.serve.micro_batcher import MicroBatcher
from psilearn.app.serve.served_models import Operation, ServedModel
from psilearn.app.serve.service_limits import Limits

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse} for status in (400, 401, 403, 404, 408, 413, 421, 422, 429, 503)
}


class PredictionService:
    """Answers requests of models within the limits."""

    def __init__(self, models: Sequence[ServedModel], limits: Limits, batcher: MicroBatcher) -> None:
        self.models = {served.name: served for served in models}
        self.limits = limits
        self.batcher = batcher
        self._numbers = itertools.count(1)

    async def answer(self, request: InputsRequest, name: str, number: float = 0, limit: int = 0) -> tuple[str, Any]:
        """Return the name of the model and one result per input."""
        served = self._find_model(request.model)
        check_size(len(request.inputs), self.limits.rows, "inputs")
        check_size(_longest_text(request.inputs), self.limits.text, "characters of an input")
        check_size(_largest_graph(request.inputs), self.limits.nodes, "nodes of an input")
        check_size(limit, self.limits.candidates, "limit")
        if name == "topk":
            check_size(int(number), self.limits.top, "k")
        if name == "sets" and not served.is_calibrated:
            raise HTTPException(422, f"The model {served.name} is not calibrated: it predicts no conformal sets.")
        candidates = getattr(request, "candidates", None)
        listed = None
        if isinstance(candidates, list):
            check_size(len(candidates), self.limits.candidates, "candidates")
            check_size(_longest_text(candidates), self.limits.text, "characters of a candidate")
            check_size(_largest_graph(candidates), self.limits.nodes, "nodes of a candidate")
            listed = tuple(_plain(candidates))
            candidates = None
        unique = 0 if listed is None else next(self._numbers)
        operation = Operation(served, name, served.name, number, limit, candidates, listed, unique)
        answer = self.batcher.submit(operation, operation, _plain(request.inputs))
        return served.name, await asyncio.wait_for(answer, self.limits.answer_seconds)

    def _find_model(self, name: str | None) -> ServedModel:
        if not self.models:
            raise HTTPException(404, "This service ranks spectra only: use /v1/spectra.")
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise HTTPException(404, f"There is no such model; the models are {', '.join(self.models)}.")
        return self.models[name]


def check_size(size: int, limit: int, name: str) -> None:
    """Raise an error with status 413 if a request asks for more than the limit."""
    if size > limit:
        raise HTTPException(413, f"{name}: {size:,} is more than the limit of {limit:,}.")


def _longest_text(items: Sequence[Any]) -> int:
    """Return the number of characters of the longest text among items and the cells of table rows."""
    cells = (cell for item in items for cell in (item.values() if isinstance(item, dict) else (item,)))
    return max((len(cell) for cell in cells if isinstance(cell, str)), default=0)


def _largest_graph(items: Sequence[Any]) -> int:
    return max((len(item.node_labels) for item in items if isinstance(item, LabeledGraph)), default=0)


def _plain(items: Sequence[Any]) -> list[Any]:
    return [item.model_dump() if isinstance(item, BaseModel) else item for item in items]


def make_prediction_router(service: PredictionService) -> APIRouter:
    """Return the routes; results are sent as they are, because they are JSON values already."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["models"])

    @router.post("/predict", response_model=PredictResponse)
    async def predict(request: PredictRequest) -> Any:
        """Predict the nearest candidate of each input."""
        name, outputs = await service.answer(request, "predict")
        return JSONResponse({"model": name, "outputs": outputs})

    @router.post("/topk", response_model=TopKResponse)
    async def predict_topk(request: TopKRequest) -> Any:
        """Find the k nearest candidates of each input with squared distances."""
        name, results = await service.answer(request, "topk", request.k)
        return JSONResponse({"model": name, "results": results})

    @router.post("/sets", response_model=SetsResponse)
    async def predict_sets(request: SetsRequest) -> Any:
        """Predict conformal sets: each contains the true output with the requested probability."""
        name, results = await service.answer(request, "sets", request.coverage, request.limit)
        return JSONResponse({"model": name, "coverage": request.coverage, "results": results})

    @router.post("/embed", response_model=EmbedResponse)
    async def embed(request: InputsRequest) -> Any:
        """Compute the predicted embedding z(x) of each input."""
        name, embeddings = await service.answer(request, "embed")
        return JSONResponse({"model": name, "embeddings": embeddings})

    return router
