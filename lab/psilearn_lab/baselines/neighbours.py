"""The mean output of the nearest training inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.neighbors import KNeighborsRegressor

from psilearn._backend import NUMPY, iter_blocks
from psilearn._linalg import Array
from psilearn.utils import Pairs, RandomStateLike, Samples, take, validation
from psilearn_lab.baselines.baseline import Baseline


class KNN(Baseline):
    """Nearest neighbors: the mean output of the k training inputs that are nearest.

    Candidates are compared by their squared distance to this mean.

    Parameters
    ----------
    n_neighbors : int or sequence of int, default=(1, 3, 5, 10, 20, 40)
        The number k of neighbors; the best value of a sequence is chosen on held-out examples.
    weights : {"uniform", "distance"}, default="uniform"
        Whether all neighbors count equally, or each by 1/distance.
    metric : str, default="euclidean"
        The name of a distance of scikit-learn, such as "euclidean" or "cosine".
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``n_neighbors`` and the threshold.
    n_jobs : int or None, default=None
        The number of parallel jobs of the neighbor search.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    model_ : KNeighborsRegressor
        The fitted model of scikit-learn.
    n_neighbors_ : int
        The chosen number of neighbors.
    n_outputs_ : int
        The number of columns of the outputs.
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
    KRR : Kernel ridge regression onto the outputs.

    Examples
    --------
    >>> from psilearn_lab.baselines import KNN
    >>> KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], [[0.0, 0.5], [1.0, 0.5], [4.0, 0.5]]).predict([[1.9]])
    array([[4. , 0.5]])
    """

    tuned_parameter: ClassVar[str] = "n_neighbors"

    def __init__(
        self,
        n_neighbors: int | Sequence[int] = (1, 3, 5, 10, 20, 40),
        *,
        weights: str = "uniform",
        metric: str = "euclidean",
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: RandomStateLike = 0,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._tuned_values():
            validation.check_count(value, "n_neighbors")
        if not isinstance(self.metric, str) and (isinstance(self.metric, type) or not callable(self.metric)):
            raise ValueError(f"metric must be the name of a metric or a function of two rows; got {self.metric!r:.80}.")
        validation.check_option(self.weights, ("uniform", "distance"), "weights")

    def _learn(self, X: Samples, Y: Array, settings: int, held_out: Pairs | None) -> int:
        k = min(settings, len(Y))
        model = KNeighborsRegressor(k, weights=self.weights, metric=self.metric, n_jobs=self.n_jobs)
        self.model_, self.n_outputs_ = model.fit(X, Y), Y.shape[1]
        return settings

    def _predict_soft(self, X: Samples) -> Array:
        if sparse.issparse(X) and not sparse.issparse(self.model_._fit_X):
            NUMPY.require_memory(X.shape, "X as a dense array", "Fit the neighbors on sparse inputs, too.")
            X = X.toarray()
        soft = np.empty((X.shape[0], self.n_outputs_))
        for rows in iter_blocks(
            len(soft), 16 * self.model_.n_neighbors * self.n_outputs_
        ):  # k outputs per input at a time
            soft[rows] = np.reshape(self.model_.predict(take(X, rows)), (-1, self.n_outputs_))
        return soft
