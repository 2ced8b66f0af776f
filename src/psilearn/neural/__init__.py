"""Networks on torch, an extra: ``pip install psilearn[torch]``. Importing this room does not import torch."""

from psilearn.neural.regressor import NeuralRegressor

__all__ = ["NeuralRegressor"]
