"""Regressions onto the outputs themselves: kernel ridge, reduced rank, partial least squares, nearest neighbors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy import linalg, sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor

from psilearn import computing
from psilearn.kernels import Kernel, as_kernel
from psilearn.utils import Samples, n_samples, take, validation
from psilearn_lab.arrays import Array, Pairs, iter_blocks, to_numpy
from psilearn_lab.baselines.baseline import Baseline

KernelLike: TypeAlias = Kernel | Callable[[Any, Any], float] | None
MAX_ITERATIONS = 100  # of the power method, for each component of PLS


@dataclass(eq=False, repr=False, kw_only=True)
class KRR(Baseline):
    """Kernel ridge regression onto the outputs as vectors, without an output kernel; labels by a threshold.

    ŷ(x) = Yᵀ(K_x + nλI)⁻¹k_x(X, x): the prediction of :class:`~psilearn.IOKR` with a linear output kernel, before the
    decoding. Candidates are compared by their squared distance to ŷ(x).

    Parameters
    ----------
    input_kernel : Kernel, callable or None, default=None
        The kernel of the inputs, or a function k(a, b) of two inputs; None is a Gaussian kernel of the median width.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``alpha`` and the threshold.
    device : str, torch.device or None, default=None
        The torch device of the computations; None for NumPy on the CPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.
    alpha : float or sequence of float, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
        The regularization λ > 0; the best value of a sequence is chosen on held-out examples.

    Attributes
    ----------
    coef_ : ndarray of shape (n, L)
        The coefficients (K_x + nλI)⁻¹Y.
    alpha_ : float
        The chosen regularization.
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
    RRR : The same with a bound on the rank.
    psilearn.IOKR : Regression with an output kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import KRR
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> KRR(Gaussian(5.0), alpha=1e-6).fit(X, np.hstack([X, X**2])).predict([[0.5]]).round(3)
    array([[0.5 , 0.25]])
    """

    input_kernel: KernelLike = field(default=None, kw_only=False)
    alpha: float | Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)

    tuned_parameter: ClassVar[str] = "alpha"

    def _check_inputs(self, X: Samples) -> Samples:
        return as_kernel(self.input_kernel, "input_kernel").check(X, "X", allow_1d=False)

    def _learn(self, X: Samples, Y: Array, settings: Any, held_out: Pairs | None) -> Any:
        self.coef_ = self._solve(X, Y, float(settings))
        return settings

    def _solve(self, X: Samples, Y: Array, alpha: float) -> Array:
        """Store the inputs and return (K_x + nλI)⁻¹Y."""
        self.input_kernel_, self.X_fit_ = as_kernel(self.input_kernel, "input_kernel").fit(X), X
        with computing("float64", self.device):
            K = self.input_kernel_(X)
            if isinstance(K, np.ndarray):
                K.flat[:: len(K) + 1] += len(K) * alpha
                return linalg.cho_solve(linalg.cho_factor(K, overwrite_a=True, check_finite=False), Y)
            import torch

            K.diagonal().add_(len(K) * alpha)
            return to_numpy(torch.cholesky_solve(torch.as_tensor(Y).to(K), torch.linalg.cholesky(K)))

    def _predict_soft(self, X: Samples) -> Array:
        soft = np.empty((n_samples(X), self.coef_.shape[1]))
        with computing("float64", self.device):
            for rows in iter_blocks(len(soft), 24 * len(self.coef_)):
                soft[rows] = to_numpy(self.input_kernel_(take(X, rows), self.X_fit_)) @ self.coef_
        return soft


@dataclass(eq=False, repr=False, kw_only=True)
class RRR(KRR):
    """Reduced-rank kernel ridge regression: the fitted outputs span at most p dimensions.

    The prediction is that of kernel ridge regression onto the outputs, projected onto the p leading right singular
    vectors of the fitted values at the training inputs. This is OEL₀ of the paper with a linear output kernel, before
    the decoding. Candidates are compared by their squared distance to ŷ(x).

    Parameters
    ----------
    input_kernel : Kernel, callable or None, default=None
        The kernel of the inputs, or a function k(a, b) of two inputs; None is a Gaussian kernel of the median width.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``n_components`` and the threshold.
    device : str, torch.device or None, default=None
        The torch device of the computations; None for NumPy on the CPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.
    alpha : float, default=1e-4
        The regularization λ > 0.
    n_components : int or sequence of int, default=(5, 10, 20, 40, 80)
        The dimension p; the best value of a sequence is chosen on held-out examples. A value above the rank of the
        fitted outputs has the effect of the rank.

    Attributes
    ----------
    coef_ : ndarray of shape (n, L)
        The coefficients of the prediction, of rank at most p.
    n_components_ : int
        The chosen dimension.
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
    KRR : The same without a bound on the rank.
    psilearn.OEL : Output embedding learning with an output kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import RRR
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> model = RRR(n_components=1, alpha=1e-6).fit(X, np.hstack([X, 2 * X]))
    >>> int(np.linalg.matrix_rank(model.coef_))
    1
    """

    alpha: float = 1e-4
    n_components: int | Sequence[int] = (5, 10, 20, 40, 80)

    tuned_parameter: ClassVar[str] = "n_components"
    _check_tuned = staticmethod(validation.check_count)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_regularization(self.alpha, "alpha")

    def _learn(self, X: Samples, Y: Array, settings: Any, held_out: Pairs | None) -> Any:
        coef = self._solve(X, Y, float(self.alpha))
        fitted = Y - len(Y) * self.alpha * coef  # K_x (K_x + nλI)⁻¹ Y
        directions = np.linalg.svd(fitted, full_matrices=False)[2][:settings]  # (p, L)
        self.coef_ = coef @ directions.T @ directions
        return settings


@dataclass(eq=False, repr=False, kw_only=True)
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
    device : str, torch.device or None, default=None
        Accepted for all baselines; scikit-learn computes on the CPU.
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

    n_components: int | Sequence[int] = field(default=(5, 10, 20, 40, 80), kw_only=False)

    tuned_parameter: ClassVar[str] = "n_components"
    _check_tuned = staticmethod(validation.check_count)

    def _learn(self, X: Samples, Y: Array, settings: Any, held_out: Pairs | None) -> Any:
        rank = min(X.shape[0] - 1, X.shape[1])  # of the centered inputs, at most
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # directions of equal strength need not converge
            model = PLSRegression(max(1, min(settings, rank)), scale=False, max_iter=MAX_ITERATIONS)
            self.model_ = model.fit(_densify(X), Y)
        return settings

    def _predict_soft(self, X: Samples) -> Array:
        return np.asarray(self.model_.predict(_densify(X))).reshape(X.shape[0], -1)


@dataclass(eq=False, repr=False, kw_only=True)
class KNN(Baseline):
    """Nearest neighbors: the mean output of the k training inputs that are nearest.

    Candidates are compared by their squared distance to this mean.

    Parameters
    ----------
    n_neighbors : int or sequence of int, default=(1, 3, 5, 10, 20, 40)
        The number k of neighbors; the best value of a sequence is chosen on held-out examples.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``n_neighbors`` and the threshold.
    device : str, torch.device or None, default=None
        Accepted for all baselines; nearest neighbors are searched by scikit-learn.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.
    weights : {"uniform", "distance"}, default="uniform"
        Whether all neighbors count equally, or each by 1/distance.
    metric : str, default="euclidean"
        The name of a distance of scikit-learn, such as "euclidean" or "cosine".
    n_jobs : int or None, default=None
        The number of parallel jobs of the neighbor search.

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

    n_neighbors: int | Sequence[int] = field(default=(1, 3, 5, 10, 20, 40), kw_only=False)
    weights: str = "uniform"
    metric: str = "euclidean"
    n_jobs: int | None = None

    tuned_parameter: ClassVar[str] = "n_neighbors"
    _check_tuned = staticmethod(validation.check_count)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.metric, str) and (isinstance(self.metric, type) or not callable(self.metric)):
            raise ValueError(f"metric must be the name of a metric or a function of two rows; got {self.metric!r:.80}.")
        validation.check_option(self.weights, ("uniform", "distance"), "weights")

    def _learn(self, X: Samples, Y: Array, settings: Any, held_out: Pairs | None) -> Any:
        k = min(settings, len(Y))
        model = KNeighborsRegressor(k, weights=self.weights, metric=self.metric, n_jobs=self.n_jobs)
        self.model_, self.n_outputs_, self.is_dense_ = model.fit(X, Y), Y.shape[1], not sparse.issparse(X)
        return settings

    def _predict_soft(self, X: Samples) -> Array:
        X = _densify(X) if self.is_dense_ else X
        soft = np.empty((X.shape[0], self.n_outputs_))
        for rows in iter_blocks(len(soft), 16 * self.model_.n_neighbors * self.n_outputs_):  # k outputs per input
            soft[rows] = np.reshape(self.model_.predict(take(X, rows)), (-1, self.n_outputs_))
        return soft


def _densify(X: Samples) -> Array:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
