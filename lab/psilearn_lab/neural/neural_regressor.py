"""A network with the interface of scikit-learn, in place of kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from psilearn._linalg import Array
from psilearn.kernels.row_kernel import check_numbers
from psilearn.utils import (
    RandomStateLike,
    Samples,
    fitted_snapshot,
    hold_out,
    n_samples,
    publish,
    show_progress,
    take,
    unfitted_copy,
)
from psilearn_lab.neural.device import DeviceLike, fixed_seed, require_torch
from psilearn_lab.neural.parameters import check_network


class NeuralRegressor(RegressorMixin, BaseEstimator):
    """Multi-layer perceptron for many outputs on torch, with the interface of scikit-learn.

    The network minimizes squared errors with AdamW and dropout. A part of the examples is held out to find the number
    of epochs; then the network is trained again on all examples for this number of epochs. ``OEL(regressor=
    NeuralRegressor())`` replaces kernel ridge regression by such a network. The same random seed gives the same network
    on the same machine.

    Parameters
    ----------
    hidden : sequence of int, default=(200, 200)
        The widths of the hidden layers; an empty sequence gives a linear model.
    dropout : float, default=0.2
        The probability in [0, 1) with which a hidden unit is dropped during training.
    learning_rate : float, default=1e-3
        The learning rate of AdamW.
    weight_decay : float, default=1e-2
        The weight decay of AdamW.
    epochs : int, default=300
        The largest number of epochs.
    patience : int, default=20
        The number of epochs without improvement on held-out examples after which training stops.
    batch_size : int, default=64
        The number of examples per step.
    standardize : bool, default=True
        Whether the columns of X are scaled to mean 0 and standard deviation 1.
    validation_fraction : float, default=0.1
        The share of examples that is held out to find the number of epochs.
    device : str, torch.device or None, default=None
        The device on which the network is trained: None for the CPU, "cuda" for a GPU.
    random_state : int, RandomState or None, default=0
        The random seed of the weights, of dropout, of the batches and of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    history_ : History
        The training loss and the validation error of each epoch, with held-out examples.
    network_ : Perceptron
        The network that was trained on all examples.
    n_features_in_ : int
        The number of columns of X.

    See Also
    --------
    psilearn.OEL : Output embedding learning, which accepts a regressor.
    psilearn_lab.baselines.NN : A network that predicts the outputs themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.neural import NeuralRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> NeuralRegressor(hidden=(20,), dropout=0.0, learning_rate=0.02, epochs=30).fit(X, X).score(X, X) > 0.9
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (200, 200),
        *,
        dropout: float = 0.2,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        epochs: int = 300,
        patience: int = 20,
        batch_size: int = 64,
        standardize: bool = True,
        validation_fraction: float = 0.1,
        device: DeviceLike = None,
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
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Samples, y: Samples) -> Self:
        """Train the network on pairs (xᵢ, yᵢ).

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            The inputs, at least two rows.
        y : array-like of shape (n,) or (n, r)
            The outputs.

        Returns
        -------
        NeuralRegressor
            The fitted regressor.

        See Also
        --------
        predict : Predict the outputs of new inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn_lab.neural import NeuralRegressor
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> NeuralRegressor(hidden=(10,), epochs=5).fit(X, 2 * X).n_features_in_
        1
        """
        require_torch(type(self).__name__)
        from psilearn_lab.neural.perceptron import Options, fit_perceptron

        check_network(self)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        model = unfitted_copy(self)
        X, y = check_numbers(X, "X", ensure_2d=True), check_numbers(y, "y", accept_sparse=False)
        if n_samples(X) != n_samples(y):
            raise ValueError(f"X and y must have one row per example: X has {n_samples(X)}, y has {n_samples(y)}.")
        X, y = validate_data(model, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, ensure_min_samples=2)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        options = Options.from_estimator(self)
        with show_progress(self.verbose), fixed_seed(self.random_state, options.device) as rng:
            training, held_out = hold_out(len(Y), self.validation_fraction, int(rng.integers(2**31)))
            pairs = take(X, held_out), Y[held_out]
            description = "network, validated"
            _, history = fit_perceptron(
                take(X, training), Y[training], options, rng, description, False, pairs, _mean_squared_error
            )
            options = replace(options, epochs=history.best_epoch)
            network, _ = fit_perceptron(X, Y, options, rng, "network", False)
        model.history_, model.network_, model._predicts_1d = history, network, y.ndim == 1
        return publish(self, model)

    def predict(self, X: Samples) -> Array:
        """Return the predicted outputs.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.

        Returns
        -------
        ndarray of shape (q, r) or (q,)
            The predicted outputs, of the dimension of the training outputs.

        See Also
        --------
        fit : Train the network.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn_lab.neural import NeuralRegressor
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> NeuralRegressor(hidden=(10,), epochs=5).fit(X, np.hstack([X, X**2])).predict(X[:3]).shape
        (3, 2)
        """
        model = fitted_snapshot(self)
        X = check_numbers(X, "X", ensure_2d=True)
        X = validate_data(model, X, accept_sparse="csr", reset=False)
        prediction = model.network_(X)
        return prediction[:, 0] if model._predicts_1d else prediction

    def __sklearn_tags__(self) -> Tags:
        """Declare that inputs may be sparse and outputs may have several columns."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _mean_squared_error(Y_true: Array, Y_pred: Array) -> float:
    """Return the mean of squared errors."""
    return float(np.mean((Y_true - Y_pred) ** 2))
