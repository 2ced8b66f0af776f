"""The machine's own matrix product, the ceiling of everything else: 2·size³ flops in float32 and float64."""

from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.report import Run

TURNS = 7


def measure(run: Run) -> dict[str, Any]:
    """Return GFLOP/s of each dtype, best and median, and keep the best as the ceiling of the run."""
    size = run.size(4096, 512)
    pairs = {
        name: np.random.default_rng(0).standard_normal((2, size, size)).astype(name) for name in ("float32", "float64")
    }
    rates: dict[str, list[float]] = {name: [] for name in pairs}
    for A, B in pairs.values():
        A @ B  # warm-up
    for _ in range(TURNS):
        for name, (A, B) in pairs.items():
            start = perf_counter()
            A @ B
            rates[name].append(2 * size**3 / (perf_counter() - start))
    run.gemm = {name: max(values) for name, values in rates.items()}
    figures = {
        name: {"best_gflops": max(values) / 1e9, "median_gflops": float(np.median(values)) / 1e9}
        for name, values in rates.items()
    }
    run.table(
        f"matrix product of order {size}, GFLOP/s of {TURNS}",
        ["dtype", "best", "median"],
        [[name, f["best_gflops"], f["median_gflops"]] for name, f in figures.items()],
    )
    return {"size": size, **figures}
