"""A network with the interface of scikit-learn, in place of kernel ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from psilearn.utils import Samples, fitted_snapshot, hold_out, publish, show_progress, take, unfitted_copy
from psilearn_lab.arrays import Array
from psilearn_lab.neural.parameters import NetworkParameters, fixed_seed, resolve_device
from psilearn_lab.neural.perceptron import fit_perceptron


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralRegressor(NetworkParameters, RegressorMixin, BaseEstimator):
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

    hidden: Sequence[int] = field(default=(200, 200), kw_only=False)
    dropout: float = 0.2
    epochs: int = 300
    patience: int = 20

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
        self.check_network()
        model = unfitted_copy(self)
        X, y = validate_data(model, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, ensure_min_samples=2)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        with show_progress(self.verbose), fixed_seed(self.random_state, resolve_device(self.device)) as rng:
            training, held_out = hold_out(len(Y), self.validation_fraction, int(rng.integers(2**31)))
            pairs = take(X, held_out), Y[held_out]
            X_training, Y_training, text = take(X, training), Y[training], "network, validated"
            _, history = fit_perceptron(
                X_training, Y_training, self, self.epochs, rng, text, False, pairs, _squared_error
            )
            network, _ = fit_perceptron(X, Y, self, history.best_epoch, rng, "network", False)
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
        X = validate_data(model, X, accept_sparse="csr", reset=False)
        prediction = model.network_(X)
        return prediction[:, 0] if model._predicts_1d else prediction

    def __sklearn_tags__(self) -> Tags:
        """Declare that inputs may be sparse and outputs may have several columns."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _squared_error(Y_true: Array, Y_pred: Array) -> float:
    return float(np.mean((Y_true - Y_pred) ** 2))
