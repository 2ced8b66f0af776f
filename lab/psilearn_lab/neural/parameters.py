"""The parameters that all networks have, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from psilearn.utils import validation
from psilearn_lab.neural.device import DeviceLike

MAX_WIDTH = 1_000_000


class NetworkParameters(Protocol):
    """Parameters of an estimator that is a network."""

    hidden: Sequence[int]
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    batch_size: int
    standardize: bool
    device: DeviceLike
    validation_fraction: float
    random_state: validation.RandomStateLike
    verbose: int


def check_network(model: NetworkParameters) -> None:
    """Check the widths, rates, numbers of steps and the held-out share of an estimator."""
    validation.check_open_fraction(model.validation_fraction, "validation_fraction")
    validation.check_bool(model.standardize, "standardize")
    validation.check_verbose(model.verbose, "verbose")
    validation.as_random_state(model.random_state)
    _check_widths(model.hidden, "hidden")
    if validation.check_fraction(model.dropout, "dropout") == 1:
        raise ValueError("dropout must be below 1: at 1 all units are dropped.")
    validation.check_positive(model.learning_rate, "learning_rate")
    validation.check_non_negative(model.weight_decay, "weight_decay")
    for name in ("epochs", "patience", "batch_size"):
        validation.check_count(getattr(model, name), name)


def _check_widths(hidden: object, name: str) -> None:
    """Raise an error unless ``hidden`` is a sequence of layer widths, possibly empty."""
    if isinstance(hidden, str | np.ndarray) or not hasattr(hidden, "__len__") or not hasattr(hidden, "__iter__"):
        raise ValueError(f"{name} must be a sequence of widths, one per layer, such as (150, 150); got {hidden!r}.")
    for width in hidden:
        check_width(width, f"each width of {name}")


def check_width(width: object, name: str) -> int:
    """Return the width of a layer, at most a million; raise an error about ``name`` for anything else."""
    if validation.check_count(width, name) > MAX_WIDTH:
        raise ValueError(f"{name} must be at most {MAX_WIDTH}; got {width!r}.")
    return validation.check_count(width, name)
