"""Structured logs: one JSON object per line, without anything that a request contains."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from prometheus_client import Counter, Histogram

from psilearn.app.serve.request_guard import Application, Message, Receive, Rejection, Scope, Send, send_rejection

LOGGER = logging.getLogger("psilearn.app.serve")
UNKNOWN_PATH = "other"
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


class JSONFormatter(logging.Formatter):
    """Formats a record as a JSON object; an error is its type and place, because its message may contain data."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        content: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            content["error"] = record.exc_info[0].__name__
            content["at"] = describe_place(record.exc_info[2])
        return json.dumps(content)


def describe_place(traceback: Any) -> str:
    """Return the file, the line and the function in which an error was raised."""
    if traceback is None:
        return ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno} {code.co_name}"


def configure_logs() -> None:
    """Write the logs of the service and of uvicorn to stderr as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONFormatter())
    for name in ("psilearn.app.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False


class RequestLog:
    """Middleware that logs and counts each request; an unexpected error is answered with status 500."""

    def __init__(self, app: Application, requests: Counter, times: Histogram) -> None:
        self.app = app
        self.requests = requests
        self.times = times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        statuses: list[int] = []

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        start = time.perf_counter()
        try:
            await self.app(scope, receive, send_and_note)
        except Exception:
            LOGGER.exception("unexpected error", extra={"fields": {"path": path_template(scope)}})
            if not statuses:
                await send_rejection(send_and_note, Rejection(500, "An unexpected error occurred; see the log."))
        finally:
            self._note(scope, statuses[0] if statuses else 499, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN_PATH
        path = path_template(scope)
        self.requests.labels(method, path, status).inc()
        self.times.labels(path).observe(seconds)
        fields = {"method": method, "path": path, "status": status, "seconds": round(seconds, 6)}
        LOGGER.info("request", extra={"fields": fields})


def path_template(scope: Scope) -> str:
    """Return the path of the route, with names instead of values; paths without a route are all the same."""
    return str(getattr(scope.get("route"), "path", UNKNOWN_PATH))
