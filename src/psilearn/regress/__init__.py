"""Regression on inputs. Nothing here looks inside Y: targets are coordinates."""

from psilearn.regress.nystrom import NystromRidge
from psilearn.regress.path import RidgePath
from psilearn.regress.regression import Regression, Regressor, Targets
from psilearn.regress.ridge import KernelRidge

__all__ = ["KernelRidge", "NystromRidge", "Regression", "Regressor", "RidgePath", "Targets"]
