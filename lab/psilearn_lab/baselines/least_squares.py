"""Kernel ridge regression onto the outputs themselves, of full and of reduced rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from psilearn._backend import iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn.kernels import Kernel, as_kernel
from psilearn.regression import KernelRidge
from psilearn.utils import Pairs, RandomStateLike, Samples, n_samples, take, validation
from psilearn_lab.baselines.baseline import Baseline

KernelLike: TypeAlias = Kernel | Callable[[Any, Any], float] | None


class _KernelLeastSquares(Baseline):
    """The prediction ŷ(x) = Cᵀk_x(X, x), with coefficients C (n, L) from a kernel ridge regression."""

    input_kernel: KernelLike
    coef_: Array

    def _check_inputs(self, X: Samples) -> Samples:
        return as_kernel(self.input_kernel, "input_kernel").check(X, "X", allow_1d=False)

    def _solve(self, X: Samples, Y: Array, alpha: float) -> Array:
        """Store the inputs and return (K_x + nλI)⁻¹Y."""
        self.input_kernel_, self.X_fit_ = as_kernel(self.input_kernel, "input_kernel").fit(X), X
        ridge = KernelRidge(self.input_kernel_, alpha).fit(X)
        return to_numpy(ridge.solve(ridge.compute.asarray(Y, np.float64)))

    def _predict_soft(self, X: Samples) -> Array:
        soft = np.empty((n_samples(X), self.coef_.shape[1]))
        for rows in iter_blocks(len(soft), 24 * len(self.coef_)):
            soft[rows] = to_numpy(self.input_kernel_(take(X, rows), self.X_fit_)) @ self.coef_
        return soft


class KRR(_KernelLeastSquares):
    """Kernel ridge regression onto the outputs as vectors, without an output kernel; labels by a threshold.

    ŷ(x) = Yᵀ(K_x + nλI)⁻¹k_x(X, x): the prediction of :class:`~psilearn.IOKR` with a linear output kernel, before the
    decoding. Candidates are compared by their squared distance to ŷ(x).

    Parameters
    ----------
    input_kernel : Kernel, callable or None, default=None
        The kernel of the inputs, or a function k(a, b) of two inputs; None is a Gaussian kernel of the median width.
    alpha : float or sequence of float, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
        The regularization λ > 0; the best value of a sequence is chosen on held-out examples.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``alpha`` and the threshold.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

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

    tuned_parameter: ClassVar[str] = "alpha"

    def __init__(
        self,
        input_kernel: KernelLike = None,
        *,
        alpha: float | Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
        validation_fraction: float = 0.2,
        random_state: RandomStateLike = 0,
        verbose: int = 0,
    ) -> None:
        self.input_kernel = input_kernel
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_regularization()

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Pairs | None) -> float:
        self.coef_ = self._solve(X, Y, float(settings))
        return settings


class RRR(_KernelLeastSquares):
    """Reduced-rank kernel ridge regression: the fitted outputs span at most p dimensions.

    The prediction is that of kernel ridge regression onto the outputs, projected onto the p leading right singular
    vectors of the fitted values at the training inputs. This is OEL₀ of the paper with a linear output kernel, before
    the decoding. Candidates are compared by their squared distance to ŷ(x).

    Parameters
    ----------
    input_kernel : Kernel, callable or None, default=None
        The kernel of the inputs, or a function k(a, b) of two inputs; None is a Gaussian kernel of the median width.
    alpha : float, default=1e-4
        The regularization λ > 0.
    n_components : int or sequence of int, default=(5, 10, 20, 40, 80)
        The dimension p; the best value of a sequence is chosen on held-out examples. A value above the rank of the
        fitted outputs has the effect of the rank.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``n_components`` and the threshold.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

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

    tuned_parameter: ClassVar[str] = "n_components"

    def __init__(
        self,
        input_kernel: KernelLike = None,
        *,
        alpha: float = 1e-4,
        n_components: int | Sequence[int] = (5, 10, 20, 40, 80),
        validation_fraction: float = 0.2,
        random_state: RandomStateLike = 0,
        verbose: int = 0,
    ) -> None:
        self.input_kernel = input_kernel
        self.alpha = alpha
        self.n_components = n_components
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_regularization(self.alpha, "alpha")
        for value in self._tuned_values():
            validation.check_count(value, "n_components")

    def _learn(self, X: Samples, Y: Array, settings: int, held_out: Pairs | None) -> int:
        coef = self._solve(X, Y, float(self.alpha))
        fitted = Y - len(Y) * self.alpha * coef  # K_x (K_x + nλI)⁻¹ Y
        directions = np.linalg.svd(fitted, full_matrices=False)[2][:settings]  # (p, L)
        self.coef_ = coef @ directions.T @ directions
        return settings
