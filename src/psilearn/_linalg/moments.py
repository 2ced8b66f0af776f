"""Second moments Σ vvᵀ: summed over blocks, mixed, and their leading directions."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from psilearn._backend import array_namespace, asarray, is_tensor, to_host, working_device, zeros
from psilearn._linalg import Array, add_product, top_eigh
from psilearn._utils.progress import stage


class Subspace(NamedTuple):
    """Orthonormal directions in output coordinates, and the moment that each of them carries."""

    eigenvalues: Array  # (p,)  descending
    directions: Array | None  # (r, p); None keeps all r coordinates as they are


@dataclass(frozen=True)
class MixedMoment:
    """M = Σₖ Sₖᵀ diag(wₖ) Sₖ + matrix, a second moment as weighted sets of rows and what is summed already.

    For OEL it is the paper's M_c = c/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ + (1−c)/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ. It is never formed unless asked for.
    """

    parts: tuple[tuple[Array, Array | float], ...] = ()  # pairs of rows (s, r) and weights (s,) or one weight
    matrix: Array | None = None  # (r, r)

    @property
    def size(self) -> int:
        """r, the number of coordinates."""
        return self.parts[0][0].shape[1] if self.matrix is None else len(self.matrix)

    def __rmul__(self, factor: float) -> MixedMoment:
        parts = tuple((rows, factor * weights) for rows, weights in self.parts)
        return MixedMoment(parts, None if self.matrix is None else factor * self.matrix)

    def __add__(self, other: MixedMoment) -> MixedMoment:
        matrices = [asarray(moment.matrix) for moment in (self, other) if moment.matrix is not None]
        return MixedMoment(self.parts + other.parts, sum(matrices[1:], start=matrices[0]) if matrices else None)

    def __matmul__(self, V: Array) -> Array:
        product = array_namespace(V).zeros_like(V) if self.matrix is None else self.matrix @ V
        for rows, weights in self.parts:
            weighted = rows @ V
            weighted *= weights if isinstance(weights, float) else weights[:, None]
            product += rows.T @ weighted
        return product

    def placed(self) -> MixedMoment:
        """Return the same moment where the work is done."""
        parts = tuple((asarray(rows), w if isinstance(w, float) else asarray(w)) for rows, w in self.parts)
        return MixedMoment(parts, None if self.matrix is None else asarray(self.matrix))

    def parked(self) -> MixedMoment:
        """Return the same moment in NumPy: nothing of it on a device."""
        parts = tuple((to_host(rows), w if isinstance(w, float) else to_host(w)) for rows, w in self.parts)
        return MixedMoment(parts, None if self.matrix is None else to_host(self.matrix))

    def summed(self) -> MixedMoment:
        """Return the same moment, summed already."""
        return MixedMoment(matrix=self.formed())

    def formed(self) -> Array:
        """Return M as a matrix of its own, (r, r)."""
        total = zeros((self.size, self.size)) if self.matrix is None else 1.0 * self.matrix
        for rows, weights in self.parts:
            total += (rows.T * weights) @ rows
        return total

    def top(self, n_components: int | None) -> Subspace:
        """Return the leading eigenvectors, at most ``n_components`` and at most the rank of M."""
        wanted = self.size if n_components is None else min(n_components, self.size)
        if wanted == 0:
            return Subspace(np.empty(0), zeros((self.size, 0)))
        placed = self.placed()
        with stage(f"{wanted:,} leading directions of {self.size:,}"):
            eigenvalues, directions = top_eigh(placed.__matmul__, self.size, wanted, placed.formed)
        eigenvalues = to_host(eigenvalues)
        rank = int(np.sum(eigenvalues > self.size * np.finfo(float).eps * eigenvalues[0]))
        return Subspace(eigenvalues[:rank], directions[:, :rank])


class GramSum:
    """Σ F Fᵀ over blocks F (r, b) of columns, summed in float64; half of the flops of a product.

    r² numbers, and where blocks are float32 as many float32 numbers beside them: a block's own sum is single precision,
    the sum of blocks is not, so the error does not grow with their number.
    """

    def __init__(self, size: int) -> None:
        on_device = working_device() is not None
        # at least the lower triangle; all of a tensor
        self.lower: Any = zeros((size, size)) if on_device else np.zeros((size, size), order="F")
        self._part: Any = None

    def add(self, F: Any) -> None:
        """Add the product of one block (r, b); an array in Fortran order, or a tensor."""
        if 0 in F.shape:
            return
        if is_tensor(F):
            add_product(self.lower, F)
        elif F.dtype == np.float32:
            self._part = ssyrk(1.0, F, c=self._part, lower=1, overwrite_c=1)
            self.lower += self._part
        else:
            self.lower = dsyrk(1.0, F, beta=1.0, c=self.lower, lower=1, overwrite_c=1)

    def merge(self, other: GramSum) -> None:
        """Add what another one has summed, here or in NumPy."""
        self.lower += asarray(other.symmetric()) if is_tensor(self.lower) else other.lower

    def parked(self) -> GramSum:
        """Return the same sum in NumPy: nothing of it on a device."""
        parked = copy(self)
        if is_tensor(self.lower):
            parked.lower = np.asfortranarray(np.tril(to_host(self.lower)))
        return parked

    def trace(self) -> float:
        """Return Σ |F|²."""
        return float(array_namespace(self.lower).linalg.trace(self.lower))

    def symmetric(self) -> Array:
        """Return the whole matrix, (r, r), as a new array."""
        if is_tensor(self.lower):
            return (self.lower + self.lower.T) / 2
        whole = self.lower + self.lower.T
        whole.flat[:: len(whole) + 1] /= 2
        return whole
