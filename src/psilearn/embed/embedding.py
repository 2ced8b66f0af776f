"""A finite output embedding g(y) = Gψ(y)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psilearn.backend import row_blocks, working_dtype
from psilearn.hashing import digest, encode
from psilearn.kernels.base import Kernel, block
from psilearn.linalg import Array
from psilearn.progress import track
from psilearn.samples import Samples, n_samples, take

BLOCK_ROWS = 8192  # outputs that are embedded together at the most


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
        """Return g(y) for each output, shape (len(Y), p), in the working precision; k(Y, landmarks) is streamed.

        Cost: r kernel values and 2·r·p flops an output; memory: ``working_memory`` and the answer.
        """
        dtype = working_dtype()
        g = np.zeros((n_samples(Y), self.n_components), dtype=dtype)
        if not len(self.basis):
            return g
        basis = self.basis.astype(dtype, copy=False)
        blocks = list(row_blocks(len(g), dtype.itemsize * len(basis), BLOCK_ROWS))
        for rows in track(blocks, "embedding of outputs", len(blocks)):
            K = block(self.kernel, take(Y, rows), self.landmarks, "output_kernel")
            np.matmul(K.astype(dtype, copy=False), basis, out=g[rows])
        return g

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the kernel (its class, parameters and fitted values), the landmarks and the basis.

        Of a function k(a, b) only the name counts, and of an object without known contents only its class: the basis,
        which depends on every kernel value of the landmarks, tells two such embeddings apart.
        """
        parts = encode(self.kernel, strict=False), digest(self.landmarks, False), digest(self.basis, False)
        return hashlib.sha256(b"".join(parts)).hexdigest()
