"""Kernel ridge regression in the span of landmarks (Nyström), in one streaming pass over the inputs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from psilearn._backend import (
    array_namespace,
    asarray,
    computing_blocks,
    cut,
    moved_bytes,
    require_bytes,
    stream,
    working_dtype,
    zeros,
)
from psilearn._linalg import Array, NotPositiveSemidefiniteError, shifted_factor, solve_lower, solve_transposed
from psilearn._linalg.moments import GramSum, MixedMoment
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels.blocks import diagonal
from psilearn.kernels.kernel import Kernel
from psilearn.landmarks import LandmarkFeatures, Landmarks
from psilearn.regression.kernel_regression import KernelRegression, Targets

BLOCK_ROWS = 4096  # inputs that are taken together at the most


class NystromRidge:
    """ĥ(x) = Bᵀφ(x) with φ(x) = L⁻¹k_x(S, x), LLᵀ = k_x(S, S), for q landmark inputs S.

    B = (ΦᵀΦ + nλI)⁻¹ΦᵀV minimises 1/n Σ|vᵢ − ĥ(xᵢ)|² + λ|ĥ|² over the functions that the landmarks span; with S = X
    that is exact kernel ridge regression. Working with φ and not with k_x(S, x) itself keeps the condition of the
    system at 1 + |K_x|/nλ, as in the exact problem, instead of its square.

    Cost: n·q kernel values, n·q² + n·q² + q³ flops (solution with L, Gram matrix, two Cholesky factors) and 2nqr for r
    targets. Memory: L and ΦᵀΦ, 2q² float64 numbers, with float32 blocks as many float32 numbers beside them, 3qr for
    the targets, and blocks within ``working_memory``: nothing of size n·q.

    Parameters
    ----------
    kernel : Kernel
        k_x, fitted where it takes a width from data.
    alpha : float
        λ > 0.
    landmarks : Landmarks
    """

    def __init__(self, kernel: Kernel, alpha: float, landmarks: Landmarks) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.landmarks = landmarks

    def fit(self, X: Samples) -> Self:
        """Choose the landmarks and factor k_x(S, S)."""
        self.X_fit_ = X
        chosen = self.landmarks.choose(self.kernel, X, self.alpha, "input_kernel")
        self.features_ = LandmarkFeatures.of(self.kernel, take(X, chosen), "input_kernel")
        self.landmarks_ = self.features_.landmarks
        return self

    def regress(self, V: Targets, with_moment: bool = True) -> KernelRegression:
        """Regress onto the targets V (n, r), which are asked for in blocks of rows."""
        n, q = n_samples(self.X_fit_), self.features_.rank
        size = working_dtype().itemsize
        require_bytes(
            (16 if size == 4 else 8) * q * q + 40 * q * V.shape[1],
            f"Nyström regression with {q} landmarks onto {V.shape[1]} output coordinates",
            "Lower input_landmarks or output_landmarks.",
        )
        gram, cross = GramSum(q), zeros((q, V.shape[1]))
        features = self.features_.placed()

        def work(X: Samples) -> tuple[Any, float]:
            phi = features.columns(X, "input_kernel")  # (q, b)
            return phi, float(np.sum(diagonal(self.kernel, X, "input_kernel")))

        per_row = (3 * q + 2 * V.shape[1]) * size + moved_bytes(self.X_fit_)
        blocks = list(computing_blocks(n, per_row, BLOCK_ROWS))
        total = 0.0
        parts = cut(self.X_fit_, track(blocks, "regression", len(blocks)))
        for rows, (phi, lengths) in stream(parts, work, self.kernel._on_device):
            gram.add(phi)
            cross += phi @ asarray(V[rows], working_dtype())
            total += lengths
        captured = gram.trace()
        error = max(0.0, 1 - captured / total) if total else 0.0
        D, B = self._solve(gram, cross)
        moment = MixedMoment(((D, 1 / n), (B, -self.alpha))) if with_moment else None
        return KernelRegression(self.kernel, B, self.features_.triangle, self.landmarks_, moment, error)

    def _solve(self, gram: GramSum, cross: Array) -> tuple[Array, Array]:
        """Solve with RRᵀ = ΦᵀΦ + nλI: D = R⁻¹ΦᵀV, B = R⁻ᵀD.

        The moment of the fitted values needs no second pass over the inputs: Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ = BᵀΦᵀΦB = DᵀD − nλBᵀB.
        """
        if not len(cross):
            return cross, cross
        R = shifted_factor(gram.lower, n_samples(self.X_fit_) * self.alpha)
        if R is None:
            raise NotPositiveSemidefiniteError(
                f"alpha={self.alpha:g} is below the rounding errors of input_kernel = {self.kernel!r} over "
                f"{n_samples(self.X_fit_)} inputs: ΦᵀΦ + n·alpha·I has no Cholesky factor. Raise alpha, or use "
                f"dtype='float64'."
            )
        D = solve_lower(R, array_namespace(cross).asarray(cross.T, copy=True).T)  # of an array, in Fortran order
        return D, solve_transposed(R, D)
