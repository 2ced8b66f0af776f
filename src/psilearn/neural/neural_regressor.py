"""A network with scikit-learn's face, to stand where kernel ridge regression stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from psilearn._linalg import Array
from psilearn._utils.holdout import hold_out
from psilearn._utils.progress import show_progress
from psilearn._utils.samples import Samples, take
from psilearn.neural.device import require_torch, seeded
from psilearn.neural.parameters import check_network


class NeuralRegressor(RegressorMixin, BaseEstimator):
    """A multi-layer perceptron for many outputs on torch: ``OEL(regressor=NeuralRegressor())`` makes ĥ a network.

    Least squares, AdamW, dropout. A tenth of the examples is held out to find the number of epochs, then all are
    learned from for as long. The same seed gives the same network on one machine.

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
    validation_fraction : float
        the share of examples held out.
    device : str or None
        None for the CPU, "cuda" for a GPU.
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    history_ : History
        training and validation error of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.neural import NeuralRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> NeuralRegressor(hidden=(30,), dropout=0.0).fit(X, X @ [[1.0, 0.0], [0.0, 1.0]]).score(X, X) > 0.95
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (200, 200),
        dropout: float = 0.2,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        epochs: int = 300,
        patience: int = 20,
        batch_size: int = 64,
        standardize: bool = True,
        validation_fraction: float = 0.1,
        device: Any = None,
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
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Samples, y: Samples) -> Self:
        """Learn from pairs: X array or CSR matrix (n, d), y numbers (n,) or (n, r)."""
        require_torch(type(self).__name__)
        from psilearn.neural.perceptron import Options, fit_perceptron

        check_network(self)
        X, y = validate_data(self, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, ensure_min_samples=2)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        options = Options.of(self)
        with show_progress(self.verbose), seeded(self.random_state, options.device) as rng:
            kept, held = hold_out(len(Y), self.validation_fraction, int(rng.integers(2**31)))
            pairs = take(X, held), Y[held]
            what = "network, validated"
            _, history = fit_perceptron(take(X, kept), Y[kept], options, rng, what, False, pairs, _squared_error)
            options = replace(options, epochs=history.best_epoch)
            network, _ = fit_perceptron(X, Y, options, rng, "network", False)
        self.history_, self.network_, self.flat_ = history, network, y.ndim == 1
        return self

    def predict(self, X: Samples) -> Array:
        """Return predicted numbers, (len(X), r), or (len(X),) where y was."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        found = self.network_(X)
        return found[:, 0] if self.flat_ else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _squared_error(Y: Array, predicted: Array) -> float:
    return float(np.mean((Y - predicted) ** 2))
