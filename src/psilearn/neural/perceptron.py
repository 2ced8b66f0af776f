"""A multi-layer perceptron for labels or numbers: what the networks of this library have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from psilearn._backend import row_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.neural.batches import Rows, Scale
from psilearn.neural.device import find_device
from psilearn.neural.epochs import History, Schedule, train

Error = Callable[[Array, Array], float]  # of truth and prediction, to be made small


@dataclass(frozen=True)
class Options:
    """Size of a perceptron, and how it is trained."""

    hidden: Sequence[int]
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    batch_size: int
    standardize: bool
    device: Any  # torch.device

    @classmethod
    def of(cls, model: Any, epochs: int | None = None) -> Options:
        """Return the options that an estimator's parameters name; with so many epochs, where they are known already."""
        own = {field.name: getattr(model, field.name) for field in fields(cls)}
        return cls(**own | {"device": find_device(model.device), "epochs": model.epochs if epochs is None else epochs})


class Perceptron:
    """x ↦ BF(x) + b, with F linear layers that are each followed by ReLU and dropout.

    Parameters
    ----------
    network : torch.nn.Sequential of features and the last linear layer
    scale : Scale or None
        what is done to inputs first.
    centre, unit : array (L,) or 0, float
        the outputs are centre + unit·(BF(x) + b).
    device : torch.device
    """

    def __init__(
        self, network: torch.nn.Sequential, scale: Scale | None, centre: Any, unit: float, device: Any
    ) -> None:
        self.network, self.scale, self.centre, self.unit, self.device = network, scale, centre, unit, device

    @property
    def features(self) -> torch.nn.Module:
        """F."""
        return self.network[0]

    @property
    def last(self) -> Any:
        """The linear layer B, b."""
        return self.network[1]

    def rows(self, X: Samples) -> Rows:
        """Return inputs as the network takes them."""
        return Rows(X, self.device, self.scale)

    def targets(self, Y: Samples, dtype: torch.dtype = torch.float32) -> Rows:
        """Return outputs as the network gives them, (y − centre)/unit."""
        return Rows(Y, self.device, self._in_units, dtype)

    def _in_units(self, rows: Array) -> Array:
        return (rows - self.centre) / self.unit

    def scores(self, X: Samples | Rows) -> Array:
        """Return BF(x) + b, float64 (len(X), L), block by block."""
        return outputs(self.network, X if isinstance(X, Rows) else self.rows(X), len(self.last.bias))

    def __call__(self, X: Samples | Rows) -> Array:
        """Return the outputs, float64 (len(X), L)."""
        return self.centre + self.unit * self.scores(X)


def outputs(network: torch.nn.Module, X: Rows, width: int) -> Array:
    """Return what a network gives for all rows, float64 (n, width), in blocks within ``working_memory``."""
    network.eval()
    found = np.empty((len(X), width))
    with torch.no_grad():
        for rows in row_blocks(len(X), 16 * width, 8192):
            found[rows] = network(X[rows]).cpu().numpy()
    return found


def untrained(
    X: Samples, width: int, options: Options, bias: Any = 0.0, centre: Any = 0.0, unit: float = 1.0
) -> Perceptron:
    """Return a perceptron for inputs like X with random weights, ``width`` outputs and the given last bias."""
    scale = Scale(X) if options.standardize else None
    widths = [X.shape[1], *options.hidden]
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU(), torch.nn.Dropout(options.dropout)]
    last = torch.nn.Linear(widths[-1], width)
    with torch.no_grad():
        last.bias.copy_(torch.as_tensor(bias))
    network = torch.nn.Sequential(torch.nn.Sequential(*layers), last).to(options.device)
    return Perceptron(network, scale, centre, unit, options.device)


def fit_perceptron(
    X: Samples,
    Y: Array,
    options: Options,
    rng: np.random.Generator,
    what: str,
    labels: bool,
    held_out: tuple[Samples, Array] | None = None,
    error: Error | None = None,
) -> tuple[Perceptron, History]:
    """Train a perceptron: on cross-entropy with one logit a label, or on squared errors.

    Weights start at random, the biases of labels at their frequency. Numbers are centred, and divided by their common
    deviation, while the network learns.

    Parameters
    ----------
    X, Y : inputs, array (n, L)
    options : Options
    rng : Generator
        of the order of examples; weights and dropout come from torch's own.
    what : str
        what progress calls it.
    labels : bool
        whether Y holds 0 and 1, and outputs are logits.
    held_out : X, Y, optional
        pairs by which training is stopped.
    error : function of their Y and of the outputs for them → float
        what stopping looks at.
    """
    n, mean = len(Y), Y.mean(axis=0)
    if labels:
        perceptron = untrained(X, Y.shape[1], options, np.log((n * mean + 0.5) / (n * (1 - mean) + 0.5)))
    else:
        perceptron = untrained(X, Y.shape[1], options, centre=mean, unit=float(np.std(Y - mean)) or 1.0)
    network = perceptron.network
    inputs, targets = perceptron.rows(X), perceptron.targets(Y)
    criterion: Any = functional.binary_cross_entropy_with_logits if labels else functional.mse_loss

    def loss(rows: Any) -> torch.Tensor:
        value: torch.Tensor = criterion(network(inputs[rows]), targets[rows])
        return value

    validate = None
    if held_out is not None and error is not None:
        rows_held, Y_held = perceptron.rows(held_out[0]), held_out[1]

        def validate() -> float:
            return error(Y_held, perceptron(rows_held))

    optimizer = torch.optim.AdamW(network.parameters(), options.learning_rate, weight_decay=options.weight_decay)
    schedule = Schedule(options.epochs, options.batch_size, options.patience)
    return perceptron, train(network, optimizer, loss, n, schedule, rng, what, validate)
