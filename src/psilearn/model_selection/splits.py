"""Training and validation examples of each split of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, check_cv

from psilearn._utils.samples import Index, Samples, n_samples

Split = tuple[Index, Index]  # the numbers of the training and of the validation examples
N_DEFAULT_SPLITS = 5
DEFAULT_VALIDATION_SHARE = 0.2


def uses_leave_one_out(cv: Any) -> bool:
    """Return whether the closed-form leave-one-out replaces splits."""
    if isinstance(cv, str) and cv != "loo":
        raise ValueError(f'cv must be an integer, a splitter, an iterable of splits, "loo" or None; got {cv!r}.')
    return isinstance(cv, str)


def make_splits(cv: Any, y: Samples, groups: Any, random_state: Any) -> list[Split]:
    """Return the splits; by default five random ones with 80 % training examples, as in the paper."""
    n = n_samples(y)
    if uses_leave_one_out(cv):
        if n < 2:
            raise ValueError(f'cv="loo" needs at least 2 examples; got {n}.')
        return [(np.arange(n), np.arange(n))]
    splitter = check_cv(cv)
    if cv is None:
        splitter = ShuffleSplit(N_DEFAULT_SPLITS, test_size=DEFAULT_VALIDATION_SHARE, random_state=random_state)
    labels = y if isinstance(y, np.ndarray) else None  # for splitters that stratify
    pairs = splitter.split(np.zeros((n, 1)), labels, groups)
    splits = [(_as_indices(train), _as_indices(held)) for train, held in pairs]
    if not splits:
        raise ValueError("cv contains no split.")
    for i, split in enumerate(splits):
        _check_split(i, *split, n)
    return splits


def _as_indices(side: Any) -> Index:
    """Return one side of a split as indices; masks are allowed, as in scikit-learn."""
    array = np.asarray(side)
    if array.dtype == bool:
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"A split of cv must hold integer indices or masks; got shape {array.shape}, {array.dtype}.")
    return array.astype(np.intp)


def _check_split(number: int, train: Index, held: Index, n: int) -> None:
    if not len(train) or not len(held):
        raise ValueError(
            f"Split {number} of cv has {len(train)} training and {len(held)} validation examples: both need one."
        )
    low, high = min(train.min(), held.min()), max(train.max(), held.max())
    if low < 0 or high >= n:
        raise ValueError(f"Split {number} of cv has the examples {low} to {high}; valid numbers are 0 to {n - 1}.")
