"""torch, when it is asked for: imported late, on one device, with random numbers of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from psilearn import _backend as backend


def require_torch(who: str) -> None:
    """Say how to install torch where it is missing."""
    if find_spec("torch") is None:
        raise ImportError(f"{who} is a network and needs torch: pip install 'psilearn[torch]'")


def find_device(device: Any) -> Any:
    """Return the torch device of that name; None is the CPU."""
    return backend.find_device("cpu" if device is None else device, others=True)


@contextmanager
def seeded(random_state: Any, device: Any) -> Iterator[np.random.Generator]:
    """Draw from a seed inside the ``with`` block, and leave torch's own random numbers as they were."""
    import torch

    seed = int(check_random_state(random_state).randint(2**31 - 1))
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU too
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield np.random.default_rng(seed)
