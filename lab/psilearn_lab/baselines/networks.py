"""Baselines that are networks: their common parameters, and the multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from psilearn._linalg import Array
from psilearn.utils import Pairs, RandomStateLike, Samples
from psilearn_lab.baselines.baseline import Baseline
from psilearn_lab.neural.device import DeviceLike, fixed_seed, require_torch, resolve_device
from psilearn_lab.neural.parameters import check_network

if TYPE_CHECKING:
    from psilearn_lab.neural.perceptron import Options

INFERENCE_ROWS = 4096  # outputs that are inferred together


class Network(Baseline):
    """Base class of the baselines on torch."""

    hidden: Sequence[int]
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    batch_size: int
    standardize: bool
    device: DeviceLike

    def _needs_validation(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_network(self)
        require_torch(type(self).__name__)
        resolve_device(self.device)

    def _options(self, epochs: int | None = None) -> Options:
        """Return the options of the perceptron; ``epochs`` replaces the parameter of that name."""
        from psilearn_lab.neural.perceptron import Options

        return Options.from_estimator(self, epochs)


class NN(Network):
    """Multi-layer perceptron, trained on the cross-entropy of labels or on squared errors of numbers.

    The number of epochs is found on held-out examples, by F1 or by the squared error; then the network is trained on
    all examples for this number of epochs. Candidates are compared by their probability, or by their squared distance
    to the prediction.

    Parameters
    ----------
    hidden : sequence of int, default=(150, 150)
        The widths of the hidden layers; an empty sequence gives a linear model.
    dropout : float, default=0.5
        The probability in [0, 1) with which a hidden unit is dropped during training.
    learning_rate : float, default=1e-3
        The learning rate of AdamW.
    weight_decay : float, default=1e-2
        The weight decay of AdamW.
    epochs : int, default=200
        The largest number of epochs.
    patience : int, default=15
        The number of epochs without improvement on held-out examples after which training stops.
    batch_size : int, default=64
        The number of examples per step.
    standardize : bool, default=True
        Whether the columns of X are scaled to mean 0 and standard deviation 1.
    device : str, torch.device or None, default=None
        The device on which the network is trained: None for the CPU, "cuda" for a GPU.
    validation_fraction : float, default=0.1
        The share of examples that is held out to find the number of epochs and the threshold.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples, of the weights, of dropout and of the batches.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    network_ : Perceptron
        The network that was trained on all examples.
    history_ : History
        The training loss and the validation error of each epoch, with held-out examples.
    binary_ : bool
        Whether the outputs are rows of labels.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. Only for labels. If not, the label with the
        highest score is predicted where no score reaches the threshold.
    threshold_ : float
        The smallest probability of a predicted label. Only for labels.
    validation_error_ : float
        1 − F1, or the mean squared distance, on the held-out examples.

    See Also
    --------
    SPEN : A network with a learned energy of the output.
    psilearn_lab.neural.NeuralRegressor : A network as the regression of output embedding learning.

    References
    ----------
    The baseline of Belanger and McCallum, *Structured Prediction Energy Networks*, ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import NN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 0] > 0]).astype(int)
    >>> NN(hidden=(30, 30), dropout=0.0, learning_rate=0.01).fit(X, Y).predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1],
           [0, 0]])
    """

    def __init__(
        self,
        hidden: Sequence[int] = (150, 150),
        *,
        dropout: float = 0.5,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        epochs: int = 200,
        patience: int = 15,
        batch_size: int = 64,
        standardize: bool = True,
        device: DeviceLike = None,
        validation_fraction: float = 0.1,
        random_state: RandomStateLike = 0,
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

    def _learn(self, X: Samples, Y: Array, settings: int | None, held_out: Pairs | None) -> int:
        from psilearn_lab.neural.perceptron import fit_perceptron

        options = self._options(settings)
        description = "network, validated" if held_out else "network"
        with fixed_seed(self.random_state, options.device) as rng:
            self.network_, history = fit_perceptron(
                X, Y, options, rng, description, self.binary_, held_out, self._validation_error
            )
        if held_out:
            self.history_ = history
        return history.best_epoch

    def _predict_soft(self, X: Samples) -> Array:
        outputs = self.network_(X)
        return np.asarray(expit(outputs)) if self.binary_ else outputs

    def _linear_costs(self, X: Samples) -> Array:
        return -self.network_(X) if self.binary_ else super()._linear_costs(X)

    def _candidate_costs(self, C: Samples) -> Array:
        costs = super()._candidate_costs(C)
        return 0 * costs if self.binary_ else costs
