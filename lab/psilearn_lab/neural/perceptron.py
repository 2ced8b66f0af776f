"""A multi-layer perceptron for labels or numbers, and rows of numbers as its tensors, one batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis
from torch.nn import functional

from psilearn.utils import Index, Samples
from psilearn_lab.arrays import Array, ErrorMetric, Pairs, block_rows, iter_blocks
from psilearn_lab.neural.epochs import History, Schedule, train
from psilearn_lab.neural.parameters import NetworkParameters, resolve_device

BLOCK_ROWS = 8192  # rows that a network evaluates together
RowIndex: TypeAlias = Index | slice


class TensorRows:
    """Rows of numbers that are returned as dense tensors.

    Rows that fit into ``working_memory`` as tensors are stored as one tensor on the device, filled block by block;
    others stay in their form and are moved batch by batch.

    Parameters
    ----------
    A : array or CSR matrix of shape (n, d)
        The rows.
    device : torch.device
        The device of the tensors.
    transform : callable, default=None
        A function that is applied to dense rows.
    dtype : torch.dtype, default=torch.float32
        The dtype of the tensors.
    """

    def __init__(
        self,
        A: Samples,
        device: torch.device,
        transform: Callable[[Array], Array] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._A, self._device, self._transform, self._dtype = A, device, transform, dtype
        n, d = A.shape
        self._tensor: torch.Tensor | None = None
        if block_rows(dtype.itemsize * d, n) == n:
            tensor = torch.empty((n, d), dtype=dtype, device=device)
            for rows in iter_blocks(n, 32 * d):
                tensor[rows] = self._to_tensor(A[rows])
            self._tensor = tensor

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._A.shape[0])

    def __getitem__(self, index: RowIndex) -> torch.Tensor:
        """Return a tensor (b, d) for an array of row numbers or a slice."""
        if self._tensor is None:
            return self._to_tensor(self._A[index])
        return self._tensor[index if isinstance(index, slice) else torch.as_tensor(index, device=self._device)]

    def _to_tensor(self, A: Samples) -> torch.Tensor:
        """Return transformed rows as a dense tensor on the device."""
        dense = np.ascontiguousarray(A.toarray() if sparse.issparse(A) else A)
        if self._transform is not None:
            dense = self._transform(dense)
        return torch.tensor(dense, dtype=self._dtype, device=self._device)


class Standardizer:
    """The map a ↦ (a − mean)/deviation of each column; a constant column is only centered."""

    def __init__(self, A: Samples) -> None:
        if sparse.issparse(A):
            mean, variance = mean_variance_axis(A.astype(np.float64), axis=0)
        else:
            mean, variance = A.mean(axis=0, dtype=np.float64), A.var(axis=0, dtype=np.float64)
        constant = variance <= (10 * np.finfo(np.float64).eps * mean) ** 2
        self.mean: Array = mean
        self.deviation: Array = np.where(constant, 1.0, np.sqrt(variance))

    def __call__(self, rows: Array) -> Array:
        """Return standardized rows."""
        return (rows - self.mean) / self.deviation


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
    options: NetworkParameters,
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
    device = resolve_device(options.device)
    network = torch.nn.Sequential(torch.nn.Sequential(*layers), last).to(device)
    return Perceptron(network, standardizer, center, unit, device)


def fit_perceptron(
    X: Samples,
    Y: Array,
    options: NetworkParameters,
    epochs: int,
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
    options : NetworkParameters
        The size of the network and the parameters of its training.
    epochs : int
        The largest number of epochs.
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
    schedule = Schedule(epochs, options.batch_size, options.patience)
    return perceptron, train(network, optimizer, loss, n, schedule, rng, description, validate)
