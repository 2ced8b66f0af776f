"""Partial least squares."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import ConvergenceWarning

from psilearn._backend import NUMPY
from psilearn._linalg import Array
from psilearn.utils import Pairs, RandomStateLike, Samples, validation
from psilearn_lab.baselines.baseline import Baseline

MAX_ITERATIONS = 100  # of the power method, for each component


class PLS(Baseline):
    """Partial least squares of inputs and outputs (PLSRegression of scikit-learn, unscaled).

    Candidates are compared by their squared distance to the prediction.

    Parameters
    ----------
    n_components : int or sequence of int, default=(5, 10, 20, 40, 80)
        The number of components; the best value of a sequence is chosen on held-out examples. At most the smaller
        side of the centered X is used.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``n_components`` and the threshold.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    model_ : PLSRegression
        The fitted model of scikit-learn.
    n_components_ : int
        The chosen number of components.
    binary_ : bool
        Whether the outputs are rows of labels.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. Only for labels. If not, the label with the
        highest score is predicted where no score reaches the threshold.
    threshold_ : float
        The smallest score of a predicted label. Only for labels.
    validation_error_ : float
        1 − F1, or the mean squared distance, on the held-out examples. Only if examples were held out.

    See Also
    --------
    RRR : Reduced-rank regression with an input kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import PLS
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> PLS(n_components=3).fit(X, X @ [[1.0], [2.0], [0.0]]).predict([[1.0, 1.0, 5.0]]).round(6)
    array([[3.]])
    """

    tuned_parameter: ClassVar[str] = "n_components"

    def __init__(
        self,
        n_components: int | Sequence[int] = (5, 10, 20, 40, 80),
        *,
        validation_fraction: float = 0.2,
        random_state: RandomStateLike = 0,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._tuned_values():
            validation.check_count(value, "n_components")

    def _learn(self, X: Samples, Y: Array, settings: int, held_out: Pairs | None) -> int:
        rank = min(X.shape[0] - 1, X.shape[1])  # of the centered inputs, at most
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # directions of equal strength need not converge
            model = PLSRegression(max(1, min(settings, rank)), scale=False, max_iter=MAX_ITERATIONS)
            self.model_ = model.fit(_to_dense_inputs(X), Y)
        return settings

    def _predict_soft(self, X: Samples) -> Array:
        return np.asarray(self.model_.predict(_to_dense_inputs(X))).reshape(X.shape[0], -1)


def _to_dense_inputs(X: Samples) -> Array:
    """Return inputs as a dense array, after a check of the memory that it needs."""
    if sparse.issparse(X):
        NUMPY.require_memory(X.shape, "X as a dense array", "PLS has no sparse form: use KRR or RRR, or fewer columns.")
        X = X.toarray()
    return np.asarray(X)
