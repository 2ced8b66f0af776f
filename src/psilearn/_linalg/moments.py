"""Second moments Σ vvᵀ: summed over blocks, mixed, and their leading eigenvectors, also from a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from psilearn._backend import NUMPY, Compute, array_namespace, is_tensor, iter_slices, to_fortran, to_numpy
from psilearn._linalg.array_ops import Array
from psilearn._linalg.cholesky import NotPositiveSemidefiniteError, shifted_factor, solve_lower
from psilearn._linalg.eigen import top_eigh
from psilearn._linalg.split_products import add_lower_gram
from psilearn._utils.progress import stage

MIN_BLOCK_ROWS = 512  # rows that are weighted at a time


class Subspace(NamedTuple):
    """Orthonormal directions in output coordinates, and the eigenvalue of each of them."""

    eigenvalues: Array  # (p,)  descending
    directions: Array | None  # (r, p); None keeps all r coordinates
    values: Array | None = None  # (d, p)  of the directions at the outputs whose coefficients they are, if they are


@dataclass(frozen=True)
class Moment:
    """M = Σₖ Sₖᵀ diag(wₖ) Sₖ + matrix, a second moment given as weighted sets of rows and a matrix.

    The matrix (r, r) is formed only by :meth:`to_matrix`: products and eigenvectors use the rows.
    """

    parts: tuple[tuple[Array, Array | float], ...] = ()  # pairs of rows (s, r) and weights (s,), or one weight
    matrix: Array | None = None  # (r, r)

    @property
    def size(self) -> int:
        """r, the number of coordinates."""
        return self.parts[0][0].shape[1] if self.matrix is None else len(self.matrix)

    def __rmul__(self, factor: float) -> Moment:
        parts = tuple((rows, factor * weights) for rows, weights in self.parts)
        return Moment(parts, None if self.matrix is None else factor * self.matrix)

    def __add__(self, other: Moment) -> Moment:
        matrices = [moment.matrix for moment in (self, other) if moment.matrix is not None]
        return Moment(self.parts + other.parts, sum(matrices[1:], start=matrices[0]) if matrices else None)

    def __matmul__(self, V: Array) -> Array:
        product = array_namespace(V).zeros_like(V) if self.matrix is None else self.matrix @ V
        for rows, weights in self.parts:
            weighted = rows @ V
            weighted *= weights if isinstance(weights, float) else weights[:, None]
            product += rows.T @ weighted
        return product

    def to_device(self, compute: Compute) -> Moment:
        """Return the same moment with its arrays on the device."""
        return self if compute.device is None else self._map(compute.asarray)

    def to_numpy(self) -> Moment:
        """Return the same moment with NumPy arrays."""
        return self._map(to_numpy)

    def as_matrix(self) -> Moment:
        """Return the same moment as one matrix, r² numbers."""
        return Moment(matrix=self.to_matrix())

    def to_matrix(self) -> Array:
        """Return M as a new matrix, (r, r); of NumPy arrays with one block of rows in addition."""
        if self.matrix is None and isinstance(self.parts[0][0], np.ndarray):
            return weighted_gram(self.parts)
        if is_tensor(self.parts[0][0] if self.matrix is None else self.matrix):
            return _sum_of_tensors(self.parts, self.matrix)
        return sum(((rows.T * weights) @ rows for rows, weights in self.parts), start=1.0 * self.matrix)

    def _dense(self) -> Array:
        """Return M as a matrix that must not be changed."""
        return self.to_matrix() if self.matrix is None or self.parts else self.matrix

    def plus(self, factor: float, other: Moment) -> Moment:
        """Return self + factor·other; the matrix of ``self`` is overwritten."""
        if self.matrix is None or other.matrix is None:
            return self + factor * other
        self.matrix[...] += factor * other.matrix
        return Moment(self.parts + (factor * Moment(other.parts)).parts, self.matrix)

    def top(self, n_components: int | None, compute: Compute = NUMPY) -> Subspace:
        """Return the leading eigenvectors, at most ``n_components`` and at most the rank of M."""
        wanted = self.size if n_components is None else min(n_components, self.size)
        if wanted == 0:
            return Subspace(np.empty(0), compute.zeros((self.size, 0)))
        moment = self.to_device(compute)
        with stage(f"{wanted:,} leading directions of {self.size:,}"):
            eigenvalues, directions = top_eigh(moment.__matmul__, self.size, wanted, compute, moment._dense)
        eigenvalues = to_numpy(eigenvalues)
        rank = int(np.sum(eigenvalues > self.size * np.finfo(float).eps * eigenvalues[0]))
        return Subspace(eigenvalues[:rank], directions[:, :rank])

    def _map(self, convert: Callable[[Any], Any]) -> Moment:
        parts = tuple((convert(rows), w if isinstance(w, float) else convert(w)) for rows, w in self.parts)
        return Moment(parts, None if self.matrix is None else convert(self.matrix))


def _sum_of_tensors(parts: Any, matrix: Any) -> Any:
    """Return Σ Sᵀ diag(w) S + matrix for tensors, with half of the flops of products; weights of rows are ≥ 0."""
    size = parts[0][0].shape[1] if matrix is None else len(matrix)
    total = parts[0][0].new_zeros((size, size)) if matrix is None else matrix.clone()
    for rows, weights in parts:
        if isinstance(weights, float):
            add_lower_gram(total, rows.T, weights)
        else:
            add_lower_gram(total, rows.T * weights.sqrt())
    return total.tril() + total.tril(-1).T


def mixing_weights(supervision: float) -> tuple[float, float]:
    """Return the weights (c, 1 − c) of the supervised and of the unsupervised moment in OEL's M_c."""
    return float(supervision), 1 - float(supervision)


