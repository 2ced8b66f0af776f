"""The estimators IOKR, KDE and OEL, which differ in the directions of the output space that they keep."""

from psilearn._distributed import ClusterLostError
from psilearn.estimators.iokr import IOKR
from psilearn.estimators.kde import KDE
from psilearn.estimators.oel import OEL

__all__ = ["IOKR", "KDE", "OEL", "ClusterLostError"]
