"""What all networks have in common: their parameters, the device, and random seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

from psilearn import computing
from psilearn.utils import RandomStateLike, validation

DeviceLike = str | torch.device | None
MAX_WIDTH = 1_000_000


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkParameters:
    """The size of a perceptron and the parameters of its training."""

    hidden: Sequence[int] = field(default=(150, 150), kw_only=False)
    dropout: float = 0.5
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    epochs: int = 200
    patience: int = 15
    batch_size: int = 64
    standardize: bool = True
    validation_fraction: float = 0.1
    device: DeviceLike = None
    random_state: RandomStateLike = 0
    verbose: int = 0

    def check_network(self) -> None:
        """Check the widths, rates, numbers of steps and the held-out share."""
        validation.check_open_fraction(self.validation_fraction, "validation_fraction")
        validation.check_bool(self.standardize, "standardize")
        validation.check_verbose(self.verbose, "verbose")
        validation.as_random_state(self.random_state)
        hidden = self.hidden
        if isinstance(hidden, str | np.ndarray) or not hasattr(hidden, "__len__") or not hasattr(hidden, "__iter__"):
            raise ValueError(f"hidden must be a sequence of widths, one per layer, such as (150, 150); got {hidden!r}.")
        for width in hidden:
            check_width(width, "each width of hidden")
        if validation.check_fraction(self.dropout, "dropout") == 1:
            raise ValueError("dropout must be below 1: at 1 all units are dropped.")
        validation.check_positive(self.learning_rate, "learning_rate")
        validation.check_non_negative(self.weight_decay, "weight_decay")
        for name in ("epochs", "patience", "batch_size"):
            validation.check_count(getattr(self, name), name)
        resolve_device(self.device)


def check_width(width: object, name: str) -> None:
    """Raise an error about ``name`` unless it is the width of a layer, at most a million."""
    if validation.check_count(width, name) > MAX_WIDTH:
        raise ValueError(f"{name} must be at most {MAX_WIDTH}; got {width!r}.")


def resolve_device(device: DeviceLike) -> torch.device:
    """Return the torch device of this name; None is the CPU."""
    name = "cpu" if device is None else device
    with computing("float64", name):  # raises an error about a device that does not exist
        return torch.device(name)


@contextmanager
def fixed_seed(random_state: RandomStateLike, device: torch.device) -> Iterator[np.random.Generator]:
    """Seed torch inside the ``with`` block and yield a generator of the same seed; afterwards restore torch's state."""
    seed = int(validation.as_random_state(random_state).randint(2**31 - 1))
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU, too
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield np.random.default_rng(seed)
