"""Run the service: one or several processes of uvicorn on one port."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from psilearn.app.serve.http_app import create_app
from psilearn.app.serve.request_log import configure_logs
from psilearn.app.serve.served_models import ServedModel
from psilearn.app.serve.service_limits import Limits
from psilearn.app.serve.timed_protocol import make_protocol
from psilearn.io import read_notes

GRACE_SECONDS = 30  # that running requests get to finish
START_SECONDS = 120  # that a process may take to start on a busy machine
SWITCH_SECONDS = 0.001  # that a thread which ranks spectra may delay an answer; Python's default is 0.005
MAX_HEAD_BYTES = 16 * 1024


@dataclass(frozen=True)
class ServiceSettings:
    """What a process needs to serve models; it can be sent to other processes."""

    models: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    device: str | None = None
    library: Path | None = None
    jobs: Path = Path("psilearn-jobs")
    limits: Limits = field(default_factory=Limits)

    def __call__(self) -> FastAPI:
        """Load the models and make the application."""
        _prepare_process()
        known = {entry.name: entry for entry in entry_points(group="psilearn.services")}
        kinds = [read_notes(path).get("kind") for path in self.models]
        models = [path for path, kind in zip(self.models, kinds, strict=True) if kind not in known]
        others = [(path, kind) for path, kind in zip(self.models, kinds, strict=True) if kind in known]
        if len(others) > 1:
            raise ValueError(f"Only one model of {others[0][1]} can be served; start another service for the others.")
        if not others and self.library is not None:
            raise ValueError("--candidates is for models of other packages, but no model is one.")
        return create_app(
            [ServedModel.load(path, self.device) for path in models],
            host=self.host,
            token=self.token,
            allowed_hosts=self.allowed_hosts,
            limits=self.limits,
            extensions=[known[kind].load()(self, path) for path, kind in others],
        )


def _prepare_process() -> None:
    """Configure the logs, and let threads take turns more often than Python does."""
    configure_logs()
    sys.setswitchinterval(SWITCH_SECONDS)


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. Raise an OSError that names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio then sets TCP_NODELAY
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(f"{host}:{port} cannot be used: {error.strerror}. Choose another --port.") from error
    listener.set_inheritable(True)
    return listener


def run_service(make_app: Callable[[], FastAPI], listener: socket.socket, *, limits: Limits, workers: int = 1) -> None:
    """Serve until a signal asks to stop; running requests are finished first."""
    _prepare_process()
    config = uvicorn.Config(
        make_app,
        factory=True,
        workers=workers,
        http=make_protocol(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.header_seconds,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=START_SECONDS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    if workers > 1:
        Multiprocess(config, [listener]).run()
    else:
        uvicorn.Server(config).run([listener])
