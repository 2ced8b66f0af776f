"""Kernels: small parameter objects; ``k(A, B)`` gives a block, ``k.diag(A)`` its diagonal.

They add and multiply (``0.5 * k1 + k2``, ``k1 * k2``), normalise (``k.normalized()``) and are cloned, inspected and
searched like any scikit-learn estimator.
"""

from psilearn.kernels.binary import Dice, Tanimoto
from psilearn.kernels.combine import Normalized, Product, Scaled, Sum, alignf, centred_alignment, uniform, weighted
from psilearn.kernels.kernel import Kernel, as_kernel
from psilearn.kernels.objects import Pairwise, Precomputed
from psilearn.kernels.ranking_kernels import Hamming, Kemeny, Lehmer, RankingKernel
from psilearn.kernels.vector import Gaussian, GaussianTanimoto, Laplacian, Linear, Polynomial

__all__ = [
    "Dice",
    "Gaussian",
    "GaussianTanimoto",
    "Hamming",
    "Kemeny",
    "Kernel",
    "Laplacian",
    "Lehmer",
    "Linear",
    "Normalized",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Product",
    "RankingKernel",
    "Scaled",
    "Sum",
    "Tanimoto",
    "alignf",
    "as_kernel",
    "centred_alignment",
    "uniform",
    "weighted",
]
