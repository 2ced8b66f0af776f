"""Hostile requests to the service: sizes, depths, types, paths, headers, files, and bodies that never end.

Each answer must come in time and must not be an error of the service (500). Meanwhile the service must answer
``/healthz``, and afterwards return to its memory.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Any, Self

import numpy as np

from psilearn import OEL, save_model
from psilearn.kernels import Dice, Gaussian
from psilearn_lab.fuzz.crafted import craft_files
from psilearn_lab.fuzz.harness import CLEAR, DEFECT, Result, Tally

PATIENCE = 30.0  # seconds that a client waits for an answer
HEALTH_SECONDS = 0.1  # in which /healthz answers
CONCURRENT = 20  # requests at the same time
OPEN_CONNECTIONS = 50  # that stay open with an unfinished request
MEMORY_BYTES = 100 << 20  # that the service may keep
LIMIT = 4_000_000  # bytes of the largest body
START = "import sys; from psilearn.app.cli import app; app(sys.argv[1:])"
SPECTRUM = b"BEGIN IONS\nTITLE=a\nPEPMASS=123.0441\nCHARGE=1+\nADDUCT=[M+H]+\n50.0 1.0\nEND IONS\n"


class HTTPClient:
    """One connection to the loopback address that stays open: a client that costs little of what is measured."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return the status and the body of the answer."""
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        return int(head.split()[1]), await self.reader.readexactly(length)


def post(path: str, body: bytes, extra: str = "", length: int | None = None) -> bytes:
    """Return a request with a body."""
    size = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    return (head + extra + "\r\n").encode("latin-1") + body


