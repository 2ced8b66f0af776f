"""Output embeddings: y ↦ g(y) = Gψ(y) ∈ Rᵖ with GG* = I.

All of them work in finite coordinates and differ only in the subspace that they keep: everything (IOKR), the leading
directions of the outputs (KDE), or the leading directions of the mixed moment (OEL).
"""

from psilearn.embedding.algorithm1 import Algorithm1, algorithm_1
from psilearn.embedding.coordinates import KnownOutputs, OutputCoordinates
from psilearn.embedding.embedding import Embedding
from psilearn.embedding.output_stream import OutputStream

__all__ = [
    "Algorithm1",
    "Embedding",
    "KnownOutputs",
    "OutputCoordinates",
    "OutputStream",
    "algorithm_1",
]
