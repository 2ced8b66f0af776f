"""Requests that try to harm the service: sizes, depths, types, paths, headers, files, and bodies that never end."""

import asyncio
import gzip
import json
from collections import Counter
from itertools import cycle, islice

from psilearn_lab.benchmarks.hostile_files import list_hostile_files
from psilearn_lab.benchmarks.http_client import HTTPClient

PATIENCE = 5.0  # seconds that a client waits for an answer
CONCURRENT = 20  # requests at the same time
OPEN_CONNECTIONS = 50  # that stay open with an unfinished request


def post(path: str, body: bytes, extra: str = "", length: int | None = None) -> bytes:
    """Return a request with a body."""
    size = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    return (head + extra + "\r\n").encode("latin-1") + body


def get(path: str, host: str = "127.0.0.1", extra: str = "") -> bytes:
    """Return a request without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode("latin-1")


BAD_BODIES = [
    b"",
    b"{",
    b"null",
    b"[" * 100_000,
    b'{"inputs":' * 5000,
    b"\xff\xfe\x00",
    b'{"inputs": [[NaN]]}',
    b'{"inputs": [[' + b"9" * 5000 + b"]]}",
    b'{"inputs": [[1e999]]}',
    b'{"inputs": "x"}',
    b'{"inputs": [[]]}',
    b'{"inputs": [{"indices": [-1], "values": [1]}]}',
    b'{"inputs": [[1]], "candidates": "everything"}',
    b'{"inputs": [[1]], "model": "../../etc/passwd"}',
    b'{"inputs": [[1]], "__proto__": {}}',
    json.dumps({"inputs": [[0.0] * 64] * 2000}).encode(),
    json.dumps({"inputs": [[0.0] * 64], "k": 10**12}).encode(),
    json.dumps({"inputs": ["a" * 1_000_000]}).encode(),
]
REQUESTS = [
    *(post("/v1/topk", body) for body in BAD_BODIES),
    *(post("/v1/predict", body) for body in BAD_BODIES),
    post("/v1/predict", b"x", length=10**15),
    post("/v1/predict", b" " * 5_000_000),
    post("/v1/predict", gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip\r\n"),
    post("/v1/spectra/upload?format=../../x", gzip.compress(b"x" * 10_000_000)),
    *(get(path) for path in ("/static/../../../etc/passwd", "/static/%2e%2e%2fhttp_app.py", "//etc/passwd", "/%00")),
    *(get(path) for path in ("/v1/spectra/../../etc/passwd", "/" + "a" * 10_000, "/v1/models?" + "a=b&" * 2000)),
    get("/v1/models", host="evil.example"),
    get("/v1/models", extra="Origin: http://evil.example\r\n"),
    get("/v1/models", extra="".join(f"X-{i}: {'y' * 100}\r\n" for i in range(300))),
    b"GARBAGE\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
]
UNFINISHED = [
    b"",
    b"GET / HTTP/1.1\r\nHost:",
    get("/healthz") + b"GET / HTTP/1.1\r\nHost:",
    post("/v1/predict", b"{", length=1000),
]


async def send_hostile(port: int, count: int) -> dict[str, int]:
    """Send requests, some of which never end, and return how many of each answer there were."""
    waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(min(OPEN_CONNECTIONS, count))]
    for (_, writer), part in zip(waiting, cycle(UNFINISHED), strict=False):
        writer.write(part)
    uploads = [post(f"/v1/spectra/upload?format={format}", content) for format, content in list_hostile_files()]
    requests = [request for pair in zip(REQUESTS, cycle(uploads), strict=False) for request in pair]
    turns = asyncio.Semaphore(CONCURRENT)
    answers = Counter(
        await asyncio.gather(*(_send(port, request, turns) for request in islice(cycle(requests), count)))
    )
    for _, writer in waiting:
        writer.close()
    return {str(answer): number for answer, number in sorted(answers.items())}


async def _send(port: int, request: bytes, turns: asyncio.Semaphore) -> str:
    """Return the status of the answer; "closed" if the service ends the connection, "none" if it does not answer."""
    try:
        async with turns, asyncio.timeout(PATIENCE), HTTPClient(port) as client:
            return str((await client.exchange(request))[0])
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return "closed"
    except TimeoutError:
        return "none"
