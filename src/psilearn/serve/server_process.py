"""Run the service: one or several processes of uvicorn on one port."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from psilearn.io import read_notes
from psilearn.serve.http_app import create_app
from psilearn.serve.request_log import configure_logs
from psilearn.serve.served_models import ServedModel
from psilearn.serve.service_limits import Limits
from psilearn.serve.timed_protocol import make_protocol

if TYPE_CHECKING:
    from psilearn.serve.job_runner import ServedIdentifier

IDENTIFIER_KIND = "psilearn.chem.metabolites"  # in the notes of metabolite models
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
        is_identifier = [read_notes(path).get("kind") == IDENTIFIER_KIND for path in self.models]
        models = [path for path, is_other in zip(self.models, is_identifier, strict=True) if not is_other]
        identifiers = [path for path in self.models if path not in models]
        return create_app(
            [ServedModel.load(path, self.device) for path in models],
            host=self.host,
            token=self.token,
            allowed_hosts=self.allowed_hosts,
            limits=self.limits,
            identifier=self._load_identifier(identifiers),
        )

    def _load_identifier(self, paths: list[Path]) -> ServedIdentifier | None:
        """Load the metabolite model; raise an error if its library is missing, or if there are two of them."""
        if not paths:
            if self.library is not None:
                raise ValueError("--candidates is for metabolite models, but no model is one.")
            return None
        if len(paths) > 1:
            raise ValueError("Only one metabolite model can be served; start another service for the others.")
        if self.library is None:
            raise ValueError(f"{paths[0]} is a metabolite model: name its library with --candidates.")
        from psilearn.serve.job_runner import ServedIdentifier

        return ServedIdentifier.load(paths[0], self.library, self.jobs, self.device)


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
