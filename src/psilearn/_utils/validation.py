"""Checks of single parameters: each error states the argument, the given value and the allowed values."""

from collections.abc import Collection, Iterable
from math import inf, nan
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_random_state

from psilearn._backend import tensor_to_numpy

RandomStateLike: TypeAlias = int | np.random.RandomState | None  # what sklearn.utils.check_random_state accepts
MAX_REGULARIZATION = 1e100
MAX_JOBS = 10_000  # more processes than any machine has cores


def check_positive(value: object, name: str) -> float:
    """Return a finite number > 0 as a float; raise an error about ``name`` for anything else."""
    number = _to_float(value)
    if not 0 < number < inf:
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}.")
    return number


def check_regularization(value: object, name: str) -> float:
    """Return a number > 0 whose products are finite; raise an error about ``name`` for anything else."""
    number = check_positive(value, name)
    if not 1 / MAX_REGULARIZATION <= number <= MAX_REGULARIZATION:
        raise ValueError(
            f"{name} must be between {1 / MAX_REGULARIZATION:g} and {MAX_REGULARIZATION:g}; got {value!r}."
        )
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


def check_real(value: object, name: str) -> float:
    """Return a real number other than NaN as a float; raise an error about ``name`` for anything else."""
    number = _to_float(value)
    if number != number:
        raise ValueError(f"{name} must be a number; got {value!r}.")
    return number


def check_index(value: object, name: str) -> int:
    """Return an integer ≥ 0 as an int; raise an error about ``name`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise ValueError(f"{name} must be an integer ≥ 0; got {value!r}.")
    return int(value)


def check_option(value: object, options: Collection[str], name: str) -> str:
    """Return one of several words; raise an error about ``name`` for anything else."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}; got {value!r}.")
    return value


def check_path(value: object, name: str) -> Path:
    """Return a path given as text or as a path object; raise an error about ``name`` for anything else."""
    if not isinstance(value, str | PathLike) or not str(value) or "\0" in str(value):
        raise TypeError(f"{name} must be a path, that is text or a pathlib.Path; got {value!r:.80}.")
    return Path(value)


def check_n_jobs(value: object, name: str = "n_jobs") -> int | None:
    """Return a number of processes as joblib takes it; raise an error about ``name`` for anything else."""
    if value is None:
        return None
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value == 0 or abs(int(value)) > MAX_JOBS:  # type: ignore[call-overload]
        raise ValueError(
            f"{name} must be None or an integer other than 0, such as 4 or -1 for all cores; got {value!r}."
        )
    return int(value)  # type: ignore[call-overload]


def as_random_state(value: object, name: str = "random_state") -> np.random.RandomState:
    """Return the generator of a seed, a RandomState or None; raise an error about ``name`` for anything else."""
    is_seed = isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**32
    if not (is_seed or value is None or value is np.random or isinstance(value, np.random.RandomState)):
        raise ValueError(f"{name} must be None, an integer from 0 to 2**32 - 1 or a RandomState; got {value!r:.80}.")
    return check_random_state(value)


def check_items(value: object, name: str, noun: str) -> list[Any]:
    """Return the items of an iterable; raise an error that ``name`` must be ``noun`` for anything else."""
    try:
        return list(cast(Iterable[Any], value))
    except TypeError as error:
        raise TypeError(f"{name} must be {noun}; got {value!r:.80}.") from error


def check_rows(value: object, n: int, name: str) -> NDArray[np.intp]:
    """Return rows of n, a slice or integers from −n to n − 1, as integers ≥ 0; raise an error about ``name`` else."""
    if isinstance(value, slice):
        return np.arange(n)[value]
    rows = check_items(value, name, "a slice or a sequence of integers")
    if not all(isinstance(row, Integral) and not isinstance(row, bool) and -n <= int(row) < n for row in rows):
        raise ValueError(f"{name} must be integers from {-n} to {n - 1}; got {value!r:.80}.")
    return np.array([int(row) % n for row in rows], dtype=np.intp)


def check_array_of_numbers(
    value: object, name: str, *, ndim: int | None = None, allow_nan: bool = False, allow_infinite: bool = False
) -> NDArray[np.float64]:
    """Return a dense array of real numbers as float64; raise an error about ``name`` for anything else."""
    try:
        array = np.asarray(tensor_to_numpy(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {type(value).__name__}: {error}") from error
    if array.dtype.kind not in "biuf" or (np.ma.isMaskedArray(value) and np.ma.is_masked(value)):
        raise TypeError(f"{name} must be a dense array of real numbers; got {type(value).__name__}, {array.dtype}.")
    if array.size == 0 or array.ndim == 0 or (ndim is not None and array.ndim != ndim):
        wanted = "at least one dimension" if ndim is None else f"{ndim} dimension{'s' if ndim > 1 else ''}"
        raise ValueError(f"{name} must have {wanted} and not be empty; got shape {array.shape}.")
    numbers = array.astype(np.float64, copy=False)
    if (not allow_nan and np.isnan(numbers).any()) or (not allow_infinite and np.isinf(numbers).any()):
        raise ValueError(f"{name} contains NaN or infinity; shape {array.shape}. Remove or replace them.")
    return numbers


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
    except TypeError:  # durations of NumPy
        return nan
