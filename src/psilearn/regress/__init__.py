"""Regression on inputs. Nothing here looks inside Y: targets are coordinates."""

from psilearn.regress.estimator import EstimatorPredictor, EstimatorRegressor
from psilearn.regress.nystrom import NystromRidge
from psilearn.regress.path import RidgePath
from psilearn.regress.regression import KernelPredictor, Predictor, Regression, Regressor, Targets
from psilearn.regress.ridge import KernelRidge

__all__ = [
    "EstimatorPredictor",
    "EstimatorRegressor",
    "KernelPredictor",
    "KernelRidge",
    "NystromRidge",
    "Predictor",
    "Regression",
    "Regressor",
    "RidgePath",
    "Targets",
]
