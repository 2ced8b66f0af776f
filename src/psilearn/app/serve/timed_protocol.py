"""HTTP/1.1 that closes connections of clients that send the head of a request, or read an answer, too slowly."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from psilearn.app.serve.service_limits import Limits

MIN_READ_RATE = 1000  # bytes per second that a client must read of a long answer


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
