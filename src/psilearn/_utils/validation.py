"""Checks of single parameters: each error names the argument, what came and what is allowed."""

from math import inf, nan
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_positive(value: Any, name: str) -> float:
    """Return a finite number > 0, or say that ``name`` must be one."""
    if not 0 < _number(value) < inf:
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}.")
    return float(value)


def check_non_negative(value: Any, name: str) -> float:
    """Return a finite number ≥ 0, or say that ``name`` must be one."""
    if not 0 <= _number(value) < inf:
        raise ValueError(f"{name} must be a finite number ≥ 0; got {value!r}.")
    return float(value)


def check_fraction(value: Any, name: str) -> float:
    """Return a number in [0, 1], or say that ``name`` must be one."""
    if not 0 <= _number(value) <= 1:
        raise ValueError(f"{name} must be a number in [0, 1]; got {value!r}.")
    return float(value)


def check_open_fraction(value: Any, name: str) -> float:
    """Return a number between 0 and 1, both excluded, or say that ``name`` must be one."""
    if not 0 < _number(value) < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, both excluded; got {value!r}.")
    return float(value)


def check_count(value: Any, name: str) -> int:
    """Return an integer ≥ 1, or say that ``name`` must be one."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer ≥ 1; got {value!r}.")
    return int(value)


def check_precision(value: Any, name: str) -> np.dtype[Any]:
    """Return the dtype float64 or float32 (of "tf32" too), or say that ``name`` must be one of them."""
    if isinstance(value, str) and value == "tf32":
        return np.dtype(np.float32)
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = None
    if value is None or dtype not in (np.float64, np.float32):
        raise ValueError(f'{name} must be "float64", "float32" or "tf32"; got {value!r}.')
    return dtype


def _number(value: Any) -> float:
    """Return a real number as a float; NaN, which is in no range, for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf
