"""The HTTP service on the loopback address: predictions per second, latency, memory, and 1000 hostile requests.

A model of 64 numbers and 1000 pairs is served by one process. Clients in another process send one row per request over
connections that stay open, with and without micro-batching; the same rows are predicted by the library in a loop. Then
hostile requests are sent, and the latency is measured again. Each load is measured several times in turn, because other
programs of the machine change the times; medians are reported.
"""

import asyncio
import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from psilearn import OEL, save_model
from psilearn.kernels import Gaussian
from psilearn_lab.benchmarks.measurement import Figures, Run, median_of_each
from psilearn_lab.fuzz.harness import resident_bytes
from psilearn_lab.fuzz.requests import HTTPClient, post, send_requests, serving

FULL: dict[str, Any] = {
    "n": 1000,
    "seconds": 3.0,
    "clients": (1, 8, 64),
    "growth": 100_000,
    "hostile": 1000,
    "times": 5,
}
QUICK: dict[str, Any] = {"n": 100, "seconds": 0.5, "clients": (1, 8), "growth": 300, "hostile": 50, "times": 1}
WIDTH = 64  # numbers per input
BLOCK_ROWS = {"batched": 256, "not batched": 1}


def measure(run: Run) -> Figures:
    """Measure the service; see the module."""
    sizes = run.select(FULL, QUICK)
    rng = np.random.default_rng(0)
    X, Y = rng.random((sizes["n"], WIDTH)), rng.random((sizes["n"], 32))
    model = OEL(Gaussian(0.05), Gaussian(0.1), alpha=1e-3, n_components=min(50, sizes["n"])).fit(X, Y)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        save_model(model, path := Path(folder, "rows.psi"))
        services = {name: stack.enter_context(serving(path, "--block-rows", rows)) for name, rows in BLOCK_ROWS.items()}
        figures = measure_loads(model, X, {name: port for name, (port, _) in services.items()}, sizes)
        port, pid = services["batched"]
        hostile = asyncio.run(measure_hostile(port, X, sizes))
        growth = asyncio.run(measure_growth(port, pid, X, sizes["growth"]))
    rows = [
        [name, *values.values(), values["per_second"] / figures["library in a loop"]["per_second"]]
        for name, values in figures.items()
    ]
    run.show_table("Single-row predictions", ["", "per second", "p50 (ms)", "p99 (ms)", "rate / library"], rows)
    figures |= {"hostile": hostile, "growth": growth}
    _check_claims(run, figures, sizes)
    return figures


def measure_loads(model: OEL, X: Any, ports: dict[str, int], sizes: dict[str, Any]) -> Figures:
    """Measure the library and each number of clients in turn, several times; return the medians."""
    measured: dict[str, list[dict[str, float]]] = {}
    for _ in range(sizes["times"]):
        measured.setdefault("library in a loop", []).append(measure_library(model, X, sizes["seconds"]))
        for clients in sizes["clients"]:
            for name, port in ports.items():
                load = asyncio.run(measure_load(port, X, clients, sizes["seconds"]))
                measured.setdefault(f"{clients} clients, {name}", []).append(load)
    return {name: median_of_each(values) for name, values in measured.items()}


def _check_claims(run: Run, figures: Figures, sizes: dict[str, Any]) -> None:
    growth, hostile = figures["growth"], figures["hostile"]
    run.check_claim(
        f"memory grows by less than 20 MB over {sizes['growth']:,} requests",
        growth["growth_mb"] < 20,
        f"{growth['growth_mb']:.1f} MB",
    )
    run.check_claim(
        f"after {sizes['hostile']} hostile requests the service answers within twice its p99",
        hostile["after_ms"] < 2 * hostile["before_ms"],
        f"p99 {hostile['before_ms']:.1f} ms before, {hostile['after_ms']:.1f} ms after, "
        f"{hostile['first_after_ms']:.1f} ms while the last files are read; answers {hostile['statuses']}",
    )


def measure_library(model: OEL, X: Any, seconds: float) -> dict[str, float]:
    """Predict one row at a time in a loop."""
    times: list[float] = []
    stop = perf_counter() + seconds
    while perf_counter() < stop:
        start = perf_counter()
        model.predict(X[len(times) % len(X)][None])
        times.append(perf_counter() - start)
    return summarize(times, sum(times))


async def measure_load(port: int, X: Any, n_clients: int, seconds: float) -> dict[str, float]:
    """Send one row per request from several clients at the same time."""
    times: list[float] = []
    stop = perf_counter() + seconds

    async def send(first: int) -> None:
        async with HTTPClient(port) as client:
            number = first
            while perf_counter() < stop:
                body = json.dumps({"inputs": [X[number % len(X)].tolist()]}).encode()
                start = perf_counter()
                status, _ = await client.exchange(post("/v1/predict", body))
                times.append(perf_counter() - start)
                assert status == 200, status
                number += 1

    start = perf_counter()
    await asyncio.gather(*(send(31 * i) for i in range(n_clients)))
    return summarize(times, perf_counter() - start)


def summarize(times: list[float], seconds: float) -> dict[str, float]:
    """Return the rate and the latency."""
    p50, p99 = np.percentile(times, [50, 99])
    return {"per_second": len(times) / seconds, "p50_ms": 1000 * p50, "p99_ms": 1000 * p99}


async def measure_growth(port: int, pid: int, X: Any, n_requests: int) -> dict[str, float]:
    """Return how much memory the service holds after many requests, compared with a tenth of them."""
    body = json.dumps({"inputs": [X[0].tolist()]}).encode()

    async def send(count: int) -> None:
        async with HTTPClient(port) as client:
            for _ in range(count):
                await client.exchange(post("/v1/predict", body))

    await asyncio.gather(*(send(n_requests // 80) for _ in range(8)))
    before = resident_bytes(pid) / 2**20
    await asyncio.gather(*(send(9 * n_requests // 80) for _ in range(8)))
    return {"before_mb": before, "growth_mb": resident_bytes(pid) / 2**20 - before}


async def measure_hostile(port: int, X: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """Return the p99 latency of one client before and right after hostile requests, and their answers."""
    before = [await measure_load(port, X, 1, sizes["seconds"]) for _ in range(sizes["times"])]
    statuses = Counter(await send_requests(port, sizes["hostile"]))
    after = [await measure_load(port, X, 1, sizes["seconds"]) for _ in range(sizes["times"])]
    return {
        "before_ms": median_of_each(before)["p99_ms"],
        "after_ms": median_of_each(after)["p99_ms"],
        "first_after_ms": after[0]["p99_ms"],
        "statuses": dict(sorted(statuses.items())),
    }
