"""The exact output side without coordinates: the Gram matrix itself, as in Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import Compute, array_namespace, take_rows, to_numpy
from psilearn._linalg import (
    INDEFINITE,
    Array,
    MixedGram,
    Moment,
    NotPositiveSemidefiniteError,
    Subspace,
    row_products,
)
from psilearn.embedding.coordinates import KnownOutputs, output_gram
from psilearn.embedding.embedding import Embedding
from psilearn.kernels import Kernel


class GramOutputs:
    """All distinct outputs yⱼ as the coordinates eⱼ, with the inner product of their Gram matrix K.

    The directions are those of :class:`ExactOutputs`, without a factorization of K: d² kernel values and, for p
    directions, about 2d² flops for each of 10 to 12 products with p vectors. This is the faster exact method if the
    rank of K is near d and p is a small share of it. Targets of the regression are indicators of the labeled outputs,
    so the regression must be linear in them.
    """

    approximation_error = 0.0

    def __init__(self, kernel: Kernel, known: KnownOutputs, compute: Compute) -> None:
        self.kernel, self.compute = kernel, compute
        self.known = known
        self.outputs = known.outputs
        self.K = output_gram(kernel, known.outputs, compute)  # (d, d)

    @property
    def labeled(self) -> Array:
        """The indicators of the labeled outputs, (n, l)."""
        return take_rows(self.compute.eye(self.known.n_labeled), self.known.labeled)

    @property
    def rank(self) -> int:
        """The number d of coordinates."""
        return len(self.K)

    def leading_directions(
        self, supervised: Moment | None, supervision: float, n_components: int | None, compute: Compute
    ) -> Subspace:
        """Return the leading directions of M_c as coefficients of the outputs (d, p), and their values there."""
        mixed = MixedGram.of(self.K, supervised, self.known.frequencies, supervision, compute)
        subspace = mixed.top(self.rank if n_components is None else n_components, compute)
        self._check_residuals(subspace.values)
        return subspace

    def rotation(self, subspace: Subspace) -> Array | None:
        """Return g of the distinct labeled outputs, (l, p): the map from indicators to the embedding."""
        assert subspace.values is not None
        return subspace.values[: self.known.n_labeled]

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀk(D, y)."""
        return Embedding(self.kernel, self.outputs, to_numpy(np.eye(self.rank) if V is None else V))

    def embed_known(self, subspace: Subspace, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p), as a NumPy array."""
        del embedding  # the values are known
        return to_numpy(subspace.values).astype(self.compute.dtype, copy=False)

    def for_partial_fit(self) -> None:
        """Return None: every output is stored, and a fit is exact."""

    def _check_residuals(self, values: Any) -> None:
        """Raise if some |g(y)|² exceeds k(y, y), which is impossible for a positive semi-definite kernel."""
        diagonal = array_namespace(self.K).linalg.diagonal(self.K)
        excess = float((row_products(values, values) - diagonal).max())
        if excess > INDEFINITE * float(diagonal.max()):
            raise NotPositiveSemidefiniteError(
                f"output_kernel = {self.kernel!r} is not positive semi-definite on the outputs: the squared length of "
                f"a projection of ψ(y) exceeds k(y, y) by {excess:.3g}."
            )
