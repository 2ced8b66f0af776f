"""Exact kernel ridge regression, in the paper's convention: the ridge is K_x + nλI."""

from __future__ import annotations

from typing import Self

import numpy as np

from psilearn._backend import asarray
from psilearn._linalg import Array, NotPositiveSemidefiniteError, ShiftedCholesky
from psilearn._linalg.moments import MixedMoment
from psilearn._utils.progress import stage
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels.blocks import block, gram
from psilearn.kernels.kernel import Kernel
from psilearn.regression.kernel_regression import KernelRegression, Targets


class KernelRidge:
    """ĥ(x) = Σᵢ αᵢ(x) ψ(yᵢ) with α(x) = (K_x + nλI)⁻¹ k_x(X, x).

    One Cholesky factorisation, n³/3 flops and n² numbers; no inverse is ever formed. The targets enter only through
    :meth:`regress`, in whatever coordinates they have.

    Parameters
    ----------
    kernel : Kernel
        k_x, fitted where it takes a width from data.
    alpha : float
        λ > 0.
    """

    def __init__(self, kernel: Kernel, alpha: float) -> None:
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: Samples) -> Self:
        """Factor K_x + nλI."""
        self.X_fit_ = X
        self._ridge = n_samples(X) * self.alpha
        with stage(f"kernel of {n_samples(X):,} inputs"):
            K = gram(self.kernel, X, "input_kernel", "Set input_landmarks, or train on fewer rows of X.")
        try:
            with stage(f"Cholesky factor of {len(K):,} inputs"):
                self._cholesky = ShiftedCholesky(K, self._ridge, overwrite=True)
        except NotPositiveSemidefiniteError as error:
            raise NotPositiveSemidefiniteError(
                f"input_kernel = {self.kernel!r} is not positive semi-definite on X, or alpha={self.alpha:g} is below "
                f"the rounding errors of K_x: K_x + n·alpha·I has no Cholesky factor ({error}). Choose another kernel, "
                f"raise alpha, or scale X."
            ) from error
        return self

    def regress(self, V: Targets, with_moment: bool = True) -> KernelRegression:
        """Regress onto the targets V (n, r); 2n²r flops, 2nr numbers, and nr more for the moment."""
        targets = asarray(V[:], np.float64)
        with stage(f"regression onto {targets.shape[1]:,} coordinates"):
            coef = self.solve(targets)
        moment = None
        if with_moment:
            fitted = coef * -self._ridge  # ĥ(xᵢ) = K_x (K_x + nλI)⁻¹ V = V − nλ (K_x + nλI)⁻¹ V
            fitted += targets
            moment = MixedMoment(((fitted, 1 / len(fitted)),))
        return KernelRegression(self.kernel, coef, None, self.X_fit_, moment, 0.0)

    def solve(self, V: Array) -> Array:
        """Return (K_x + nλI)⁻¹ V, shape (n, r)."""
        return self._cholesky.solve(V)

    def weights(self, X: Samples) -> Array:
        """Return α(x) for each row, shape (len(X), n)."""
        return self._cholesky.solve(block(self.kernel, X, self.X_fit_, "input_kernel").T).T
