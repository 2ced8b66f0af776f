"""A finite output embedding g(y) = Gψ(y)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psilearn._backend import asarray, computing_blocks, cut, moved_bytes, stream, to_host, working_dtype, zeros
from psilearn._linalg import Array
from psilearn._utils.hashing import digest, encode
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels.blocks import block, resident
from psilearn.kernels.kernel import Kernel

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

        In NumPy, wherever it was computed. Cost: r kernel values and 2·r·p flops an output; memory: ``working_memory``
        and the answer.
        """
        g = np.empty((n_samples(Y), self.n_components), dtype=working_dtype())
        blocks = list(computing_blocks(len(g), self.bytes_per_output + moved_bytes(Y), BLOCK_ROWS))
        parts = cut(Y, track(blocks, "embedding of outputs", len(blocks)))
        for rows, some in stream(parts, self.placed(), self.kernel._on_device):
            g[rows] = to_host(some)
        return g

    @property
    def bytes_per_output(self) -> int:
        """What a block takes for each output: kernel values and g."""
        return working_dtype().itemsize * (len(self.basis) + self.n_components)

    def placed(self) -> Callable[[Samples], Array]:
        """Return y ↦ g(y) for single blocks, with landmarks and basis where the work is done, and the answer there."""
        landmarks, basis = resident(self.kernel, self.landmarks), asarray(self.basis, working_dtype())

        def embed(Y: Samples) -> Array:
            if not len(basis):
                return zeros((n_samples(Y), self.n_components), working_dtype())
            return block(self.kernel, Y, landmarks, "output_kernel") @ basis

        return embed

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the kernel (its class, parameters and fitted values), the landmarks and the basis.

        Of a function k(a, b) only the name counts, and of an object without known contents only its class: the basis,
        which depends on every kernel value of the landmarks, tells two such embeddings apart.
        """
        parts = encode(self.kernel, strict=False), digest(self.landmarks, False), digest(self.basis, False)
        return hashlib.sha256(b"".join(parts)).hexdigest()
