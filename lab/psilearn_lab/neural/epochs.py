"""Training on random batches, with early stopping on held-out examples."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import torch

from psilearn.utils import Index, track


@dataclass
class History:
    """Training and validation of a network, one number per epoch.

    Parameters
    ----------
    training : list of float
        The mean loss of the batches of each epoch.
    validation : list of float
        The validation error after each epoch; lower is better.
    best_epoch : int, default=0
        The epoch whose weights were kept, counted from 1; 0 for the weights before training.
    """

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best_epoch: int = 0


@dataclass(frozen=True)
class Schedule:
    """The largest number of epochs, the batch size, and the epochs without improvement after which training stops."""

    epochs: int
    batch_size: int
    patience: int | None = None


def train(
    network: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Index], torch.Tensor],
    n: int,
    schedule: Schedule,
    rng: np.random.Generator,
    description: str,
    validate: Callable[[], float] | None = None,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
    remedy: str = "Lower learning_rate or weight_decay, or scale X and y.",
) -> History:
    """Minimize the mean of ``loss(rows)`` over random batches of n examples and keep the best weights.

    Parameters
    ----------
    network : torch.nn.Module
        The network, in training mode during a batch and in evaluation mode during ``validate``.
    optimizer : torch.optim.Optimizer
        The optimizer of its weights.
    loss : callable
        A function of row numbers (b,) that returns a scalar tensor.
    n : int
        The number of examples.
    schedule : Schedule
        The number of epochs, the batch size and the patience.
    rng : numpy.random.Generator
        The generator of the order of the examples.
    description : str
        The text of the progress bar.
    validate : callable, default=None
        A function that returns the error to minimize. The weights before training count, too. Without it the last
        weights are kept.
    scheduler : torch.optim.lr_scheduler.LRScheduler, default=None
        A scheduler that makes one step after each epoch.
    remedy : str
        The advice in the error that is raised if the loss is not finite.

    Returns
    -------
    History
        The losses and errors of all epochs.
    """
    history = History()
    lowest, best_state = np.inf, None
    if validate is not None:
        lowest, best_state = _evaluate(network, validate), deepcopy(network.state_dict())
    for epoch in track(range(1, schedule.epochs + 1), description, schedule.epochs):
        history.training.append(_run_epoch(network, optimizer, loss, n, schedule.batch_size, rng))
        if scheduler is not None:
            scheduler.step()
        if not np.isfinite(history.training[-1]):
            raise FloatingPointError(f"{description}: the loss is not finite in epoch {epoch}. {remedy}")
        if validate is None:
            history.best_epoch = epoch
            continue
        history.validation.append(_evaluate(network, validate))
        if history.validation[-1] < lowest:
            lowest, history.best_epoch, best_state = history.validation[-1], epoch, deepcopy(network.state_dict())
        elif schedule.patience is not None and epoch - history.best_epoch >= schedule.patience:
            break
    if best_state is not None:
        network.load_state_dict(best_state)
    network.eval()
    return history


def _run_epoch(
    network: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Index], torch.Tensor],
    n: int,
    batch_size: int,
    rng: np.random.Generator,
) -> float:
    """Make one step per random batch and return the mean loss of the examples."""
    network.train()
    total = 0.0
    for rows in np.array_split(rng.permutation(n), -(-n // batch_size)):
        optimizer.zero_grad()
        value = loss(rows)
        torch.autograd.backward(value)
        optimizer.step()
        total += float(value.detach()) * len(rows)
    return total / n


def _evaluate(network: torch.nn.Module, validate: Callable[[], float]) -> float:
    """Return the validation error of a network in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return validate()
