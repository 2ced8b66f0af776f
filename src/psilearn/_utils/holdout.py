"""Examples that are kept back from training, to choose by."""

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from psilearn._utils.samples import Index


def hold_out(n: int, fraction: float, random_state: Any) -> tuple[Index, Index]:
    """Return a random partition of n examples: those to learn from, and the share to choose by; at least one each."""
    if n < 2:
        raise ValueError(f"Validation needs at least 2 examples to learn from; X has {n} sample.")
    size = min(n - 1, max(1, round(n * fraction)))
    kept, held = train_test_split(np.arange(n), test_size=size, random_state=random_state)
    return kept, held
