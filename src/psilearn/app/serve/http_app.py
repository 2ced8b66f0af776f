"""The application: routes, error messages and middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fastapi import APIRouter, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.middleware import Middleware

from psilearn import __version__
from psilearn.app.serve.http_schemas import Health, ModelsResponse
from psilearn.app.serve.micro_batcher import MicroBatcher, QueueFullError
from psilearn.app.serve.prediction_routes import PredictionService, make_prediction_router
from psilearn.app.serve.request_guard import Access, RequestGuard
from psilearn.app.serve.request_log import RequestLog
from psilearn.app.serve.served_models import ServedModel
from psilearn.app.serve.service_limits import Limits

MAX_ERRORS = 5  # of one request that are reported
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # limits of the histogram of times
PAGE = Path(__file__).with_name("page")


class ServiceExtension(Protocol):
    """Routes that another package adds to the service for a model of its own kind.

    A package declares it as an entry point in the group ``psilearn.services``: the name is the ``kind`` in the notes of
    its models, and the object a function that takes :class:`~psilearn.app.serve.server_process.ServiceSettings` and the
    path of a model.
    """

    name: str  # of the description in /v1/models and of the script that starts its part of the page, such as "spectra"
    page: Path  # the folder of that script, and of section.html

    @property
    def n_waiting(self) -> int:
        """The number of jobs that wait."""

    def describe(self) -> dict[str, Any]:
        """Return what a client has to know, as JSON data."""

    def make_router(self) -> APIRouter:
        """Return the routes."""

    def start(self) -> None:
        """Resume the work of an earlier process."""

    def close(self) -> None:
        """Stop."""


def create_app(
    models: Sequence[ServedModel],
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    allowed_hosts: Sequence[str] = (),
    limits: Limits | None = None,
    extensions: Sequence[ServiceExtension] = (),
) -> FastAPI:
    """Make the HTTP service of models, for any ASGI server.

    Parameters
    ----------
    models : sequence of ServedModel
        The models, with different names.
    host : str, default="127.0.0.1"
        The address to which the server is bound.
    token : str, default=None
        The token that clients must send. It is required if the host is not a loopback address.
    allowed_hosts : sequence of str, default=()
        Further names by which clients call the service. Requests with another Host header are rejected.
    limits : Limits, default=None
        Limits on requests.
    extensions : sequence of ServiceExtension, default=()
        Routes of other packages.

    Returns
    -------
    FastAPI
        The application.

    Raises
    ------
    ValueError
        If two models have the same name, or a token is missing.

    See Also
    --------
    ServedModel.load : Load a saved model.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import IOKR
    >>> from psilearn.app.serve import ServedModel, create_app
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> app = create_app([ServedModel("line", IOKR().fit(X, X))])
    >>> "/v1/predict" in app.openapi()["paths"]
    True
    """
    names = [served.name for served in models]
    if len(set(names)) < len(names):
        raise ValueError(f"Models must have different names; got {', '.join(names)}.")
    limits = limits or Limits()
    batcher = MicroBatcher(block_rows=limits.block_rows, queue_rows=limits.queue_rows)
    registry = CollectorRegistry()
    requests = Counter("psilearn_requests", "Requests.", ("method", "path", "status"), registry=registry)
    seconds = Histogram("psilearn_request_seconds", "Their times.", ("path",), registry=registry, buckets=SECONDS)
    registry.register(_Counts(batcher, extensions))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for extension in extensions:
            extension.start()
        yield
        batcher.close()
        for extension in extensions:
            await run_in_threadpool(extension.close)

    app = FastAPI(
        title="psilearn",
        version=__version__,
        summary="Structured prediction with output kernels",
        docs_url=None,  # its page loads scripts from another site
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(RequestLog, requests=requests, times=seconds),
            Middleware(RequestGuard, access=Access.of(host, token, allowed_hosts), limits=limits),
        ],
    )
    _add_error_handlers(app)
    _add_state_routes(app, models, registry, extensions)
    app.include_router(make_prediction_router(PredictionService(models, limits, batcher)))
    for extension in extensions:
        app.include_router(extension.make_router())
        app.mount(f"/static/{extension.name}", StaticFiles(directory=extension.page))
    app.mount("/static", StaticFiles(directory=PAGE))
    sections = "".join((extension.page / "section.html").read_text("utf-8") for extension in extensions)
    page = (PAGE / "index.html").read_text("utf-8").replace("<!-- sections of extensions -->\n", sections)

    @app.get("/", include_in_schema=False)
    async def show_page() -> HTMLResponse:
        return HTMLResponse(page)

    return app


@dataclass(frozen=True, eq=False)
class _Counts(Collector):
    """Numbers of predictions and jobs for Prometheus."""

    batcher: MicroBatcher
    extensions: Sequence[ServiceExtension]

    def collect(self) -> Iterator[Metric]:
        """Yield the present numbers."""
        yield CounterMetricFamily("psilearn_predicted_rows", "Predicted inputs.", self.batcher.n_rows)
        yield CounterMetricFamily("psilearn_predicted_blocks", "Blocks of predictions.", self.batcher.n_blocks)
        yield GaugeMetricFamily("psilearn_waiting_rows", "Inputs that wait.", self.batcher.n_waiting)
        n_jobs = sum(extension.n_waiting for extension in self.extensions)
        yield GaugeMetricFamily("psilearn_waiting_jobs", "Jobs that wait.", n_jobs)


def _add_state_routes(
    app: FastAPI,
    models: Sequence[ServedModel],
    registry: CollectorRegistry,
    extensions: Sequence[ServiceExtension],
) -> None:
    """Add the routes that describe the service itself."""
    described = [served.describe() for served in models]
    extended = {extension.name: extension.describe() for extension in extensions}

    @app.get("/healthz", tags=["service"])
    async def check_health() -> Health:
        """Tell that the service answers."""
        return Health()

    @app.get("/metrics", tags=["service"], response_class=PlainTextResponse)
    async def show_metrics() -> PlainTextResponse:
        """Return counters of the process that answers, in the text format of Prometheus."""
        return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models", tags=["models"], response_model=ModelsResponse)
    async def list_models() -> Any:
        """List the models with what they take and return."""
        return {"version": __version__, "models": described, "extensions": extended}


def _add_error_handlers(app: FastAPI) -> None:
    """Answer errors that a client can fix with a message; nothing of the request is repeated."""

    @app.exception_handler(RequestValidationError)
    async def explain_validation(_: Request, error: RequestValidationError) -> JSONResponse:
        found = error.errors()
        details = [
            {"where": [str(part)[:50] for part in item["loc"][:6]], "problem": item["msg"][:200]} for item in found
        ]
        status = 400 if any(item["type"] == "json_invalid" for item in found) else 422
        return JSONResponse({"detail": details[:MAX_ERRORS]}, status)

    def answer_with(status: int, detail: str = "", seconds: int = 0) -> Any:
        async def explain(_: Request, error: Exception) -> JSONResponse:
            headers = {"Retry-After": str(seconds)} if seconds else None
            return JSONResponse({"detail": detail or str(error)[:1000]}, status, headers)

        return explain

    app.add_exception_handler(QueueFullError, answer_with(429, "Too many requests wait; try again later.", 1))
    app.add_exception_handler(TimeoutError, answer_with(503, "The prediction took too long.", 5))
    app.add_exception_handler(MemoryError, answer_with(413, "The request needs more memory than there is."))
    app.add_exception_handler(ValueError, answer_with(422))
    app.add_exception_handler(TypeError, answer_with(422))
