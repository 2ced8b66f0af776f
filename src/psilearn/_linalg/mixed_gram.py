"""The mixed Gram matrix of Algorithm 1 as an operator: leading directions of a moment without coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import Compute, array_namespace, to_numpy
from psilearn._linalg.array_ops import Array
from psilearn._linalg.cholesky import NotPositiveSemidefiniteError, shifted_factor, solve_lower
from psilearn._linalg.eigen import top_eigh
from psilearn._linalg.moments import Moment, Subspace, mixing_weights
from psilearn._utils.progress import stage


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
