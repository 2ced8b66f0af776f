"""The mean output of the nearest training inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.neighbors import KNeighborsRegressor

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.baselines.baseline import Baseline


class KNN(Baseline):
    """k nearest neighbours: the mean output of the k training inputs that are nearest.

    Parameters
    ----------
    n_neighbors : int, or list of them
        k; of a list, the best on held-out examples is taken.
    weights : "uniform" or "distance"
        whether near neighbours count more, by 1/distance.
    metric : str
        of scikit-learn: "euclidean", "cosine", …
    validation_fraction, n_jobs, random_state, verbose :
        as in :class:`LR`.

    Attributes
    ----------
    n_neighbors_ : int
        chosen.
    threshold_, validation_error_ : float
        where labels are predicted, or something was chosen.

    Examples
    --------
    >>> from psilearn.baselines import KNN
    >>> KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], [[0.0, 0.5], [1.0, 0.5], [4.0, 0.5]]).predict([[1.9]])
    array([[4. , 0.5]])
    """

    _tuned = "n_neighbors"

    def __init__(
        self,
        n_neighbors: int | Sequence[int] = (1, 3, 5, 10, 20, 40),
        weights: str = "uniform",
        metric: str = "euclidean",
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = 0,
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
        for value in self._values():
            validation.check_count(value, "n_neighbors")
        if self.weights not in ("uniform", "distance"):
            raise ValueError(f"weights must be 'uniform' or 'distance'; got {self.weights!r}.")

    def _learn(self, X: Samples, Y: Array, settings: int, held_out: Any) -> int:
        k = min(settings, len(Y))
        self.model_ = KNeighborsRegressor(k, weights=self.weights, metric=self.metric, n_jobs=self.n_jobs).fit(X, Y)
        return settings

    def _soft(self, X: Samples) -> Array:
        return self.model_.predict(X).reshape(X.shape[0], -1)
