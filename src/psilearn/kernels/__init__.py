"""Kernels: parameter objects with ``kernel(A, B)``, ``kernel.gram(A)`` and ``kernel.diag(A)``.

They can be added and multiplied (``0.5 * k1 + k2``, ``k1 * k2``) and normalized (``k.normalized()``), and they can be
cloned, inspected and searched like any scikit-learn estimator.
"""

from psilearn.kernels.binary import Dice, GaussianTanimoto, Tanimoto
from psilearn.kernels.combine import Aligned, alignf, centered_alignment, uniform, weighted
from psilearn.kernels.conversion import as_kernel, as_output_kernel
from psilearn.kernels.curves import Curves
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.gaussian import Gaussian, Laplacian
from psilearn.kernels.graph import (
    EdgeHistogram,
    GraKeLKernel,
    Graph,
    GraphKernel,
    ShortestPaths,
    VertexHistogram,
    WeisfeilerLehman,
    as_graphs,
)
from psilearn.kernels.hellinger import Hellinger
from psilearn.kernels.hierarchy import HierarchicalDice, Hierarchy
from psilearn.kernels.kernel import Kernel, Normalized, Product, Scaled, Sum, has_pre_image, pre_image
from psilearn.kernels.linear import Linear, Polynomial
from psilearn.kernels.objects import Pairwise, Precomputed
from psilearn.kernels.ranking_kernels import Hamming, Kemeny, Lehmer, RankingKernel
from psilearn.kernels.row_kernel import RowKernel
from psilearn.kernels.string import EditGaussian, GappySubstrings, MismatchSubstrings, Substrings
from psilearn.kernels.time_series import GlobalAlignment

__all__ = [
    "Aligned",
    "Curves",
    "Dice",
    "EdgeHistogram",
    "EditGaussian",
    "FeatureKernel",
    "GappySubstrings",
    "Gaussian",
    "GaussianTanimoto",
    "GlobalAlignment",
    "GraKeLKernel",
    "Graph",
    "GraphKernel",
    "Hamming",
    "Hellinger",
    "HierarchicalDice",
    "Hierarchy",
    "Kemeny",
    "Kernel",
    "Laplacian",
    "Lehmer",
    "Linear",
    "MismatchSubstrings",
    "Normalized",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Product",
    "RankingKernel",
    "RowKernel",
    "Scaled",
    "ShortestPaths",
    "Substrings",
    "Sum",
    "Tanimoto",
    "VertexHistogram",
    "WeisfeilerLehman",
    "alignf",
    "as_graphs",
    "as_kernel",
    "as_output_kernel",
    "centered_alignment",
    "has_pre_image",
    "pre_image",
    "uniform",
    "weighted",
]
