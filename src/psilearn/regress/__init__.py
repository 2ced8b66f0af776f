"""Regression on inputs: the weights α(x) of the training outputs. Nothing here looks at Y."""

from typing import Protocol

from psilearn.linalg import Array
from psilearn.regress.path import RidgePath
from psilearn.regress.ridge import KernelRidge

__all__ = ["KernelRidge", "Regressor", "RidgePath"]


class Regressor(Protocol):
    """What an embedding may ask of the regression: a linear map of target coordinates."""

    def smooth(self, V: Array) -> Array:
        """Return the fitted values at the training inputs for the targets V, both (n, r)."""

    def solve(self, V: Array) -> Array:
        """Return the coefficients C (n, r) with fitted function x ↦ k_x(x, X) C."""