def get(path: str, host: str = "127.0.0.1", extra: str = "") -> bytes:
    """Return a request without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode("latin-1")


def _fill(item: bytes, size: int = LIMIT) -> bytes:
    """Return a body at the limit, of equal inputs."""
    return b'{"inputs":[' + b",".join([item] * ((size - 20) // (len(item) + 1))) + b"]}"


@cache
def list_requests() -> tuple[bytes, ...]:
    """Return all hostile requests, once each."""
    bad = [b"", b"{", b"null", b"[" * 100_000, b'{"inputs":' * 5000, b"\xff\xfe\x00", b'{"inputs": [[NaN]]}']
    bad += [b'{"inputs": [[' + b"9" * digits + b"]]}" for digits in (310, 5000)]
    bad += [b'{"inputs": ' + value + b"}" for value in (b"[[1e999]]", b'"x"', b"[[]]", b"[{}]", b"[null]", b"[[[1]]]")]
    bad += [b'{"inputs": [{"indices": [-1], "values": [1]}]}', b'{"inputs": [[1]], "candidates": "everything"}']
    bad += [b'{"inputs": [[1]], "model": "../../etc/passwd"}', b'{"inputs": [[1]], "__proto__": {}}']
    bad += [
        json.dumps({"inputs": [[0.0] * 8], "k": 10**12}).encode(),
        json.dumps({"inputs": ["a" * 1_000_000]}).encode(),
    ]
    limit = [b"{}", b'"a"', b"1", b"[1]", b'{"a":1}', b"[0,0,0,0,0,0,0,0]", b"null", b"[" + b"9" * 300 + b"]"]
    limit += [b"0.5", b"1e308", b"9" * 4000, b"[" + b",".join([b"0.123456789012345"] * 50) + b"]"]  # slow to parse
    requests = [post(path, body) for path in ("/v1/predict", "/v1/topk", "/v1/sets") for body in bad]
    requests += [post(path, _fill(item)) for path in ("/v1/predict", "/v1/sets") for item in limit]
    requests += [post("/v1/predict", b"x", length=10**15), post("/v1/predict", b" " * (LIMIT + 1_000_000))]
    requests += [post("/v1/predict", gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip\r\n")]
    requests += [post("/v1/spectra/upload?format=../../x", gzip.compress(b"x" * 10_000_000))]
    requests += [
        post("/v1/spectra/upload?format=mgf", content) for content in craft_files(".mgf", SPECTRUM, (), 200_000)
    ]
    paths = "/static/../../../etc/passwd /static/%2e%2e%2fhttp_app.py //etc/passwd /%00 /v1/spectra/../../etc/passwd"
    requests += [get(path) for path in (*paths.split(), "/" + "a" * 10_000, "/v1/models?" + "a=b&" * 2000)]
    requests += [get("/v1/models", host="evil.example"), get("/v1/models", extra="Origin: http://evil.example\r\n")]
    requests += [
        get("/v1/models", extra="".join(f"X-{i}: {'y' * 100}\r\n" for i in range(count))) for count in (300, 600)
    ]
    return (*requests, b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)


async def send_requests(port: int, count: int, patience: float = PATIENCE) -> list[str]:
    """Send requests, with others that never end, and return the status of each answer.

    It is "closed" if the service ends the connection, and "none" if it does not answer in time.
    """
    unfinished = [
        b"",
        b"GET / HTTP/1.1\r\nHost:",
        get("/healthz") + b"GET / HTTP",
        post("/v1/predict", b"{", length=999),
    ]
    waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(min(OPEN_CONNECTIONS, count))]
    for (_, writer), part in zip(waiting, cycle(unfinished), strict=False):
        writer.write(part)
    turns = asyncio.Semaphore(CONCURRENT)

    async def send(request: bytes) -> str:
        try:
            async with turns, asyncio.timeout(patience), HTTPClient(port) as client:
                return str((await client.exchange(request))[0])
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return "closed"
        except TimeoutError:
            return "none"

    answers = await asyncio.gather(*(send(request) for request in islice(cycle(list_requests()), count)))
    for _, writer in waiting:
        writer.close()
    return list(answers)


def _watch_health(port: int, done: Event, seconds: list[float]) -> None:
    """Ask for the health again and again, and add the time of each answer to a list."""
    client = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    while not done.wait(0.02):
        start = perf_counter()
        client.request("GET", "/healthz")
        client.getresponse().read()
        seconds.append(perf_counter() - start)


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[int, int]]:
    """Run ``psilearn serve`` on a free port of the loopback address; yield the port and the process number."""
    command = [sys.executable, "-c", START, "serve", *map(str, arguments), "--port", "0"]
    with tempfile.TemporaryFile("w+") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert process.stderr is not None
        line = process.stderr.readline()
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=log)
        try:
            port = int(line.rsplit(":", 1)[1])
            _wait_until_ready(port)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(60)
            drain.wait(60)


def _wait_until_ready(port: int) -> None:
    async def ask() -> None:
        async with HTTPClient(port) as client:
            await client.exchange(get("/healthz"))

    for _ in range(600):
        with suppress(OSError):
            return asyncio.run(ask())
        sleep(0.1)
    raise TimeoutError("the service does not answer")


def resident_bytes(pid: int) -> int:
    """Return the memory of a process (Linux)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def save_tags(path: Path) -> Any:
    """Fit a small model of tags, save it, and return its inputs."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((200, 8)), (rng.random((200, 6)) < 0.4).astype(int)
    model = OEL(Gaussian(0.5), Dice(), alpha=1e-3, n_components=5).fit(X, Y)
    save_model(model.calibrate(X, Y), path)
    return X


def attack_service(count: int, seed: int = 0) -> Tally:
    """Send hostile requests to a service in a process of its own."""
    tally, done, seconds = Tally("hostile requests", seed), Event(), [0.0]
    list_requests()  # takes long, and would delay the watch

    with tempfile.TemporaryDirectory() as folder:
        save_tags(Path(folder, "tags.psi"))
        with serving(Path(folder, "tags.psi")) as (port, pid):
            before = resident_bytes(pid)
            watch = Thread(target=_watch_health, args=(port, done, seconds))
            watch.start()
            try:
                answers = asyncio.run(send_requests(port, count))
            finally:
                done.set()
                watch.join()
            for status, number in Counter(answers).items():
                for _ in range(number):
                    is_defect = status in ("500", "none")
                    tally.add(Result(DEFECT, f"answer {status}", status) if is_defect else Result(CLEAR))
            sleep(2)
            grown = resident_bytes(pid) - before
    print(
        f"/healthz: {len(seconds) - 1} answers within {1000 * max(seconds):.0f} ms, memory +{grown:,} B",
        file=sys.stderr,
    )
    if max(seconds) > HEALTH_SECONDS:
        tally.add(Result(DEFECT, f"/healthz took up to {max(seconds):.2f} s", "health"))
    if grown > MEMORY_BYTES:
        tally.add(Result(DEFECT, f"the service keeps {grown:,} bytes more than before", "memory"))
    return tally
