"""The machine's own matrix product, the ceiling of everything else: 2·size³ flops in float32 and float64."""

from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.device import ceilings, warm_up
from benchmarks.report import Run

TURNS = 7


def _of_device(run: Run) -> dict[str, Any]:
    """Return what the device does at best; its matrix products are the ceiling of the run."""
    warm_up()
    rates = ceilings(str(run.device), run.quick)
    run.gemm = {name: rates[name] for name in ("float64", "float32", "tf32")}
    run.copy, run.to_device = rates["copy"], rates["to device"]
    run.table(
        f"{run.device}: best of {TURNS}",
        ["what", "10⁹ a second"],
        [[f"{name}, {'flops' if name in run.gemm else 'bytes'}", rate / 1e9] for name, rate in rates.items()],
    )
    return {"device": run.device, **{name: {"best_gflops": rate / 1e9} for name, rate in rates.items()}}


def measure(run: Run) -> dict[str, Any]:
    """Return GFLOP/s of each dtype, best and median, and keep the best as the ceiling of the run."""
    if run.device is not None:
        return _of_device(run)
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
