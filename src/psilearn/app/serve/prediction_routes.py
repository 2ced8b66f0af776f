"""Routes of models: predictions, nearest candidates, conformal sets and embeddings."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, HTTPException, Response

from psilearn.app.serve import http_schemas as schemas
from psilearn.app.serve.json_values import ParsingRoute, check_size
from psilearn.app.serve.micro_batcher import MicroBatcher
from psilearn.app.serve.served_models import Operation, ServedModel
from psilearn.app.serve.service_limits import Limits

BLOCK_WORK = 10_000_000  # comparisons after which other requests take their turn


class PredictionService:
    """Answers requests of models within the limits."""

    def __init__(self, models: Sequence[ServedModel], limits: Limits, batcher: MicroBatcher) -> None:
        self.models = {served.name: served for served in models}
        self.limits = limits
        self.batcher = batcher
        self._numbers = itertools.count(1)

    async def answer(
        self, request: schemas.InputsRequest, name: str, results: str, number: float = 0, limit: int = 0, **fields: Any
    ) -> Response:
        """Return the model, further fields, and one result per input.

        All limits are checked before any work. The inputs are computed in blocks of limited work.
        """
        served = self._find_model(request.model)
        candidates = getattr(request, "candidates", None)
        listed = tuple(candidates) if isinstance(candidates, list) else None
        check_size(len(request.inputs), self.limits.rows, "inputs")
        check_size(0 if listed is None else len(listed), self.limits.candidates, "candidates")
        check_size(limit, self.limits.candidates, "limit")
        if name == "topk":
            check_size(int(number), self.limits.top, "k")
        if name == "sets" and not served.is_calibrated:
            raise HTTPException(422, f"The model {served.name} is not calibrated: it predicts no conformal sets.")
        named, unique = (candidates, 0) if listed is None else (None, next(self._numbers))
        operation = Operation(served, self.limits, name, served.name, number, limit, named, listed, unique)
        per_input, per_block = operation.count_work(request.inputs)
        n_block = max(1, max(BLOCK_WORK, per_block) // per_input)
        work = len(request.inputs) * per_input + per_block * -(-len(request.inputs) // n_block)
        check_size(work, self.limits.work, "comparisons of inputs with candidates and training inputs")
        async with asyncio.timeout(self.limits.answer_seconds):
            parts = await self._compute(operation, request.inputs, n_block)
        head = json.dumps({"model": served.name, **fields})[:-1]
        content = b"".join((head.encode(), b', "' + results.encode() + b'": [', b",".join(parts), b"]}"))
        return Response(content, media_type="application/json")

    async def _compute(self, operation: Operation, inputs: Sequence[Any], n_block: int) -> list[bytes]:
        """Return one JSON text per input; other requests take their turn between two blocks."""
        parts: list[bytes] = []
        n_bytes = 0
        for start in range(0, len(inputs), n_block):
            found = await self.batcher.submit(operation, operation, inputs[start : start + n_block])
            parts += found
            n_bytes += sum(map(len, found))
            check_size(n_bytes, self.limits.answer_bytes, "bytes of the answer")
        return parts

    def _find_model(self, name: str | None) -> ServedModel:
        if not self.models:
            raise HTTPException(404, "This service ranks spectra only: use /v1/spectra.")
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise HTTPException(404, f"There is no such model; the models are {', '.join(self.models)}.")
        return self.models[name]


def make_prediction_router(service: PredictionService) -> APIRouter:
    """Return the routes; results are sent as they are, because they are JSON already."""
    router = APIRouter(prefix="/v1", responses=schemas.ERRORS, tags=["models"], route_class=ParsingRoute)

    @router.post("/predict", response_model=schemas.PredictResponse)
    async def predict(request: schemas.PredictRequest) -> Any:
        """Predict the nearest candidate of each input."""
        return await service.answer(request, "predict", "outputs")

    @router.post("/topk", response_model=schemas.TopKResponse)
    async def predict_topk(request: schemas.TopKRequest) -> Any:
        """Find the k nearest candidates of each input with squared distances."""
        return await service.answer(request, "topk", "results", request.k)

    @router.post("/sets", response_model=schemas.SetsResponse)
    async def predict_sets(request: schemas.SetsRequest) -> Any:
        """Predict conformal sets: each contains the true output with the requested probability."""
        return await service.answer(
            request, "sets", "results", request.coverage, request.limit, coverage=request.coverage
        )

    @router.post("/embed", response_model=schemas.EmbedResponse)
    async def embed(request: schemas.InputsRequest) -> Any:
        """Compute the predicted embedding z(x) of each input."""
        return await service.answer(request, "embed", "embeddings")

    return router
