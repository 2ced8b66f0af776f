"""The weights of labels for each size of a set.

Let G*z = Σ_l β_l ψ(s_l) with β = basis·z, and let the kernel have a :class:`SizeForm`. Then for a set y of
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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, array_namespace, is_tensor, to_device, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.label_sets.set_limits import SetLimits
from psilearn.kernels import Dice, Kernel, Linear, Normalized, Scaled, Sum

Summation = Callable[[Any], tuple[Any, Array]]  # of β (b, r): A (T, b, L) and B (T, b)
SizeFunction = Callable[[Any, Any], Array]  # of sizes |y| and |s| that broadcast


# Kernels on label sets that depend on the common labels linearly once both sizes are known.
#
# Such a kernel is k(y, s) = weight(|y|, |s|)·|y∩s| + constant(|y|, |s|):
#
# - Dice: weight 2/(|y| + |s|), and constant 1 for two empty sets;
# - Linear: weight 1. The squared distance |y − s|² of 0/1 rows is their Hamming distance;
# - Normalized(Linear), the cosine: weight 1/√(|y||s|).
#
# Multiples, sums and normalizations of such kernels are of this form too. Tanimoto and Gaussian kernels are not.
@dataclass(frozen=True)
class SizeForm:
    """k(y, s) = weight(|y|, |s|)·|y∩s| + constant(|y|, |s|).

    If the form is *separable*, the constant is 0 and weight(|y|, |s|) is a product f(|y|)·u(|s|): then the order of the
    labels by their total weight is the same for every |y|.
    """

    weight: SizeFunction
    constant: SizeFunction
    separable: bool = False

    def squared_norms(self, sizes: Array) -> Array:
        """Return k(y, y) of sets of these sizes."""
        return self.weight(sizes, sizes) * sizes + self.constant(sizes, sizes)


def find_size_form(kernel: Kernel) -> SizeForm | None:
    """Return the form of a kernel, or None if it has none. Subclasses may differ from their base and have none."""
    simple = SIMPLE_FORMS.get(type(kernel))
    if simple is not None:
        return simple
    if type(kernel) is Scaled:
        return _scaled(find_size_form(kernel.kernel), float(kernel.scale))
    if type(kernel) is Normalized:
        return _normalized(find_size_form(kernel.kernel))
    if type(kernel) is Sum:
        return _sum(find_size_form(kernel.left), find_size_form(kernel.right))
    return None


def _zero(size: Array, other: Array) -> Array:
    return np.zeros(np.broadcast_shapes(np.shape(size), np.shape(other)))


def _one(size: Array, other: Array) -> Array:
    return 1.0 + _zero(size, other)


def _dice_weight(size: Array, other: Array) -> Array:
    return 2.0 / np.maximum(np.add(size, other), 1)


def _both_empty(size: Array, other: Array) -> Array:
    return (np.add(size, other) == 0).astype(np.float64)


SIMPLE_FORMS: dict[Any, SizeForm] = {
    Dice: SizeForm(_dice_weight, _both_empty),
    Linear: SizeForm(_one, _zero, separable=True),
}


def _scaled(form: SizeForm | None, scale: float) -> SizeForm | None:
    if form is None:
        return None
    inner = form
    return SizeForm(
        lambda size, other: scale * inner.weight(size, other),
        lambda size, other: scale * inner.constant(size, other),
        form.separable,
    )


def _normalized(form: SizeForm | None) -> SizeForm | None:
    if form is None:
        return None
    inner = form

    def inverse_length(sizes: Array) -> Array:
        norms = inner.squared_norms(np.asarray(sizes, dtype=np.float64))
        return np.where(norms > 0, 1 / np.sqrt(np.where(norms > 0, norms, 1)), 0.0)

    return SizeForm(
        lambda size, other: inner.weight(size, other) * inverse_length(size) * inverse_length(other),
        lambda size, other: inner.constant(size, other) * inverse_length(size) * inverse_length(other),
        form.separable,
    )


def _sum(left: SizeForm | None, right: SizeForm | None) -> SizeForm | None:
    if left is None or right is None:
        return None
    first, second = left, right
    return SizeForm(
        lambda size, other: first.weight(size, other) + second.weight(size, other),
        lambda size, other: first.constant(size, other) + second.constant(size, other),
    )


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


def top_sums(W: Any, n: int) -> Array:
    """Return the total of the n largest entries of each row of W (b, c)."""
    if n == 0:
        return np.zeros(len(W))
    if is_tensor(W):
        return to_numpy(W.topk(n, 1, sorted=False).values.sum(1))
    c = W.shape[1]
    return np.asarray((W if n == c else np.partition(W, c - n, axis=1)[:, c - n :]).sum(axis=1))


def nth_largest(W: Any, n: int) -> Array:
    """Return the n-th largest entry of each row of W (b, c), counted from 1."""
    if is_tensor(W):
        return to_numpy(W.topk(n, 1).values[:, -1])
    return np.partition(W, W.shape[1] - n, axis=1)[:, W.shape[1] - n]


def largest_first(W: Any) -> Array:
    """Return the sorted entries of each row of W (b, c), largest first."""
    if is_tensor(W):
        return to_numpy(W.sort(1, descending=True).values)
    return np.sort(W, axis=1)[:, ::-1]


def largest_columns(values: Any, n: int) -> Any:
    """Return the columns of the n largest entries of each row, (b, n), ascending."""
    if is_tensor(values):
        return values.topk(n, 1).indices.sort(1).values
    return np.sort(np.argpartition(values, values.shape[1] - n, axis=1)[:, values.shape[1] - n :], axis=1)


@dataclass(frozen=True)
class SizeQueries:
    """A block of b predictions."""

    weights: SizeWeights
    limits: SetLimits
    vectors: Any  # (T, b, L)  A, on the device
    totals: Array  # (T, b)  B
    squared: Array  # (b,)  |z|²
    tolerance: float  # of ties, as a part of |z|² + k(y, y)

    def __len__(self) -> int:
        return len(self.squared)

    def take(self, rows: Index) -> SizeQueries:
        """Return some of the queries."""
        if len(rows) == len(self):
            return self
        vectors = (
            self.vectors[:, to_device_of(self.vectors, rows)] if is_tensor(self.vectors) else self.vectors.take(rows, 1)
        )
        return replace(self, vectors=vectors, totals=self.totals[:, rows], squared=self.squared[rows])

    def norms(self, sizes: Index) -> Array:
        """Return k(y, y) for these sizes, (S,)."""
        return self.weights.form.squared_norms(sizes.astype(np.float64))

    def slack(self, sizes: Index) -> Array:
        """Return by how much equal distances of sets of these sizes may differ, (b, S)."""
        return self.tolerance * (self.squared[:, None] + self.norms(sizes))

    def distances(self, scores: Array, sizes: Index) -> Array:
        """Return the squared distances (b, S) of sets with these totals of weights (b, S); 0 may become negative.

        One size may stand for all columns.
        """
        scores = scores + self.weights.constants(sizes, self.totals)
        return np.asarray(self.squared[:, None] - 2 * scores + self.norms(sizes))

    @cached_property
    def magnitudes(self) -> Any:
        """|A|, (T, b, L)."""
        return abs(self.vectors)
