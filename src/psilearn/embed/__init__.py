"""Output embeddings: y ↦ g(y) = Gψ(y) ∈ Rᵖ with GG* = I.

All of them work in the finite coordinates of :class:`OutputCoordinates` and differ only in the subspace they keep:
everything (IOKR), the leading directions of the outputs (KDE), or the leading directions of the mixed moment (OEL).
"""

from psilearn.embed.algorithm1 import Algorithm1, algorithm_1
from psilearn.embed.coordinates import KnownOutputs, OutputCoordinates
from psilearn.embed.embedding import Embedding
from psilearn.embed.subspace import MixedMoment, Subspace, keep_everything, kernel_pca, output_embedding_learning

__all__ = [
    "Algorithm1",
    "Embedding",
    "KnownOutputs",
    "MixedMoment",
    "OutputCoordinates",
    "Subspace",
    "algorithm_1",
    "keep_everything",
    "kernel_pca",
    "output_embedding_learning",
]
