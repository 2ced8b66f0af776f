"""A multi-layer perceptron for labels or numbers, the common part of all networks of this library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.nn import functional

from psilearn._backend import iter_blocks
from psilearn._linalg import Array
from psilearn.utils import ErrorMetric, Index, Pairs, Samples
from psilearn_lab.neural.batches import Standardizer, TensorRows
from psilearn_lab.neural.device import resolve_device
from psilearn_lab.neural.epochs import History, Schedule, train
from psilearn_lab.neural.parameters import NetworkParameters

BLOCK_ROWS = 8192  # rows that a network evaluates together


@dataclass(frozen=True)
class Options:
    """The size of a perceptron and the parameters of its training."""

    hidden: Sequence[int]
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    batch_size: int
    standardize: bool
    device: torch.device

    @classmethod
    def from_estimator(cls, model: NetworkParameters, epochs: int | None = None) -> Options:
        """Return the options given by the parameters of an estimator; ``epochs`` replaces its number of epochs."""
        options = {field.name: getattr(model, field.name) for field in fields(cls)}
        options["device"] = resolve_device(model.device)
        options["epochs"] = model.epochs if epochs is None else epochs
        return cls(**options)


class Perceptron:
    """The function x ↦ BF(x) + b, where each linear layer of F is followed by ReLU and dropout.

    Parameters
    ----------
    network : torch.nn.Sequential
        The features F and the last linear layer B, b.
    standardizer : Standardizer or None
        The map that is applied to inputs first.
    center : array of shape (L,) or float
        The center c of the outputs c + u·(BF(x) + b).
    unit : float
        The unit u of the outputs.
    device : torch.device
        The device of the network.
    """

    def __init__(
        self,
        network: torch.nn.Sequential,
        standardizer: Standardizer | None,
        center: Array | float,
        unit: float,
        device: torch.device,
    ) -> None:
        self.network, self.standardizer, self.device = network, standardizer, device
        self.center, self.unit = center, unit

    @property
    def features(self) -> torch.nn.Module:
        """The features F."""
        return self.network[0]

    @property
    def last(self) -> torch.nn.Linear:
        """The last linear layer B, b."""
        layer = self.network[1]
        assert isinstance(layer, torch.nn.Linear)
        return layer

    def input_rows(self, X: Samples) -> TensorRows:
        """Return inputs as the network takes them, standardized."""
        return TensorRows(X, self.device, self.standardizer)

    def target_rows(self, Y: Samples, dtype: torch.dtype = torch.float32) -> TensorRows:
        """Return outputs in the units of the network, (y − center)/unit."""
        return TensorRows(Y, self.device, self._to_units, dtype)

    def _to_units(self, rows: Array) -> Array:
        return np.asarray((rows - self.center) / self.unit)

    def scores(self, X: Samples | TensorRows) -> Array:
        """Return BF(x) + b, float64 (len(X), L), block by block."""
        rows = X if isinstance(X, TensorRows) else self.input_rows(X)
        return evaluate(self.network, rows, self.last.out_features)

    def __call__(self, X: Samples | TensorRows) -> Array:
        """Return the outputs, float64 (len(X), L)."""
        return np.asarray(self.center + self.unit * self.scores(X))


def evaluate(network: torch.nn.Module, rows: TensorRows, width: int) -> Array:
    """Return the outputs of a network for all rows, float64 (n, width), in blocks within ``working_memory``."""
    network.eval()
    outputs = np.empty((len(rows), width))
    with torch.no_grad():
        for block in iter_blocks(len(rows), 16 * width, BLOCK_ROWS):
            outputs[block] = network(rows[block]).cpu().numpy()
    return outputs


def build_perceptron(
    X: Samples,
    width: int,
    options: Options,
    bias: ArrayLike = 0.0,
    center: Array | float = 0.0,
    unit: float = 1.0,
) -> Perceptron:
    """Return a perceptron for inputs like X with random weights, ``width`` outputs and the given last bias."""
    standardizer = Standardizer(X) if options.standardize else None
    widths = [X.shape[1], *options.hidden]
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU(), torch.nn.Dropout(options.dropout)]
    last = torch.nn.Linear(widths[-1], width)
    with torch.no_grad():
        last.bias.copy_(torch.as_tensor(bias))
    network = torch.nn.Sequential(torch.nn.Sequential(*layers), last).to(options.device)
    return Perceptron(network, standardizer, center, unit, options.device)


def fit_perceptron(
    X: Samples,
    Y: Array,
    options: Options,
    rng: np.random.Generator,
    description: str,
    labels: bool,
    held_out: Pairs | None = None,
    error: ErrorMetric | None = None,
) -> tuple[Perceptron, History]:
    """Train a perceptron on the cross-entropy of one logit per label, or on squared errors.

    Weights start at random, the biases of labels at their frequency. Numbers are centered, and divided by their common
    standard deviation, during training.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The inputs.
    Y : array of shape (n, L)
        The outputs.
    options : Options
        The size of the network and the parameters of its training.
    rng : numpy.random.Generator
        The generator of the order of the examples; weights and dropout are drawn by torch.
    description : str
        The text of the progress bar.
    labels : bool
        Whether Y holds 0 and 1, and outputs are logits.
    held_out : tuple of X and Y, default=None
        The pairs on which early stopping evaluates ``error``.
    error : callable, default=None
        A function of the true and the predicted outputs that early stopping minimizes.

    Returns
    -------
    perceptron : Perceptron
        The trained network.
    history : History
        The losses and errors of all epochs.
    """
    n, mean = len(Y), Y.mean(axis=0)
    if labels:
        perceptron = build_perceptron(X, Y.shape[1], options, np.log((n * mean + 0.5) / (n * (1 - mean) + 0.5)))
    else:
        perceptron = build_perceptron(X, Y.shape[1], options, center=mean, unit=float(np.std(Y - mean)) or 1.0)
    network = perceptron.network
    inputs, targets = perceptron.input_rows(X), perceptron.target_rows(Y)

    def loss(rows: Index) -> torch.Tensor:
        outputs = network(inputs[rows])
        if labels:
            return functional.binary_cross_entropy_with_logits(outputs, targets[rows])
        return functional.mse_loss(outputs, targets[rows])

    validate = None
    if held_out is not None and error is not None:
        held_out_rows, Y_held_out = perceptron.input_rows(held_out[0]), held_out[1]

        def validate() -> float:
            return error(Y_held_out, perceptron(held_out_rows))

    optimizer = torch.optim.AdamW(network.parameters(), options.learning_rate, weight_decay=options.weight_decay)
    schedule = Schedule(options.epochs, options.batch_size, options.patience)
    return perceptron, train(network, optimizer, loss, n, schedule, rng, description, validate)
