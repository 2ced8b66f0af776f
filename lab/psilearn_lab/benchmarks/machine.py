"""The matrix product of the machine itself, which bounds everything else: 2·size³ flops in float32 and float64."""

import numpy as np

from psilearn_lab.benchmarks.device import measure_peak_rates, measure_sustained_rates, warm_up
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run

TURNS = 7


def measure(run: Run) -> Figures:
    """Return GFLOP/s of each dtype, best and median; the best one is the upper bound of the run."""
    if run.device is not None:
        return _measure_device(run, run.device)
    size = run.select(4096, 512)
    pairs = {
        name: np.random.default_rng(0).standard_normal((2, size, size)).astype(name) for name in ("float32", "float64")
    }
    rates: dict[str, list[float]] = {name: [] for name in pairs}
    for A, B in pairs.values():
        A @ B  # warm-up
    for _ in range(TURNS):
        for name, (A, B) in pairs.items():
            clock = Clock()
            with clock("product"):
                A @ B
            rates[name].append(2 * size**3 / clock.seconds["product"])
    run.gemm = {name: max(values) for name, values in rates.items()}
    figures = {
        name: {"best_gflops": max(values) / 1e9, "median_gflops": float(np.median(values)) / 1e9}
        for name, values in rates.items()
    }
    run.show_table(
        f"matrix product of order {size}, GFLOP/s of {TURNS}",
        ["dtype", "best", "median"],
        [[name, f["best_gflops"], f["median_gflops"]] for name, f in figures.items()],
    )
    return {"size": size, **figures}


def _measure_device(run: Run, device: str) -> Figures:
    """Return the highest rates of the device; its matrix products are the upper bound of the run."""
    warm_up()
    rates = measure_peak_rates(device, run.quick)
    run.gemm = {name: rates[name] for name in ("float64", "float32", "tf32", "half")}
    run.gemm["split"] = rates["half"] / 3  # three half-precision products
    run.sustained = measure_sustained_rates(device, run.quick)
    run.sustained["split"] = run.sustained["half"] / 3
    run.copy, run.to_device = rates["copy"], rates["to device"]
    run.show_table(
        f"{device}: best of {TURNS}",
        ["operation", "10⁹ per second"],
        [[f"{name}, {'flops' if name in run.gemm else 'bytes'}", rate / 1e9] for name, rate in rates.items()]
        + [[f"{name}, flops, over half a second", rate / 1e9] for name, rate in run.sustained.items()],
    )
    return {"device": device, **{name: {"best_gflops": rate / 1e9} for name, rate in rates.items()}}