def mixed_moment(
    supervised: Moment | None, unsupervised: Callable[[], Moment], supervision: float, compute: Compute
) -> Moment:
    """Return M_c = c·supervised + (1−c)·unsupervised, the moment whose leading eigenvectors span OEL's embedding.

    The paper's M_c = c/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ + (1−c)/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ. A moment with weight zero is not computed, and the
    supervised one may be None if c = 0.
    """
    weight, other_weight = mixing_weights(supervision)
    if weight == 0 or supervised is None:
        return unsupervised().to_device(compute)
    mixed = weight * supervised.to_device(compute)
    return mixed if other_weight == 0 else mixed.plus(other_weight, unsupervised().to_device(compute))


def weighted_gram(parts: tuple[tuple[Array, Array | float], ...]) -> Array:
    """Return Σ Sᵀ diag(w) S over pairs of rows S (s, r) and weights w ≥ 0, or one weight of any sign.

    Half of the flops of a product, in place on one (r, r) array.
    """
    size = parts[0][0].shape[1]
    total = np.zeros((size, size), order="F")
    for rows, weights in parts if size else ():
        if not len(rows):
            continue
        if isinstance(weights, float):
            is_fortran = rows.flags.f_contiguous
            F = rows if is_fortran else rows.T
            total = dsyrk(weights, F, beta=1.0, c=total, trans=int(is_fortran), lower=1, overwrite_c=1)
            continue
        for part in iter_slices(len(rows), max(MIN_BLOCK_ROWS, size // 8)):
            scaled = np.ascontiguousarray(rows[part] * np.sqrt(weights[part])[:, None])
            total = dsyrk(1.0, scaled.T, beta=1.0, c=total, lower=1, overwrite_c=1)
    for column in range(1, size):
        total[:column, column] = total[column, :column]
    return total


class GramSum:
    """Σ F Fᵀ over blocks F (r, b) of columns, summed in float64, with half of the flops of a product.

    It stores r² numbers, and r² float32 numbers more if blocks are float32. The product of one block is then computed
    in single precision, but the products are summed in float64, so that the error does not grow with their number.
    """

    def __init__(self, size: int, compute: Compute = NUMPY) -> None:
        self.compute = compute
        # Only the lower triangle is summed; a tensor has other numbers above its diagonal.
        self.lower: Any = np.zeros((size, size), order="F") if compute.device is None else compute.zeros((size, size))
        self._block_sum: Any = None

    @classmethod
    def of(cls, lower: Array) -> GramSum:
        """Return the sum whose lower triangle is given, as a NumPy array."""
        total = cls(0)
        total.lower = lower
        return total

    def add(self, F: Any) -> None:
        """Add the product of one block (r, b): an array in Fortran order, a tensor or a split matrix."""
        if 0 in F.shape:
            return
        if not isinstance(F, np.ndarray):
            add_lower_gram(self.lower, F)
        elif F.dtype == np.float32:
            self._block_sum = ssyrk(1.0, F, c=self._block_sum, lower=1, overwrite_c=1)
            self.lower += self._block_sum
        else:
            self.lower = dsyrk(1.0, F, beta=1.0, c=self.lower, lower=1, overwrite_c=1)

    def merge(self, other: GramSum) -> None:
        """Add another sum, on this device or in NumPy."""
        self.lower += self.compute.asarray(other.lower)

    def to_numpy(self) -> GramSum:
        """Return the same sum as a NumPy array."""
        converted = copy(self)
        converted.compute = self.compute.on_numpy()
        if is_tensor(self.lower):
            converted.lower = to_fortran(self.lower.tril())
        return converted

    def trace(self) -> Any:
        """Return Σ |F|², a number or a 0-dimensional tensor."""
        return array_namespace(self.lower).linalg.trace(self.lower)

    def symmetric(self) -> Array:
        """Return the whole matrix, (r, r), as a new array."""
        if is_tensor(self.lower):
            return self.lower.tril() + self.lower.tril(-1).T
        whole = self.lower + self.lower.T
        whole.flat[:: len(whole) + 1] /= 2
        return whole


@dataclass(frozen=True)
class MixedGram:
    """T = WᵀKW for a moment M = Ψᵀ WWᵀ Ψ, where K = ΨΨᵀ is the Gram matrix of d outputs.

    If u is an eigenvector of T with eigenvalue μ, then ΨᵀWu/√μ is a unit eigenvector of M with the same eigenvalue.
    Neither Ψ nor T is formed: a product with T takes 2d² flops per vector, half of those of a product with M in d
    coordinates, and no factorization of K is needed.
    """

    K: Array  # (d, d)
    rows: Array | None  # (s, l)  ĥ(xᵢ)·√(c/n) as combinations of the first l outputs; None for c = 0
    scales: Array  # (d − first,)  √((1−c)·frequency) of the other points, outputs ``first`` and later

    @classmethod
    def of(cls, K: Array, supervised: Moment | None, frequencies: Array, supervision: float, compute: Compute) -> Any:
        """Return T for M_c = c·supervised + (1−c)·Σⱼ frequencyⱼ ψ(yⱼ)ψ(yⱼ)ᵀ.

        ``supervised`` has one set of rows: combinations of the first outputs, with one weight. ``frequencies`` (d,) is
        a NumPy array.
        """
        weight, other_weight = mixing_weights(supervision)
        first = int(np.flatnonzero(frequencies)[0])
        scales = compute.asarray(np.sqrt(other_weight * frequencies[first:]))
        if weight == 0 or supervised is None:
            return cls(K, None, scales)
        ((rows, row_weight),) = supervised.to_device(compute).parts
        return cls(K, rows * float(np.sqrt(weight * row_weight)), scales)

    @property
    def size(self) -> int:
        """The order of T."""
        return self._n_rows + len(self.scales)

    @property
    def _n_rows(self) -> int:
        return 0 if self.rows is None else len(self.rows)

    def __matmul__(self, U: Array) -> Array:
        P = self._multiply(self.combine(U))
        others = self.scales[:, None] * P[len(P) - len(self.scales) :]
        if self.rows is None:
            return others
        supervised = self.rows @ P[: self.rows.shape[1]]
        return array_namespace(P).concat([supervised, others], axis=0)

    def combine(self, U: Array) -> Array:
        """Return WU, coefficients of the d outputs."""
        xp = array_namespace(U)
        combined = xp.zeros((len(self.K), U.shape[1]), dtype=U.dtype, device=U.device)
        combined[len(self.K) - len(self.scales) :] = self.scales[:, None] * U[self._n_rows :]
        if self.rows is not None:
            combined[: self.rows.shape[1]] += self.rows.T @ U[: self._n_rows]
        return combined

    def top(self, n_components: int, compute: Compute) -> Subspace:
        """Return the leading directions of M as coefficients of the outputs, and their values at the outputs."""
        wanted = min(n_components, self.size)
        with stage(f"{wanted:,} leading directions of {self.size:,} points"):
            found, U = top_eigh(self.__matmul__, self.size, wanted, compute)
        eigenvalues = to_numpy(found)
        rank = int(np.sum(eigenvalues > self.size * np.finfo(float).eps * eigenvalues[0]))
        basis = self.combine(U[:, :rank] / found[:rank] ** 0.5)
        values = self._multiply(basis)
        # GG* = basisᵀ K basis is the identity up to the residual of U; the leading directions are kept as they are.
        L = shifted_factor(_in_fortran_order(basis.T @ values), 0.0)
        if L is None:
            raise NotPositiveSemidefiniteError("the leading directions of the outputs are not independent")
        basis, values = (solve_lower(L, _in_fortran_order(part.T)).T for part in (basis, values))
        return Subspace(eigenvalues[:rank], basis, values)

    def _multiply(self, B: Array) -> Array:
        """Return KB as (BᵀK)ᵀ: BLAS multiplies a few rows by a matrix faster than a matrix by a few columns."""
        product: Array = (B.T @ self.K).T
        return product


def _in_fortran_order(B: Any) -> Any:
    return np.asfortranarray(B) if isinstance(B, np.ndarray) else B
