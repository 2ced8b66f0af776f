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
    check_groups(groups, n)
    splits = [(_as_indices(train), _as_indices(held)) for train, held in _split(cv, y, groups, random_state)]
    if not splits:
        raise ValueError("cv contains no split.")
    for i, split in enumerate(splits):
        _check_split(i, *split, n)
    return splits


def check_groups(groups: Any, n: int) -> None:
    """Raise an error unless there is one group per example, or none."""
    if groups is None:
        return
    array = np.asarray(groups, dtype=object if isinstance(groups, list | tuple) else None)
    if array.shape != (n,) or array.dtype.kind not in "biufUSO":
        raise ValueError(f"groups must have one value per example, {n}; got shape {array.shape}, {array.dtype}.")


def _split(cv: Any, y: Samples, groups: Any, random_state: Any) -> list[tuple[Any, Any]]:
    """Return the splits of the parameter ``cv`` as its splitter yields them; an error names the parameter."""
    labels = y if isinstance(y, np.ndarray) else None  # for splitters that stratify
    try:
        splitter = check_cv(cv)
        if cv is None:
            splitter = ShuffleSplit(N_DEFAULT_SPLITS, test_size=DEFAULT_VALIDATION_SHARE, random_state=random_state)
        return [(train, held) for train, held in splitter.split(np.zeros((n_samples(y), 1)), labels, groups)]
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"cv={cv!r:.80} cannot split {n_samples(y)} examples: {error}") from error


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
