"""Neural networks on torch, an optional dependency: ``pip install psilearn[torch]``.

Importing this subpackage does not import torch; fitting a network does.
"""

from psilearn_lab.neural.neural_regressor import NeuralRegressor

__all__ = ["NeuralRegressor"]
