"""Exact kernel ridge regression in the paper's convention: the ridge is K_x + nλI."""

from __future__ import annotations

from typing import Self

import numpy as np

from psilearn._backend import Compute, current_compute
from psilearn._linalg import Array, Moment, NotPositiveSemidefiniteError, ShiftedCholesky
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
