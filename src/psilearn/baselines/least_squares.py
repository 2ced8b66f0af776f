"""Regression onto the outputs themselves: kernel ridge, reduced rank, partial least squares."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import ConvergenceWarning

from psilearn._backend import require_memory, row_blocks
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.baselines.baseline import Baseline
from psilearn.kernels.blocks import block
from psilearn.kernels.kernel import as_kernel
from psilearn.regression import KernelRidge

ITERATIONS = 100  # for a direction of partial least squares


class _OntoOutputs(Baseline):
    """ŷ(x) = Cᵀk_x(X, x), with coefficients C (n, L) from a kernel ridge regression."""

    input_kernel: Any

    def _check_inputs(self, X: Samples) -> Samples:
        return as_kernel(self.input_kernel, "input_kernel").check(X, "X", allow_1d=False)

    def _solve(self, X: Samples, Y: Array, alpha: float) -> Array:
        """Keep the inputs and return (K_x + nλI)⁻¹Y."""
        self.input_kernel_, self.X_fit_ = as_kernel(self.input_kernel, "input_kernel").fit(X), X
        return KernelRidge(self.input_kernel_, alpha).fit(X).solve(Y)

    def _soft(self, X: Samples) -> Array:
        soft = np.empty((n_samples(X), self.coef_.shape[1]))
        for rows in row_blocks(len(soft), 24 * len(self.coef_)):
            soft[rows] = block(self.input_kernel_, take(X, rows), self.X_fit_, "input_kernel") @ self.coef_
        return soft


class KRR(_OntoOutputs):
    """Kernel ridge regression onto the outputs as vectors, without an output kernel; labels by a threshold.

    ŷ(x) = Yᵀ(K_x + nλI)⁻¹k_x(X, x): :class:`~psilearn.IOKR` with a linear output kernel, before it looks for
    candidates.

    Parameters
    ----------
    input_kernel : Kernel, function k(a, b) or None
        None is a Gaussian of the median width.
    alpha : float > 0, or list of them
        λ; of a list, the best on held-out examples is taken.
    validation_fraction, random_state, verbose :
        as in :class:`LR`.

    Attributes
    ----------
    coef_ : array (n, L)
    alpha_ : float
        chosen.
    threshold_, validation_error_ : float
        where labels are predicted, or something was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import KRR
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> KRR(Gaussian(5.0), alpha=1e-6).fit(X, np.hstack([X, X**2])).predict([[0.5]]).round(3)
    array([[0.5 , 0.25]])
    """

    _tuned = "alpha"

    def __init__(
        self,
        input_kernel: Any = None,
        alpha: float | Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
        validation_fraction: float = 0.2,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.input_kernel = input_kernel
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._values():
            validation.check_positive(value, "alpha")

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Any) -> float:
        self.coef_ = self._solve(X, Y, float(settings))
        return settings


class RRR(_OntoOutputs):
    """Reduced-rank kernel ridge regression: the fitted outputs span at most p dimensions.

    ŷ(x) is that of :class:`KRR`, projected onto the p leading right singular vectors of the fitted values at the
    training inputs. This is the paper's OEL₀ with a linear output kernel, before it looks for candidates.

    Parameters
    ----------
    input_kernel : as in :class:`KRR`
    alpha : float > 0
        λ.
    n_components : int, or list of them
        p; of a list, the best on held-out examples is taken. At most the rank is used.
    validation_fraction, random_state, verbose :
        as in :class:`LR`.

    Attributes
    ----------
    coef_ : array (n, L)
    n_components_ : int
        chosen.
    threshold_, validation_error_ : float
        where labels are predicted, or something was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import RRR
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> model = RRR(n_components=1, alpha=1e-6).fit(X, np.hstack([X, 2 * X]))
    >>> int(np.linalg.matrix_rank(model.coef_))
    1
    """

    _tuned = "n_components"

    def __init__(
        self,
        input_kernel: Any = None,
        alpha: float = 1e-4,
        n_components: int | Sequence[int] = (5, 10, 20, 40, 80),
        validation_fraction: float = 0.2,
        random_state: Any = 0,
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
        validation.check_positive(self.alpha, "alpha")
        for value in self._values():
            validation.check_count(value, "n_components")

    def _learn(self, X: Samples, Y: Array, settings: int, held_out: Any) -> int:
        coef = self._solve(X, Y, float(self.alpha))
        fitted = Y - len(Y) * self.alpha * coef  # K_x (K_x + nλI)⁻¹ Y
        directions = np.linalg.svd(fitted, full_matrices=False)[2][:settings]  # (p, L)
        self.coef_ = coef @ directions.T @ directions
        return settings


class PLS(Baseline):
    """Partial least squares of inputs and outputs (scikit-learn's PLSRegression, unscaled).

    Parameters
    ----------
    n_components : int, or list of them
        of a list, the best on held-out examples is taken; at most the smaller side of X.
    validation_fraction, random_state, verbose :
        as in :class:`LR`.

    Attributes
    ----------
    n_components_ : int
        chosen.
    threshold_, validation_error_ : float
        where labels are predicted, or something was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import PLS
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> PLS(n_components=3).fit(X, X @ [[1.0], [2.0], [0.0]]).predict([[1.0, 1.0, 5.0]]).round(6)
    array([[3.]])
    """

    _tuned = "n_components"

    def __init__(
        self,
        n_components: int | Sequence[int] = (5, 10, 20, 40, 80),
        validation_fraction: float = 0.2,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._values():
            validation.check_count(value, "n_components")

    def _learn(self, X: Samples, Y: Array, settings: int, held_out: Any) -> int:
        most = min(X.shape[0] - 1, X.shape[1])  # centred
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # directions of equal strength may turn for ever
            model = PLSRegression(max(1, min(settings, most)), scale=False, max_iter=ITERATIONS)
            self.model_ = model.fit(_dense_inputs(X), Y)
        return settings

    def _soft(self, X: Samples) -> Array:
        return self.model_.predict(_dense_inputs(X)).reshape(X.shape[0], -1)


def _dense_inputs(X: Samples) -> Array:
    if not sparse.issparse(X):
        return X
    require_memory(X.shape, "X as a dense array", "PLS has no sparse form: use KRR or RRR, or fewer columns.")
    return X.toarray()
