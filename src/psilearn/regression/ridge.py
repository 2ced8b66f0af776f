"""Exact kernel ridge regression, for one λ or for a whole path of λ from one eigendecomposition of K_x.

The ridge is K_x + nλI, the convention of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from psilearn._backend import Compute, current_compute, is_tensor, to_numpy
from psilearn._linalg import (
    INDEFINITE,
    Array,
    Moment,
    NotPositiveSemidefiniteError,
    ShiftedCholesky,
    clip_negative,
    eigh,
    row_products,
)
from psilearn._utils import validation
from psilearn._utils.progress import stage
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels import Kernel
from psilearn.regression.kernel_regression import KernelRegression, Targets


class KernelRidge:
    """Exact kernel ridge regression: ĥ(x) = Σᵢ αᵢ(x) ψ(yᵢ) with α(x) = (K_x + nλI)⁻¹ k_x(X, x).

    One Cholesky factorization, n³/3 flops and n² numbers; the inverse is never formed. Targets are used by
    :meth:`regress` only, in any coordinates.

    Parameters
    ----------
    kernel : Kernel
        The input kernel k_x, fitted if it takes a width from data.
    alpha : float
        The ridge parameter λ > 0.
    compute : Compute, default=None
        The device. The regression is always float64. By default as set by :func:`psilearn.computing`.

    See Also
    --------
    NystromRidge : The same in the span of landmarks.
    RidgePath : The same for many λ.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Linear
    >>> from psilearn.regression import KernelRidge
    >>> ridge = KernelRidge(Linear(), alpha=0.5).fit(np.array([[1.0], [2.0]]))
    >>> ridge.regress(np.array([[1.0], [2.0]])).predict(np.array([[6.0]]))
    array([[5.]])
    """

    def __init__(self, kernel: Kernel, alpha: float, compute: Compute | None = None) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.compute = (current_compute() if compute is None else compute).with_dtype(np.float64)

    def fit(self, X: Samples) -> Self:
        """Factor K_x + nλI.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The training inputs.

        Returns
        -------
        KernelRidge
            The object itself.

        See Also
        --------
        KernelRidge.regress : The second step, with targets.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRidge
        >>> KernelRidge(Linear(), alpha=1.0).fit(np.eye(2)).solve(np.eye(2)[:, :1]).round(4)
        array([[0.3333],
               [0.    ]])
        """
        self.X_fit_ = X
        n = n_samples(X)
        self._ridge = n * self.alpha
        with stage(f"kernel of {n:,} inputs"):
            remedy = "Set input_landmarks, or train on fewer rows of X."
            K = self.kernel.gram(X, compute=self.compute, remedy=remedy)
        try:
            with stage(f"Cholesky factor of {n:,} inputs"):
                self._cholesky = ShiftedCholesky(K, self._ridge, overwrite=True)
        except NotPositiveSemidefiniteError as error:
            raise NotPositiveSemidefiniteError(
                f"input_kernel = {self.kernel!r} is not positive semi-definite on X, or alpha={self.alpha:g} is below "
                f"the rounding errors of K_x: K_x + n·alpha·I has no Cholesky factor ({error}). Choose another kernel, "
                f"increase alpha, or scale X."
            ) from error
        return self

    def regress(self, V: Targets, with_moment: bool = True) -> KernelRegression:
        """Regress onto targets; 2n²r flops, 2nr numbers, and nr more for the moment.

        Parameters
        ----------
        V : array of shape (n, r)
            The targets.
        with_moment : bool, default=True
            Whether the moment of the fitted values is needed.

        Returns
        -------
        KernelRegression
            The fitted function.

        See Also
        --------
        KernelRidge.fit : The first step, with inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRidge
        >>> regression = KernelRidge(Linear(), alpha=1.0).fit(np.eye(2)).regress(np.eye(2))
        >>> regression.moment.to_matrix().round(4)
        array([[0.0556, 0.    ],
               [0.    , 0.0556]])
        """
        targets = self.compute.asarray(V[:], np.float64)
        with stage(f"regression onto {targets.shape[1]:,} coordinates"):
            coefficients = self._cholesky.solve(targets)
        moment = None
        if with_moment:
            fitted = coefficients * -self._ridge  # ĥ(xᵢ) = K_x (K_x + nλI)⁻¹ V = V − nλ (K_x + nλI)⁻¹ V
            fitted += targets
            moment = Moment(((fitted, 1 / len(fitted)),))
        return KernelRegression(self.kernel, self.X_fit_, coefficients, moment=moment)

    def solve(self, V: Array) -> Array:
        """Return (K_x + nλI)⁻¹ V.

        Parameters
        ----------
        V : array of shape (n, r)
            The right-hand side.

        Returns
        -------
        array of shape (n, r)
            The solution.

        See Also
        --------
        KernelRidge.weights : The weights α(x) of new inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRidge
        >>> KernelRidge(Linear(), alpha=1.0).fit(np.eye(1)).solve(np.eye(1))
        array([[0.5]])
        """
        return self._cholesky.solve(V)

    def weights(self, X: Samples) -> Array:
        """Return the weights α(x) of inputs on the training outputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of m inputs
            The inputs.

        Returns
        -------
        array of shape (m, n)
            The weights.

        See Also
        --------
        KernelRidge.solve : The linear system behind the weights.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRidge
        >>> KernelRidge(Linear(), alpha=1.0).fit(np.eye(1)).weights(np.eye(1))
        array([[0.5]])
        """
        return self._cholesky.solve(self.kernel(X, self.X_fit_, compute=self.compute).T).T


class RidgePath:
    """Kernel ridge regression for every λ at once, from a single decomposition K_x = U diag(s) Uᵀ.

    (K_x + nλI)⁻¹ = U diag(1/(s + nλ)) Uᵀ, and the smoother K_x(K_x + nλI)⁻¹ has the factors s/(s + nλ). The
    decomposition takes the time of about 14 Cholesky factorizations and stores 2n² numbers.

    Parameters
    ----------
    kernel : Kernel
        The input kernel k_x, fitted if it takes a width from data.
    compute : Compute, default=None
        The device. The regression is always float64. By default as set by :func:`psilearn.computing`.

    Attributes
    ----------
    spectrum_ : array of shape (n,)
        The eigenvalues s, ascending, at least 0.
    vectors_ : array of shape (n, n)
        The eigenvectors U, one per column.

    See Also
    --------
    KernelRidge : The same for one λ.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Linear
    >>> from psilearn.regression import RidgePath
    >>> path = RidgePath(Linear()).fit(np.eye(2))
    >>> path.leave_one_out(np.eye(2), [0.1, 1.0])
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: Kernel, compute: Compute | None = None) -> None:
        self.kernel = kernel
        self.compute = (current_compute() if compute is None else compute).with_dtype(np.float64)

    def fit(self, X: Samples) -> Self:
        """Decompose K_x.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The training inputs.

        Returns
        -------
        RidgePath
            The object itself.

        See Also
        --------
        RidgePath.solve : Solutions for any λ.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> RidgePath(Linear()).fit(np.array([[1.0], [2.0]])).spectrum_.round(4)
        array([0., 5.])
        """
        X = self.kernel.check(X, "X")
        K = self.kernel.gram(X, compute=self.compute, remedy="Train on fewer rows of X.")
        spectrum, vectors = eigh(K, overwrite=True)
        if spectrum[0] < -INDEFINITE * max(spectrum[-1], -spectrum[0]):
            raise NotPositiveSemidefiniteError(
                f"input_kernel = {self.kernel!r} is not positive semi-definite on X: K_x has the eigenvalue "
                f"{spectrum[0]:.3g}."
            )
        self.X_fit_, self.vectors_, self.spectrum_ = X, vectors, clip_negative(spectrum)
        return self

    def shrinkage(self, alpha: float) -> Array:
        """Return the factors s/(s + nλ) of the smoother.

        Parameters
        ----------
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (n,)
            One factor per eigenvector.

        See Also
        --------
        RidgePath.inverse : The factors of the inverse.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> RidgePath(Linear()).fit(np.eye(2)).shrinkage(0.5)
        array([0.5, 0.5])
        """
        return self.spectrum_ * self.inverse(alpha)

    def moment_weights(self, alpha: float) -> Array:
        """Return the weights of the moment of the fitted values, 1/n Σ ĥ(xᵢ)ĥ(xᵢ)ᵀ = (UᵀV)ᵀ diag(weights) UᵀV.

        Parameters
        ----------
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (n,)
            The squared factors of the smoother, divided by n.

        See Also
        --------
        RidgePath.shrinkage : The factors of the smoother.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> RidgePath(Linear()).fit(np.eye(2)).moment_weights(0.5)
        array([0.125, 0.125])
        """
        return self.shrinkage(alpha) ** 2 / len(self.spectrum_)

    def inverse(self, alpha: float) -> Array:
        """Return the eigenvalues 1/(s + nλ) of (K_x + nλI)⁻¹.

        Parameters
        ----------
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (n,)
            One value per eigenvector.

        See Also
        --------
        RidgePath.shrinkage : The factors of the smoother.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> RidgePath(Linear()).fit(np.eye(2)).inverse(0.5)
        array([0.5, 0.5])
        """
        return 1 / (self.spectrum_ + len(self.spectrum_) * validation.check_regularization(alpha, "alpha"))

    def solve(self, V: Array, alpha: float) -> Array:
        """Return (K_x + nλI)⁻¹ V.

        Parameters
        ----------
        V : array of shape (n, r)
            The right-hand side.
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (n, r)
            The solution.

        See Also
        --------
        RidgePath.rotated : What new inputs contribute to predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> RidgePath(Linear()).fit(np.eye(1)).solve(np.eye(1), 1.0)
        array([[0.5]])
        """
        return self.vectors_ @ (self.inverse(alpha)[:, None] * (self.vectors_.T @ self._check_columns(V, "V")))

    def rotated(self, X: Samples) -> Array:
        """Return k_x(x, X) U; multiplied with ``inverse(alpha)`` and Uᵀ it gives the weights α(x).

        Parameters
        ----------
        X : array, CSR matrix or sequence of m inputs
            The inputs.

        Returns
        -------
        array of shape (m, n)
            The rotated kernel values.

        See Also
        --------
        RidgePath.inverse : The factor that depends on λ.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> abs(RidgePath(Linear()).fit(np.eye(1)).rotated(np.array([[3.0]])))
        array([[3.]])
        """
        X = self.kernel.check(X, "X")
        self.kernel.check_same_kind(X, "X", self.X_fit_, "the training inputs")
        return self.kernel(X, self.X_fit_, compute=self.compute) @ self.vectors_

    def leave_one_out(self, V: Array, alphas: Sequence[float]) -> Array:
        """Return the squared leave-one-out errors |vᵢ − ĥ₋ᵢ(xᵢ)|² for each λ.

        ĥ₋ᵢ is the regression without pair i and with the same ridge nλ. In closed form its error is (WV)ᵢ / Wᵢᵢ with
        W = (K_x + nλI)⁻¹: no refit. With output coordinates V = Ψ(Y) it is the error in the output space. Cost: n²r
        flops once and n²r per λ.

        Parameters
        ----------
        V : array of shape (n, r)
            The targets.
        alphas : sequence of float
            The values of λ.

        Returns
        -------
        ndarray of shape (len(alphas), n)
            The squared errors.

        See Also
        --------
        RidgePath.leave_one_out_residuals : The errors of one λ as vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> RidgePath(Linear()).fit(np.eye(2)).leave_one_out(np.eye(2), [1.0])
        array([[1., 1.]])
        """
        alphas = validation.check_items(alphas, "alphas", "a sequence of numbers")
        alphas = [validation.check_regularization(alpha, "each value of alphas") for alpha in alphas]
        rotated = self.vectors_.T @ self._check_columns(V, "V")  # (n, r)
        errors = np.empty((len(alphas), len(rotated)))
        for row, alpha in zip(errors, alphas, strict=True):
            residual = self.leave_one_out_residuals(rotated, alpha)
            row[:] = to_numpy(row_products(residual, residual))
        return errors

    def leave_one_out_residuals(self, rotated: Array, alpha: float) -> Array:
        """Return the leave-one-out residuals vᵢ − ĥ₋ᵢ(xᵢ) = (WV)ᵢ / Wᵢᵢ for one λ.

        Parameters
        ----------
        rotated : array of shape (n, r)
            The rotated targets UᵀV.
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (n, r)
            The residuals.

        See Also
        --------
        RidgePath.leave_one_out : Squared errors for many λ.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import RidgePath
        >>> path = RidgePath(Linear()).fit(np.eye(2))
        >>> path.leave_one_out_residuals(path.vectors_.T @ np.eye(2), 1.0)
        array([[1., 0.],
               [0., 1.]])
        """
        inverse, rotated = self.inverse(alpha), self._check_columns(rotated, "rotated")
        return (self.vectors_ @ (inverse[:, None] * rotated)) / (self.vectors_**2 @ inverse)[:, None]

    def _check_columns(self, V: Array, name: str) -> Array:
        """Return n rows of numbers as the path computes with them; the numbers of tensors are not checked."""
        if not (is_tensor(V) and is_tensor(self.spectrum_)):
            V = self.compute.asarray(validation.check_array_of_numbers(V, name, ndim=2))
        if V.ndim != 2 or len(V) != len(self.spectrum_):
            raise ValueError(
                f"{name} must be (n, r) with n = {len(self.spectrum_)}, as fitted; got shape {tuple(V.shape)}."
            )
        return V
