"""Random partitions into training and validation examples."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from psilearn._utils.samples import Index, Samples
from psilearn._utils.validation import RandomStateLike

Pairs: TypeAlias = tuple[Samples, NDArray[np.float64]]  # inputs and outputs (n, L)
ErrorMetric: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], float]  # of truth and prediction


def hold_out(n: int, fraction: float, random_state: RandomStateLike) -> tuple[Index, Index]:
    """Return the indices of a random partition of n examples: for training and for validation, at least one each.

    The validation part has the size n·fraction, rounded.
    """
    if n < 2:
        raise ValueError(f"Validation needs at least 2 examples to learn from; X has {n} sample.")
    size = min(n - 1, max(1, round(n * fraction)))
    training, held_out = train_test_split(np.arange(n), test_size=size, random_state=random_state)
    return training, held_out
