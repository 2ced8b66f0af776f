"""Regression on inputs. Nothing here looks inside Y: targets are coordinates."""

from psilearn.regression.kernel_regression import KernelPredictor, Predictor, Regression, Regressor, Targets
from psilearn.regression.nystrom import NystromRidge
from psilearn.regression.ridge import KernelRidge
from psilearn.regression.ridge_path import RidgePath
from psilearn.regression.sklearn_regressor import EstimatorPredictor, EstimatorRegressor

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
