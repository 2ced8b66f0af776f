"""Checks of single parameters: each error states the argument, the given value and the allowed values."""

from math import inf, nan
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

RandomStateLike: TypeAlias = int | np.random.RandomState | None  # what sklearn.utils.check_random_state accepts


def check_positive(value: object, name: str) -> float:
    """Return a finite number > 0 as a float; raise an error about ``name`` for anything else."""
    number = _to_float(value)
    if not 0 < number < inf:
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}.")
    return number


def check_non_negative(value: object, name: str) -> float:
    """Return a finite number ≥ 0 as a float; raise an error about ``name`` for anything else."""
    number = _to_float(value)
    if not 0 <= number < inf:
        raise ValueError(f"{name} must be a finite number ≥ 0; got {value!r}.")
    return number


def check_fraction(value: object, name: str) -> float:
    """Return a number in [0, 1] as a float; raise an error about ``name`` for anything else."""
    number = _to_float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be a number in [0, 1]; got {value!r}.")
    return number


def check_open_fraction(value: object, name: str) -> float:
    """Return a number in (0, 1), both ends excluded, as a float; raise an error about ``name`` for anything else."""
    number = _to_float(value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, both excluded; got {value!r}.")
    return number


def check_count(value: object, name: str) -> int:
    """Return an integer ≥ 1 as an int; raise an error about ``name`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be an integer ≥ 1; got {value!r}.")
    return int(value)


def check_bool(value: object, name: str) -> bool:
    """Return True or False as a bool; raise an error about ``name`` for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def check_verbose(value: object, name: str) -> int:
    """Return True, False or an integer ≥ 0 as an int; raise an error about ``name`` for anything else."""
    if not isinstance(value, Integral | np.bool_) or int(value) < 0:
        raise ValueError(f"{name} must be an integer ≥ 0, True or False; got {value!r}.")
    return int(value)


def check_precision(value: DTypeLike | None, name: str) -> np.dtype[np.floating]:
    """Return the dtype float64 or float32 ("tf32" is float32); raise an error about ``name`` for anything else."""
    if isinstance(value, str) and value == "tf32":
        return np.dtype(np.float32)
    for allowed in (np.dtype(np.float64), np.dtype(np.float32)):
        if value is not None and _is_dtype(value, allowed):  # np.dtype(None) is float64
            return allowed
    raise ValueError(f'{name} must be "float64", "float32" or "tf32"; got {value!r}.')


def _is_dtype(value: DTypeLike, dtype: np.dtype[np.floating]) -> bool:
    """Return whether a value names a dtype."""
    try:
        return np.dtype(value) == dtype
    except TypeError:
        return False


def _to_float(value: object) -> float:
    """Return a real number as a float; NaN, which fails all range checks, for any other object."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf
