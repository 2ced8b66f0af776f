"""The matrix product of the machine itself, which bounds everything else: 2·size³ flops in float32 and float64."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, synchronize, warm_up

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


def best_seconds(work: Callable[[], object], turns: int = 7) -> float:
    """Return the smallest time of a piece of work in seconds."""
    work()
    seconds = []
    for _ in range(turns):
        synchronize()
        start = perf_counter()
        work()
        synchronize()
        seconds.append(perf_counter() - start)
    return min(seconds)


def sustained_rate(work: Callable[[], object], operations: float, seconds: float = 0.5) -> float:
    """Return operations per second of work that is repeated for as long as a fit takes: the clock of a GPU drops."""
    work()
    synchronize()
    start, n_turns = perf_counter(), 0
    while perf_counter() - start < seconds:
        for _ in range(4):
            work()
        synchronize()
        n_turns += 4
    return operations * n_turns / (perf_counter() - start)


def measure_sustained_rates(name: str, quick: bool) -> dict[str, float]:
    """Return flops per second of matrix products over half a second."""
    import torch

    device = torch.device(name)
    size, seconds = (512, 0.01) if quick else (8192, 0.5)
    rates = {}
    for dtype in ("float64", "float32"):
        A, B = torch.randn((2, size, size), dtype=getattr(torch, dtype), device=device)
        rates[dtype] = sustained_rate(partial(torch.matmul, A, B), 2 * size**3, seconds)
    A, B = torch.randn((2, size, size), device=device).half()
    rates["half"] = sustained_rate(partial(torch.matmul, A, B), 2 * size**3, seconds)
    return rates


def measure_peak_rates(name: str, quick: bool) -> dict[str, float]:
    """Return flops per second of matrix products, and bytes per second of copies on the device and to it."""
    import torch

    device = torch.device(name)
    size = 512 if quick else 8192
    rates = {}
    for dtype, tf32 in (("float64", False), ("float32", False), ("tf32", True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        A, B = torch.randn((2, size, size), dtype=getattr(torch, dtype.replace("tf", "float")), device=device)
        rates[dtype] = 2 * size**3 / best_seconds(partial(torch.matmul, A, B))
    torch.backends.cuda.matmul.allow_tf32 = False
    A, B = torch.randn((2, size, size), device=device).half()
    rates["half"] = 2 * size**3 / best_seconds(partial(torch.matmul, A, B))
    target = torch.empty(2**24 if quick else 2**31, dtype=torch.uint8, device=device)
    other = torch.empty_like(target)
    rates["copy"] = 2 * len(target) / best_seconds(lambda: other.copy_(target))
    source = torch.empty(2**24 if quick else 2**30, dtype=torch.uint8, pin_memory=device.type == "cuda")
    rates["to device"] = len(source) / best_seconds(lambda: target[: len(source)].copy_(source))
    return rates
