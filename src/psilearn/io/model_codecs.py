"""Codecs of the core: the estimators, kernels and fitted parts that saved models consist of."""

from psilearn import kernels
from psilearn._utils.encoding import register, register_class
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.io.graph_codec import GRAPHS
from psilearn.kernels import (
    FeatureKernel,
    GraKeLKernel,
    GraphKernel,
    Hierarchy,
    Kernel,
    Pairwise,
    RankingKernel,
    RowKernel,
)
from psilearn.landmarks import Landmarks
from psilearn.regression import KernelRegression

ESTIMATORS = (IOKR, KDE, OEL)
NOT_SAVED = (  # abstract classes, and kernels that contain a function or an object of another package
    *(Kernel, FeatureKernel, GraphKernel, RankingKernel, RowKernel),
    *(GraKeLKernel, Pairwise),
)

for _name in kernels.__all__:
    _cls = getattr(kernels, _name)
    if isinstance(_cls, type) and issubclass(_cls, Kernel) and _cls not in NOT_SAVED:
        register_class(f"psilearn.kernels.{_name}", _cls)
register(GRAPHS)
for _cls in (*ESTIMATORS, Landmarks):
    register_class(f"psilearn.{_cls.__name__}", _cls)
register_class("psilearn.kernels.Hierarchy", Hierarchy)
register_class("psilearn.regression.KernelRegression", KernelRegression, leave_out=["moment"])
register_class("psilearn.embedding.Embedding", Embedding)
register_class("psilearn.decoding.SharedCandidates", SharedCandidates)
