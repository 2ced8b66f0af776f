"""What the baselines that are networks share: parameters, and validation that finds the number of epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scipy.special import expit

from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.baselines.baseline import Baseline, validation_error
from psilearn.neural.device import find_device, require_torch, seeded
from psilearn.neural.parameters import check_network

if TYPE_CHECKING:
    from psilearn.neural.perceptron import Options


class Network(Baseline):
    """A baseline on torch."""

    hidden: Sequence[int]
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    batch_size: int
    standardize: bool
    device: Any

    def _needs_validation(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_network(self)
        require_torch(type(self).__name__)
        find_device(self.device)

    def _options(self, epochs: int | None = None) -> Options:
        from psilearn.neural.perceptron import Options

        return Options.of(self, epochs)


class NN(Network):
    """A multi-layer perceptron: cross-entropy a label, or squared errors of numbers.

    The number of epochs is found on held-out examples by F1 or squared error, then all examples are learned from for as
    long. Candidates are judged by their probability, or by their squared distance.

    Parameters
    ----------
    hidden : widths of the hidden layers
    dropout : float in [0, 1)
    learning_rate, weight_decay : float
        of AdamW.
    epochs : int
        at the most.
    patience : int
        epochs without gain on held-out examples before training stops.
    batch_size : int
    standardize : bool
        whether columns of X are brought to mean 0 and deviation 1.
    device : str or None
        None for the CPU, "cuda" for a GPU.
    validation_fraction, random_state, verbose :
        as in :class:`LR`; the seed is also that of the network.

    Attributes
    ----------
    history_ : History
        training loss and validation error of each epoch.
    threshold_, validation_error_ : float

    References
    ----------
    Belanger and McCallum, *Structured Prediction Energy Networks*, ICML 2016: their baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import NN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 0] > 0]).astype(int)
    >>> NN(hidden=(30, 30), dropout=0.0, learning_rate=0.01).fit(X, Y).predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1],
           [0, 0]])
    """

    def __init__(
        self,
        hidden: Sequence[int] = (150, 150),
        dropout: float = 0.5,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        epochs: int = 200,
        patience: int = 15,
        batch_size: int = 64,
        standardize: bool = True,
        device: Any = None,
        validation_fraction: float = 0.1,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.standardize = standardize
        self.device = device
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _learn(self, X: Samples, Y: Array, settings: int | None, held_out: tuple[Samples, Array] | None) -> int:
        from psilearn.neural.perceptron import fit_perceptron

        options = self._options(settings)
        what = "network, validated" if held_out else "network"
        with seeded(self.random_state, options.device) as rng:
            self.network_, history = fit_perceptron(
                X, Y, options, rng, what, self.binary_, held_out, validation_error(self.binary_)
            )
        if held_out:
            self.history_ = history
        return history.best_epoch

    def _soft(self, X: Samples) -> Array:
        found = self.network_(X)
        return expit(found) if self.binary_ else found

    def _linear_costs(self, X: Samples) -> Array:
        return -self.network_(X) if self.binary_ else super()._linear_costs(X)

    def _candidate_costs(self, C: Samples) -> Array:
        costs = super()._candidate_costs(C)
        return 0 * costs if self.binary_ else costs
