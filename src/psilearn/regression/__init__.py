"""Regression from inputs to output coordinates. Outputs themselves are never used: targets are coordinates."""

from psilearn.regression.kernel_regression import KernelRegression
from psilearn.regression.nystrom import NystromPath, NystromRidge
from psilearn.regression.ridge import KernelRidge, RidgePath
from psilearn.regression.sklearn_regressor import SklearnRegression, SklearnRegressor

__all__ = [
    "KernelRegression",
    "KernelRidge",
    "NystromPath",
    "NystromRidge",
    "RidgePath",
    "SklearnRegression",
    "SklearnRegressor",
]
