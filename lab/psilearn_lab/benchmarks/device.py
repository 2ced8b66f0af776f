"""Computing on a device of torch, and the highest rates of the device, with which other figures are compared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from time import perf_counter

import numpy as np

from psilearn import OEL, computing
from psilearn._backend import find_device
from psilearn._linalg import has_half_units, multiply_halves

__all__ = ["compute_on", "find_device", "measure_peak_rates", "measure_sustained_rates", "synchronize", "warm_up"]


def compute_on(device: str | None, dtype: str = "float64") -> AbstractContextManager[object]:
    """Let psilearn compute on a device of torch, or in NumPy for None, inside the ``with`` block."""
    return computing(dtype, find_device(device, "--device"))


def synchronize() -> None:
    """Wait until the GPU, if one is used, has finished its work."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def warm_up() -> None:
    """Fit and predict on little data, so that loading libraries is not measured."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    OEL(n_components=5, input_landmarks=50, output_landmarks=50).fit(X, X).predict(X)
    OEL(n_components=5).fit(X, X).predict(X)


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

    device = find_device(name)
    size, seconds = (512, 0.01) if quick else (8192, 0.5)
    rates = {}
    for dtype in ("float64", "float32"):
        A, B = torch.randn((2, size, size), dtype=getattr(torch, dtype), device=device)
        rates[dtype] = sustained_rate(partial(torch.matmul, A, B), 2 * size**3, seconds)
    A, B = torch.randn((2, size, size), device=device).half()
    half = partial(multiply_halves, A, B) if device.type != "cuda" or has_half_units(device) else None
    rates["half"] = 3 * rates["float32"] if half is None else sustained_rate(half, 2 * size**3, seconds)
    return rates


def measure_peak_rates(name: str, quick: bool) -> dict[str, float]:
    """Return flops per second of matrix products, and bytes per second of copies on the device and to it."""
    import torch

    device = find_device(name)
    size = 512 if quick else 8192
    rates = {}
    for dtype, tf32 in (("float64", False), ("float32", False), ("tf32", True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        A, B = torch.randn((2, size, size), dtype=getattr(torch, dtype.replace("tf", "float")), device=device)
        rates[dtype] = 2 * size**3 / best_seconds(partial(torch.matmul, A, B))
    torch.backends.cuda.matmul.allow_tf32 = False
    A, B = torch.randn((2, size, size), device=device).half()
    if device.type != "cuda" or has_half_units(device):
        rates["half"] = 2 * size**3 / best_seconds(partial(multiply_halves, A, B))
    else:  # products stay in float32
        rates["half"] = 3 * rates["float32"]
    target = torch.empty(2**24 if quick else 2**31, dtype=torch.uint8, device=device)
    other = torch.empty_like(target)
    rates["copy"] = 2 * len(target) / best_seconds(lambda: other.copy_(target))
    source = torch.empty(2**24 if quick else 2**30, dtype=torch.uint8, pin_memory=device.type == "cuda")
    rates["to device"] = len(source) / best_seconds(lambda: target[: len(source)].copy_(source))
    return rates
