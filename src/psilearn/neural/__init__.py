"""Networks on torch, an extra: ``pip install psilearn[torch]``. Importing this room does not import torch."""

from psilearn.neural.neural_regressor import NeuralRegressor

__all__ = ["NeuralRegressor"]
