"""The weights of labels for each size of a set.

Let G*z = Σ_l β_l ψ(s_l) with β = basis·z, and let the kernel have the form of :mod:`.size_forms`. Then for a set y of
size s

    ⟨G*z, ψ(y)⟩ = Σ_l β_l k(y, s_l) = Σ_{j∈y} w_s,j + e_s,
    w_s = Σ_t weight(s, t) A_t,    A_t = Σ_{l: |s_l|=t} β_l s_l ∈ R^L,
    e_s = Σ_t constant(s, t) B_t,  B_t = Σ_{l: |s_l|=t} β_l,

where t are the T sizes of landmarks: the weights of all sizes s are combinations of T vectors. For Dice, weight(s, t) =
2/(s + t), and e_s is 0 except for the empty set, where it is the total of β over empty landmarks. A separable kernel
needs one vector Σ_l u(|s_l|) β_l s_l.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, array_namespace, is_tensor, to_device, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.size_forms import SizeForm

Summation = Callable[[Any], tuple[Any, Array]]  # of β (b, r): A (T, b, L) and B (T, b)


@dataclass(frozen=True)
class SizeWeights:
    """The weights of labels as functions of β and of the size of a set."""

    form: SizeForm
    landmarks: Any  # CSR (r, L), zeros and ones

    @property
    def n_labels(self) -> int:
        """The number L of labels."""
        return int(self.landmarks.shape[1])

    @property
    def n_vectors(self) -> int:
        """The number of vectors that the weights are combined of: T, or 1 for separable kernels."""
        return 1 if self.form.separable else len(self._sizes)

    @cached_property
    def _landmark_sizes(self) -> Index:
        return np.diff(self.landmarks.indptr)

    @cached_property
    def _sizes(self) -> Index:
        """The sizes t of landmarks, (T,), ascending; 0 if there is no landmark."""
        return np.unique(self._landmark_sizes) if len(self._landmark_sizes) else np.zeros(1, dtype=np.intp)

    @cached_property
    def _dense_summations(self) -> dict[Any, Summation]:
        """The functions of :meth:`summation` by device; they keep arrays there, which the steps of a path share."""
        return {}

    @cached_property
    def _sums(self) -> Any:
        """The CSR matrix (T·L, r), or (L, r), that maps β to the vectors A_t one after the other."""
        entries = self.landmarks.tocoo()
        if self.form.separable:
            values = self.form.weight(np.ones(1), self._landmark_sizes)[entries.row]
            return sparse.csr_matrix((values, (entries.col, entries.row)), shape=self.landmarks.T.shape)
        place = np.searchsorted(self._sizes, self._landmark_sizes)[entries.row].astype(np.intp)
        shape = (self.n_vectors * self.n_labels, self.landmarks.shape[0])
        return sparse.csr_matrix((entries.data, (place * self.n_labels + entries.col, entries.row)), shape=shape)

    @cached_property
    def _totals(self) -> Any:
        """The CSR matrix (T, r), or (1, r), that maps β to B_t."""
        n = len(self._landmark_sizes)
        place = np.searchsorted(self._sizes, self._landmark_sizes) * (not self.form.separable)
        return sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(self.n_vectors, n))

    def coefficients(self, sizes: Index) -> Array:
        """Return the coefficients of the vectors for sets of these sizes, (S, T)."""
        if self.form.separable:
            one = np.ones(1)
            return (self.form.weight(sizes, one) / self.form.weight(one, one))[:, None]
        return self.form.weight(sizes[:, None], self._sizes)

    def constants(self, sizes: Index, totals: Array) -> Array:
        """Return e_s of each query for these sizes, (b, S), from B (T, b)."""
        if self.form.separable:
            return np.zeros((totals.shape[1], len(sizes)))
        return (self.form.constant(sizes[:, None], self._sizes) @ totals).T

    def summation(self, compute: Compute) -> Summation:
        """Return the function of coefficients β (b, r) whose result is A, (T, b, L) on the device, and B, (T, b).

        Cost per query: the nonzeros of the landmarks; on a device, where they are dense, 2·r·L flops.
        """
        if compute.device is not None:
            if compute.device not in self._dense_summations:
                self._dense_summations[compute.device] = self._dense_summation(compute)
            return self._dense_summations[compute.device]

        def sums(beta: Array) -> tuple[Array, Array]:
            vectors = np.asarray(self._sums @ beta.T).reshape(self.n_vectors, self.n_labels, len(beta))
            return np.ascontiguousarray(vectors.transpose(0, 2, 1)), np.asarray(self._totals @ beta.T)

        return sums

    def _dense_summation(self, compute: Compute) -> Summation:
        """Return the same function for tensors, as products of dense ones."""
        groups = [np.flatnonzero(self._landmark_sizes == size) for size in self._sizes]
        rows = self.landmarks
        if self.form.separable:
            groups = [np.arange(len(self._landmark_sizes))]
            rows = sparse.diags(self.form.weight(np.ones(1), self._landmark_sizes)) @ rows
        dense = [compute.asarray(rows[members].toarray()) for members in groups]
        columns = [compute.asarray(members) for members in groups]

        def sums(beta: Any) -> tuple[Any, Array]:
            xp = array_namespace(beta)
            parts = [xp.take(beta, members, axis=1) @ part for members, part in zip(columns, dense, strict=True)]
            return xp.stack(parts), np.asarray(self._totals @ to_numpy(beta).T)

        return sums

    def weights(self, vectors: Any, sizes: Index) -> Any:
        """Return w_s of each query for these sizes, (S, b, L), from A (T, b, L)."""
        coefficients = to_device_of(vectors, self.coefficients(sizes))
        return (coefficients @ vectors.reshape(len(vectors), -1)).reshape(len(sizes), *vectors.shape[1:])

    def weights_of_each(self, vectors: Any, sizes: Index) -> Any:
        """Return w_s of each query for its own size, (b, L), from A (T, b, L) and sizes (b,)."""
        coefficients = to_device_of(vectors, self.coefficients(sizes))
        return array_namespace(vectors).einsum("bt,tbl->bl", coefficients, vectors)


def to_device_of(vectors: Any, values: Any) -> Any:
    """Return an array as a tensor on the device of the vectors, if these are one."""
    return to_device(values, vectors.device) if is_tensor(vectors) else values
