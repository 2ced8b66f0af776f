"""Finite coordinates of ψ on the span of given outputs, and the bookkeeping of outputs that repeat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psilearn._backend import asarray, eye, to_host
from psilearn._linalg import Array, NotPositiveSemidefiniteError, pivoted_cholesky, solve_transposed
from psilearn._utils.progress import stage
from psilearn._utils.samples import Index, Samples, concat, distinct, n_samples, take
from psilearn.embedding.embedding import Embedding
from psilearn.kernels.blocks import gram
from psilearn.kernels.kernel import Kernel
from psilearn.landmarks import LandmarkFeatures


@dataclass(frozen=True)
class KnownOutputs:
    """The distinct outputs among the labeled and the unlabeled ones, labeled ones first.

    Structured outputs repeat: everything on the output side works on the distinct ones, with these indices and
    frequencies, and gives the same results as with all of them.
    """

    outputs: Samples  # d distinct outputs
    labeled: Index  # (n,)  which of them yᵢ is
    n_labeled: int  # the first n_labeled of them occur in Y
    frequencies: Array  # (d,)  share of each among the m unlabeled outputs; among the labeled ones where m = 0

    @classmethod
    def of(cls, Y: Samples, unlabeled: Samples | None) -> KnownOutputs:
        """Find the distinct outputs of Y and, where given, of the unlabeled outputs."""
        n = n_samples(Y)
        everything = Y if unlabeled is None else concat([Y, unlabeled])
        first, inverse = distinct(everything)
        counted = inverse if unlabeled is None else inverse[n:]
        return cls(
            outputs=take(everything, first),
            labeled=inverse[:n],
            n_labeled=int(inverse[:n].max()) + 1,
            frequencies=np.bincount(counted, minlength=len(first)) / len(counted),
        )


class OutputCoordinates:
    """Coordinates in which the inner product of ψ is the ordinary one: k(y, y') = Σ_l Ψ_l(y) Ψ_l(y').

    A pivoted Cholesky factorisation k(D, D) = ΨΨᵀ of the given outputs D names r landmarks S among them that span all
    others. On the span ψ(y) has the coordinates L⁻¹ k(S, y), where LLᵀ = k(S, S); beyond it they are those of its
    projection. Cost: d² kernel values, d²r flops, d² + dr numbers.

    Attributes
    ----------
    values : array (d, r)
        Ψ: the coordinates of the given outputs.
    landmarks : collection of r outputs
    """

    def __init__(self, kernel: Kernel, outputs: Samples) -> None:
        with stage(f"kernel of {n_samples(outputs):,} outputs"):
            K = gram(kernel, outputs, "output_kernel", "Set output_landmarks, or give fewer distinct outputs.")
        try:
            with stage(f"coordinates of {len(K):,} outputs"):
                cholesky = pivoted_cholesky(K, overwrite=True)
        except NotPositiveSemidefiniteError as error:
            raise NotPositiveSemidefiniteError(
                f"output_kernel = {kernel!r} is not positive semi-definite on the outputs: {error}."
            ) from error
        self.values = cholesky.factor
        self.features = LandmarkFeatures(kernel, take(outputs, cholesky.pivots), cholesky.triangle)

    @property
    def landmarks(self) -> Samples:
        """S, r outputs that span all given ones."""
        return self.features.landmarks

    @property
    def rank(self) -> int:
        """r, the dimension of the span of the given outputs."""
        return self.values.shape[1]

    def embedding(self, V: Array | None = None) -> Embedding:
        """Return y ↦ Vᵀ L⁻¹ k(S, y) for orthonormal directions V (r, p); the coordinates themselves without V."""
        return embedding_in(self.features, V)


def embedding_in(features: LandmarkFeatures, V: Array | None) -> Embedding:
    """Return y ↦ Vᵀφ(y) for orthonormal directions V (r, p) in landmark coordinates; φ itself without V."""
    directions = eye(features.rank) if V is None else V
    basis = solve_transposed(asarray(features.triangle), directions)  # L⁻ᵀ V
    return Embedding(features.kernel, features.landmarks, to_host(basis))
