"""A finite output embedding g(y) = Gψ(y)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psilearn._backend import Compute, current_compute, row_blocks, stream, to_numpy
from psilearn._linalg import Array
from psilearn._utils.hashing import digest, encode
from psilearn._utils.progress import step, track
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels import Kernel

MAX_EMBEDDED_ROWS = 8192  # outputs that are embedded at a time


@dataclass(frozen=True)
class Embedding:
    """The map g(y) = basisᵀ k(landmarks, y) ∈ Rᵖ, where G: ψ(y) ↦ g(y) has orthonormal rows, GG* = I.

    Then |G*z − ψ(y)|² = |z − g(y)|² + r(y)² with the residual r(y)² = k(y, y) − |g(y)|², for every z in Rᵖ.

    Parameters
    ----------
    kernel : Kernel
        The output kernel, fitted.
    landmarks : array, CSR matrix or sequence of r outputs
        Outputs whose span contains the embedding.
    basis : ndarray of shape (r, p)
        The coefficients.

    See Also
    --------
    psilearn.OEL : Learns an embedding, ``embedding_``.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> Embedding(Linear(), np.eye(2), np.eye(2))(np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """

    kernel: Kernel
    landmarks: Samples
    basis: Array

    @property
    def n_components(self) -> int:
        """The dimension p of the embedding."""
        return self.basis.shape[1]

    def __call__(self, Y: Samples, compute: Compute | None = None) -> Array:
        """Embed outputs, block by block.

        Cost: r kernel values and 2·r·p flops per output. Memory: ``working_memory`` and the result.

        Parameters
        ----------
        Y : array, CSR matrix or sequence of n outputs
            The outputs.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        ndarray of shape (n, p)
            The embedded outputs g(y), as a NumPy array of the requested precision.

        See Also
        --------
        psilearn.OEL.transform_outputs : The same for the outputs of a model.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> Embedding(Linear(), np.eye(2), np.eye(2)[:, :1])([[3.0, 4.0]])
        array([[3.]])
        """
        compute = current_compute(Y) if compute is None else compute
        Y = self.kernel.check(Y, "Y")
        g = np.empty((n_samples(Y), self.n_components), dtype=compute.dtype)
        bytes_per_output = self.bytes_per_output(compute) + compute.transfer_bytes(Y)
        blocks = list(compute.iter_blocks(len(g), bytes_per_output, MAX_EMBEDDED_ROWS))
        parts = row_blocks(Y, track(blocks, "embedding of outputs", len(blocks)))
        for rows, embedded in stream(parts, self.block_function(compute), compute, self.kernel.supports_torch):
            g[rows] = to_numpy(embedded)
            del embedded  # before the next block is computed
        return g

    def bytes_per_output(self, compute: Compute) -> int:
        """Return the memory of a block per output: kernel values and g.

        Parameters
        ----------
        compute : Compute
            Precision and device.

        Returns
        -------
        int
            Bytes.

        See Also
        --------
        psilearn.memory.predict_bytes : The memory of a prediction.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> Embedding(Linear(), np.eye(2), np.eye(2)).bytes_per_output(NUMPY)
        32
        """
        return compute.itemsize * (len(self.basis) + self.n_components)

    def block_function(self, compute: Compute) -> Callable[[Samples], Array]:
        """Return y ↦ g(y) for single blocks, with landmarks and basis on the device, and the result there.

        Parameters
        ----------
        compute : Compute
            Precision and device.

        Returns
        -------
        callable
            Takes a block of b outputs and returns an array of shape (b, p) on the device.

        See Also
        --------
        Embedding.__call__ : Embed a whole collection.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> Embedding(Linear(), np.eye(2), np.eye(2)).block_function(NUMPY)(np.array([[3.0, 4.0]]))
        array([[3., 4.]])
        """
        landmarks = self.kernel.to_device(self.landmarks, compute)
        basis = compute.asarray(self.basis, compute.dtype)

        def embed(Y: Samples) -> Array:
            if not len(basis):
                return compute.zeros((n_samples(Y), self.n_components), compute.dtype)
            with step("kernel values with landmarks"):
                K = self.kernel(Y, landmarks, compute=compute)
            with step("embedding of candidates"):
                return K @ basis

        return embed

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kernel (its class, parameters and fitted values), the landmarks and the basis.

        For a function k(a, b) only the name counts, and for an object without known contents only its class: the basis,
        which depends on every kernel value of the landmarks, distinguishes two such embeddings.
        """
        parts = encode(self.kernel, strict=False), digest(self.landmarks, False), digest(self.basis, False)
        return hashlib.sha256(b"".join(parts)).hexdigest()
