"""Output embeddings: y ↦ g(y) = Gψ(y) ∈ Rᵖ with GG* = I.

All of them work in finite coordinates and differ only in the subspace they keep: everything (IOKR), the leading
directions of the outputs (KDE), or the leading directions of the mixed moment (OEL).
"""

from psilearn.embed.algorithm1 import Algorithm1, algorithm_1
from psilearn.embed.coordinates import KnownOutputs, OutputCoordinates
from psilearn.embed.embedding import Embedding
from psilearn.embed.outputs import LandmarkOutputs, SpannedOutputs
from psilearn.embed.streams import OutputStream

__all__ = [
    "Algorithm1",
    "Embedding",
    "KnownOutputs",
    "LandmarkOutputs",
    "OutputCoordinates",
    "OutputStream",
    "SpannedOutputs",
    "algorithm_1",
]
