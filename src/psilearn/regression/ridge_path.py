"""Kernel ridge regression for a whole path of λ from one eigendecomposition of K_x."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from psilearn._backend import asarray, to_host
from psilearn._linalg import INDEFINITE, Array, NotPositiveSemidefiniteError, eigh, non_negative, row_products
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.kernels.blocks import block, gram
from psilearn.kernels.kernel import Kernel


class RidgePath:
    """α(x) = (K_x + nλI)⁻¹ k_x(X, x) for every λ at once: K_x = U diag(s) Uᵀ is decomposed a single time.

    Then (K_x + nλI)⁻¹ = U diag(1/(s + nλ)) Uᵀ, and the smoother K_x(K_x + nλI)⁻¹ has the factors s/(s + nλ). About ten
    Cholesky factorisations of time, 2n² numbers.

    Attributes
    ----------
    spectrum_ : array (n,)
        s, ascending, ≥ 0.
    vectors_ : array (n, n)
        U, one eigenvector a column.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: Samples) -> Self:
        """Decompose K_x."""
        self.X_fit_ = X
        K = gram(self.kernel, X, "input_kernel", "Train on fewer rows of X.")
        spectrum, self.vectors_ = eigh(K, overwrite=True)
        if spectrum[0] < -INDEFINITE * max(spectrum[-1], -spectrum[0]):
            raise NotPositiveSemidefiniteError(
                f"input_kernel = {self.kernel!r} is not positive semi-definite on X: K_x has the eigenvalue "
                f"{spectrum[0]:.3g}."
            )
        self.spectrum_ = non_negative(spectrum)
        return self

    def shrinkage(self, alpha: float) -> Array:
        """Return s/(s + nλ), what the smoother does to each eigenvector, shape (n,)."""
        return self.spectrum_ / (self.spectrum_ + len(self.spectrum_) * alpha)

    def inverse(self, alpha: float) -> Array:
        """Return 1/(s + nλ), shape (n,)."""
        return 1 / (self.spectrum_ + len(self.spectrum_) * alpha)

    def solve(self, V: Array, alpha: float) -> Array:
        """Return (K_x + nλI)⁻¹ V for V (n, r)."""
        return self.vectors_ @ (self.inverse(alpha)[:, None] * (self.vectors_.T @ V))

    def rotated(self, X: Samples) -> Array:
        """Return k_x(x, X_fit) U, shape (len(X), n): times ``inverse(alpha)`` and Uᵀ it is α(x)."""
        return block(self.kernel, X, self.X_fit_, "input_kernel") @ self.vectors_

    def leave_one_out(self, V: Array, alphas: Any) -> Array:
        """Return the squared leave-one-out errors |vᵢ − ĥ₋ᵢ(xᵢ)|² for each λ, shape (len(alphas), n).

        ĥ₋ᵢ is the regression without pair i and with the same ridge nλ. In closed form its error is (WV)ᵢ / Wᵢᵢ with
        W = (K_x + nλI)⁻¹: no refit. With V = Ψ(Y), output coordinates, it is the error in the output space. Cost: n²r
        flops once and nr·n a λ.
        """
        if V.ndim != 2 or len(V) != len(self.spectrum_):
            raise ValueError(f"V must be (n, r) with n = {len(self.spectrum_)}, as fitted; got shape {tuple(V.shape)}.")
        alphas = [validation.check_positive(alpha, "each value of alphas") for alpha in alphas]
        rotated = self.vectors_.T @ asarray(V)  # (n, r)
        errors = np.empty((len(alphas), len(V)))
        for row, alpha in zip(errors, alphas, strict=True):
            residual = self.leave_one_out_residuals(rotated, alpha)
            row[:] = to_host(row_products(residual, residual))
        return errors

    def leave_one_out_residuals(self, rotated: Array, alpha: float) -> Array:
        """Return vᵢ − ĥ₋ᵢ(xᵢ) = (WV)ᵢ / Wᵢᵢ for one λ, shape (n, r), from UᵀV."""
        inverse = self.inverse(alpha)
        return (self.vectors_ @ (inverse[:, None] * rotated)) / (self.vectors_**2 @ inverse)[:, None]
