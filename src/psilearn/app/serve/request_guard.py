"""Checks of every request before the application sees it: host, origin, token, size and time of the body."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from psilearn.app.serve.service_limits import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MIN_TOKEN, MAX_TOKEN = 16, 1000  # characters
UPLOAD_PATH = "/v1/spectra/upload"
OPEN_PATHS = ("/", "/healthz")  # that need no token; so do the files of the page
OPEN_FOLDER = "/static/"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


@dataclass(frozen=True)
class Rejection(Exception):
    """A request that is answered without the application."""

    status: int
    detail: str


@dataclass(frozen=True)
class Access:
    """Who may use the service: the names by which it may be called, and the token, if there is one."""

    hosts: frozenset[str]
    token: str | None = None

    @classmethod
    def of(cls, host: str, token: str | None, others: Iterable[str] = ()) -> Access:
        """Return the access to a service that is bound to a host; a host that is not loopback requires a token."""
        is_text = isinstance(token, str) and token.isascii() and token.isprintable()
        if token is not None and not (is_text and MIN_TOKEN <= len(token) <= MAX_TOKEN):
            raise ValueError(f"A token must be text of {MIN_TOKEN} to {MAX_TOKEN} printable ASCII characters.")
        if not is_loopback(host) and token is None:
            raise ValueError(
                f"--host {host} can be reached from other machines, so a token is required: set PSILEARN_TOKEN or "
                f"--token-file."
            )
        names = {*LOOPBACK_NAMES, *others}
        if host not in ("0.0.0.0", "::", ""):  # a wildcard is not a name
            names.add(f"[{host}]" if ":" in host else host)
        return cls(frozenset(name.lower() for name in names), token)

    def check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise a Rejection for a foreign Host (DNS rebinding), a foreign Origin, or a missing token."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if _host_name(host) not in self.hosts:
            raise Rejection(421, "This Host is not a name of the service; start it with --allow-host to add one.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in (f"http://{host}", f"https://{host}"):
            raise Rejection(403, "Requests of other web sites are not accepted.")
        if self.token is not None and scope["path"] not in OPEN_PATHS and not scope["path"].startswith(OPEN_FOLDER):
            given = headers.get(b"authorization", b"")
            if not secrets.compare_digest(given, b"Bearer " + self.token.encode()):
                raise Rejection(401, "A token is required: Authorization: Bearer …")


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # any other name may be that of another address


def _host_name(host: str) -> str:
    """Return the Host header without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


class RequestGuard:
    """Middleware that checks a request, receives its whole body within the limits, and adds security headers."""

    def __init__(self, app: Application, access: Access, limits: Limits) -> None:
        self.app = app
        self.access = access
        self.limits = limits
        self._n_buffered = 0  # bytes of bodies that are being received or used

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *SECURITY_HEADERS]
            await send(message)

        body = bytearray()
        try:
            headers = dict(scope["headers"])
            self._check_head(scope)
            self.access.check(scope, headers)
            async with asyncio.timeout(self.limits.body_seconds):
                await self._read_body(scope, headers, receive, body)
            if scope["path"] != UPLOAD_PATH:
                self._check_values(body)
            await self.app(scope, _replay(bytes(body), receive), send_with_headers)
        except Rejection as rejection:
            await send_rejection(send_with_headers, rejection)
        except TimeoutError:
            await send_rejection(send_with_headers, Rejection(408, "The body was not received in time."))
        finally:
            self._n_buffered -= len(body)

    def _check_head(self, scope: Scope) -> None:
        """Raise a Rejection for a head that is too large; the server limits only those that arrive in several parts."""
        n_bytes = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        n_bytes += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if n_bytes > self.limits.head_bytes:
            raise Rejection(431, f"The head of the request is larger than {self.limits.head_bytes:,} bytes.")

    def _check_values(self, body: bytearray) -> None:
        """Raise a Rejection for a body whose JSON values are so many that reading them would take long."""
        n_lists = body.count(b"[") + body.count(b"{")
        if n_lists > self.limits.body_lists or n_lists + body.count(b",") > self.limits.body_values:
            raise Rejection(
                413,
                f"The body has more than {self.limits.body_values:,} values, or {self.limits.body_lists:,} lists and "
                f"objects; send fewer inputs.",
            )

    async def _read_body(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, body: bytearray) -> None:
        limit = self.limits.upload_bytes if scope["path"] == UPLOAD_PATH else self.limits.body_bytes
        too_large = Rejection(413, f"The body is larger than {limit:,} bytes.")
        stated = headers.get(b"content-length", b"0")
        if stated.isdigit() and int(stated[:20]) > limit:
            raise too_large
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the client is gone
                raise Rejection(400, "The body is incomplete.")
            part = message.get("body", b"")
            if len(body) + len(part) > limit:
                raise too_large
            if self._n_buffered + len(part) > self.limits.buffered_bytes:
                raise Rejection(429, "The service is receiving too much data; try again later.")
            body += part
            self._n_buffered += len(part)
            if not message.get("more_body", False):
                return


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives the application the body as one message, and then waits for the client."""
    pending = [body]

    async def replayed() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replayed


async def send_rejection(send: Send, rejection: Rejection) -> None:
    """Answer with a status and a JSON object, and close the connection, whose body may be unread."""
    content = json.dumps({"detail": rejection.detail}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
    ]
    if rejection.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if rejection.status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": rejection.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
