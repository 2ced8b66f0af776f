"""A finite output embedding g(y) = Gψ(y)."""

from dataclasses import dataclass

import numpy as np

from psilearn.backend import row_blocks
from psilearn.kernels.base import Kernel, block
from psilearn.linalg import Array
from psilearn.samples import Samples, n_samples, take


@dataclass(frozen=True)
class Embedding:
    """g(y) = basisᵀ k(landmarks, y) ∈ Rᵖ, where G: ψ(y) ↦ g(y) has orthonormal rows, GG* = I.

    Then |G*z − ψ(y)|² = |z − g(y)|² + r(y)² with the residual r(y)² = k(y, y) − |g(y)|², for every z in Rᵖ.
    """

    kernel: Kernel
    landmarks: Samples  # r outputs
    basis: Array  # (r, p)

    @property
    def n_components(self) -> int:
        """p, the dimension of the embedding."""
        return self.basis.shape[1]

    def __call__(self, Y: Samples) -> Array:
        """Return g(y) for each output, shape (len(Y), p); the block k(Y, landmarks) is streamed."""
        g = np.empty((n_samples(Y), self.n_components))
        for rows in row_blocks(len(g), 8 * len(self.basis)):
            g[rows] = (
                block(self.kernel, take(Y, rows), self.landmarks, "output_kernel") @ self.basis
                if len(self.basis)
                else 0.0
            )
        return g
