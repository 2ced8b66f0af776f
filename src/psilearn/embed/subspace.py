"""Which directions of the output space to keep: all (IOKR), those of the outputs (KDE), or the mixed ones (OEL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psilearn.embed.coordinates import KnownOutputs, OutputCoordinates
from psilearn.linalg import Array, top_eigh
from psilearn.regress import Regressor


class Subspace(NamedTuple):
    """Orthonormal directions in output coordinates, and the moment that each of them carries."""

    eigenvalues: Array  # (p,)  descending
    directions: Array | None  # (r, p); None keeps all r coordinates as they are


@dataclass(frozen=True)
class MixedMoment:
    """M = Σₖ Sₖᵀ diag(wₖ) Sₖ, a second moment as weighted sets of rows; never formed unless asked for.

    For OEL it is the paper's M_c = c/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ + (1−c)/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ.
    """

    parts: tuple[tuple[Array, Array], ...]  # pairs of rows (s, r) and weights (s,)

    def __matmul__(self, V: Array) -> Array:
        product = np.zeros_like(V)
        for rows, weights in self.parts:
            product += rows.T @ (weights[:, None] * (rows @ V))
        return product

    def top(self, n_components: int | None) -> Subspace:
        """Return the leading eigenvectors, at most ``n_components`` and at most the rank of M."""
        size = self.parts[0][0].shape[1]  # r
        wanted = size if n_components is None else min(n_components, size)
        if wanted == 0:
            return Subspace(np.empty(0), np.empty((0, 0)))
        eigenvalues, directions = top_eigh(self.__matmul__, size, wanted)
        rank = int(np.sum(eigenvalues > size * np.finfo(float).eps * eigenvalues[0]))
        return Subspace(eigenvalues[:rank], directions[:, :rank])


def keep_everything() -> Subspace:
    """IOKR: keep every coordinate; the eigenvalues are not needed and left empty."""
    return Subspace(np.empty(0), None)


def kernel_pca(psi: OutputCoordinates, known: KnownOutputs, n_components: int | None) -> Subspace:
    """KDE: the leading directions of 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ, uncentred kernel PCA of the outputs."""
    return MixedMoment(((psi.values, known.frequencies),)).top(n_components)


def output_embedding_learning(
    psi: OutputCoordinates,
    known: KnownOutputs,
    regressor: Regressor,
    supervision: float,
    n_components: int | None,
) -> Subspace:
    """OEL: the leading directions of M_c; c = 1 looks at ĥ(xᵢ) alone, c = 0 is :func:`kernel_pca`."""
    if supervision == 0:
        return kernel_pca(psi, known, n_components)
    H = regressor.smooth(psi.values[known.labeled])  # (n, r)  ĥ(xᵢ)
    parts = [(H, np.full(len(H), supervision / len(H)))]
    if supervision < 1:
        parts.append((psi.values, (1 - supervision) * known.frequencies))
    return MixedMoment(tuple(parts)).top(n_components)
