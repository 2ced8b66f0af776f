"""Checks of the parameters that all networks have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psilearn._utils import validation


def check_network(model: Any) -> None:
    """Check the widths, rates, numbers of steps and the held-out share of an estimator."""
    validation.check_open_fraction(model.validation_fraction, "validation_fraction")
    widths(model.hidden, "hidden")
    if validation.check_fraction(model.dropout, "dropout") == 1:
        raise ValueError("dropout must be below 1: nothing would be left to learn from.")
    validation.check_positive(model.learning_rate, "learning_rate")
    validation.check_non_negative(model.weight_decay, "weight_decay")
    for name in ("epochs", "patience", "batch_size"):
        validation.check_count(getattr(model, name), name)


def widths(hidden: Any, name: str) -> Sequence[int]:
    """Return the widths of hidden layers, of which there may be none."""
    if isinstance(hidden, str) or not hasattr(hidden, "__len__"):
        raise ValueError(f"{name} must be a sequence of widths, one a layer, such as (150, 150); got {hidden!r}.")
    return [validation.check_count(width, f"each width of {name}") for width in hidden]
