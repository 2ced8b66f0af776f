"""Run the service: one or several processes of uvicorn on one port."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from psilearn.app.serve.http_app import create_app
from psilearn.app.serve.request_log import configure_logs
from psilearn.app.serve.served_models import ServedModel
from psilearn.app.serve.service_limits import Limits
from psilearn.io import read_notes

GRACE_SECONDS = 30  # that running requests get to finish
START_SECONDS = 120  # that a process may take to start on a busy machine
SWITCH_SECONDS = 0.001  # that a thread which ranks spectra may delay an answer; Python's default is 0.005
MMAP_THRESHOLD = -3  # the option M_MMAP_THRESHOLD of the C library
LARGE_BLOCK = 2**20  # bytes; larger blocks, such as bodies, are given back to the system when they are freed
MIN_READ_RATE = 1000  # bytes per second that a client must read of a long answer


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
            raise ValueError(
                "--candidates is the library of a metabolite model, but none of the models is one, or the package "
                "psilearn-chem is not installed."
            )
        return create_app(
            [ServedModel.load(path, self.device) for path in models],
            host=self.host,
            token=self.token,
            allowed_hosts=self.allowed_hosts,
            limits=self.limits,
            extensions=[known[kind].load()(self, path) for path, kind in others],
        )


def _prepare_process() -> None:
    """Configure the logs, let threads take turns more often than Python does, and give memory back to the system."""
    configure_logs()
    sys.setswitchinterval(SWITCH_SECONDS)
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(MMAP_THRESHOLD, LARGE_BLOCK)


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
        h11_max_incomplete_event_size=limits.head_bytes,
    )
    if workers > 1:
        Multiprocess(config, [listener]).run()
    else:
        uvicorn.Server(config).run([listener])


class TimedProtocol(H11Protocol):
    """One connection. Its first head and each later one must arrive within ``head_seconds`` of their first byte.

    A client that lets an answer wait must read ``MIN_READ_RATE`` bytes per second on average of ``read_seconds``, and
    the end of an answer within ``read_seconds``. This holds for a connection that is being closed too, because it stays
    open until everything is read.
    """

    def __init__(self, *arguments: Any, head_seconds: float, read_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.head_seconds = head_seconds
        self.read_seconds = read_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection and wait for its first head."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._close)

    def data_received(self, data: bytes) -> None:
        """Receive data; the timer runs while a head is incomplete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self._close)

    def pause_writing(self) -> None:
        """Watch a client that does not read its answer."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """Continue with a client that has read most of its answer."""
        super().resume_writing()
        self._watch_reading()

    def on_response_complete(self) -> None:
        """Watch a client that has not read the end of its answer."""
        if not self.flow.write_paused:  # else it is watched already
            self._watch_reading()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End both timers with the connection."""
        self._stop_head_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def _watch_reading(self) -> None:
        """Begin a new period in which the client must read, if there is something to read."""
        self._stop_read_timer()
        if unread := self.transport.get_write_buffer_size():
            self._read_timer = self.loop.call_later(self.read_seconds, self._check_reading, unread)

    def _check_reading(self, n_before: int) -> None:
        """Drop a client that has read too little since the last check."""
        unread = self.transport.get_write_buffer_size()
        if unread and n_before - unread < MIN_READ_RATE * self.read_seconds:
            self.transport.abort()
        else:
            self._watch_reading()

    def _close(self) -> None:
        self._head_timer = None
        self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None


def make_protocol(limits: Limits) -> Any:
    """Return the protocol with the time limits of a service; it can be sent to other processes."""
    return partial(TimedProtocol, head_seconds=limits.header_seconds, read_seconds=limits.body_seconds)
