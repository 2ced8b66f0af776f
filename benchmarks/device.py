"""What a device of torch can do at best: the ceilings that the other figures are held against."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from psilearn import OEL
from psilearn._backend import find_device


def synchronize(device: Any) -> None:
    """Wait until the device has done what it was given."""
    if device is not None and device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


def warm_up() -> None:
    """Fit and predict something small, so that no clock sees libraries being loaded."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    OEL(n_components=5, input_landmarks=50, output_landmarks=50).fit(X, X).predict(X)
    OEL(n_components=5).fit(X, X).predict(X)


def best_seconds(work: Callable[[], Any], device: Any, turns: int = 7) -> float:
    """Return the least seconds of a piece of work on the device."""
    work()
    seconds = []
    for _ in range(turns):
        synchronize(device)
        start = perf_counter()
        work()
        synchronize(device)
        seconds.append(perf_counter() - start)
    return min(seconds)


def ceilings(name: str, quick: bool) -> dict[str, float]:
    """Return flops a second of matrix products, and bytes a second of copies: on the device, and to it."""
    import torch

    device = find_device(name)
    size = 512 if quick else 8192
    rates = {}
    for dtype, tf32 in (("float64", False), ("float32", False), ("tf32", True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        A, B = torch.randn((2, size, size), dtype=getattr(torch, dtype.replace("tf", "float")), device=device)
        rates[dtype] = 2 * size**3 / best_seconds(lambda A=A, B=B: A @ B, device)
    torch.backends.cuda.matmul.allow_tf32 = False
    there = torch.empty(2**24 if quick else 2**31, dtype=torch.uint8, device=device)
    other = torch.empty_like(there)
    rates["copy"] = 2 * len(there) / best_seconds(lambda: other.copy_(there), device)
    here = torch.empty(2**24 if quick else 2**30, dtype=torch.uint8, pin_memory=device.type == "cuda")
    rates["to device"] = len(here) / best_seconds(lambda: there[: len(here)].copy_(here), device)
    return rates
