"""Late import of torch, its devices and its random seeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from psilearn._backend import find_device
from psilearn.utils import MissingDependencyError, RandomStateLike, validation

if TYPE_CHECKING:
    import torch

DeviceLike: TypeAlias = "str | torch.device | None"


def require_torch(name: str) -> None:
    """Raise an error that explains how to install torch if it is missing."""
    if find_spec("torch") is None:
        raise MissingDependencyError(f"{name} is a network and needs torch: pip install 'psilearn[torch]'")


def resolve_device(device: DeviceLike) -> torch.device:
    """Return the torch device of this name; None is the CPU."""
    resolved: torch.device = find_device("cpu" if device is None else device, any_type=True)
    return resolved


@contextmanager
def fixed_seed(random_state: RandomStateLike, device: torch.device) -> Iterator[np.random.Generator]:
    """Seed torch inside the ``with`` block and yield a generator of the same seed; afterwards restore torch's state."""
    import torch

    seed = int(validation.as_random_state(random_state).randint(2**31 - 1))
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU, too
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield np.random.default_rng(seed)
