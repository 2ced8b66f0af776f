"""Training by small batches, stopped where held-out examples no longer gain."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from psilearn._utils.progress import track


@dataclass
class History:
    """What was seen while a network was trained, one number an epoch."""

    training: list[float] = field(default_factory=list)  # mean loss of the batches
    validation: list[float] = field(default_factory=list)  # what early stopping looked at; lower is better
    best_epoch: int = 0  # whose weights were kept, counted from 1; 0: those at the start


@dataclass(frozen=True)
class Schedule:
    """How long and in what steps to train."""

    epochs: int
    batch_size: int
    patience: int | None = None  # epochs without gain before training stops


def train(
    network: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Any], torch.Tensor],
    n: int,
    schedule: Schedule,
    rng: np.random.Generator,
    what: str,
    validate: Callable[[], float] | None = None,
    scheduler: Any = None,
    remedy: str = "Lower learning_rate, or scale X.",
) -> History:
    """Minimise the mean of ``loss(rows)`` over random batches of n examples; keep the best weights.

    Parameters
    ----------
    network : torch.nn.Module
        in training mode while a batch is learned, in evaluation mode while ``validate`` runs.
    optimizer : torch.optim.Optimizer
    loss : function of row numbers (b,) → scalar tensor
    n : int
    schedule : Schedule
    rng : Generator
        of the order of examples.
    what : str
        what progress calls it.
    validate : function → float, optional
        what is to become small. The start counts too; without it the last weights are kept.
    scheduler : torch.optim.lr_scheduler, optional
        moved on after each epoch.
    remedy : str
        what to do where the loss is no longer finite.
    """
    history = History()
    least, kept = np.inf, None
    if validate is not None:
        least, kept = _value(network, validate), deepcopy(network.state_dict())
    for epoch in track(range(1, schedule.epochs + 1), what, schedule.epochs):
        network.train()
        total = 0.0
        for rows in np.array_split(rng.permutation(n), -(-n // schedule.batch_size)):
            optimizer.zero_grad()
            value = loss(rows)
            value.backward()
            optimizer.step()
            total += float(value.detach()) * len(rows)
        if scheduler is not None:
            scheduler.step()
        history.training.append(total / n)
        if not np.isfinite(total):
            raise FloatingPointError(f"{what}: the loss is no longer finite in epoch {epoch}. {remedy}")
        if validate is None:
            history.best_epoch = epoch
            continue
        history.validation.append(_value(network, validate))
        if history.validation[-1] < least:
            least, history.best_epoch, kept = history.validation[-1], epoch, deepcopy(network.state_dict())
        elif schedule.patience is not None and epoch - history.best_epoch >= schedule.patience:
            break
    if kept is not None:
        network.load_state_dict(kept)
    network.eval()
    return history


def _value(network: torch.nn.Module, validate: Callable[[], float]) -> float:
    network.eval()
    with torch.no_grad():
        return validate()
