"""Checks of rows of ranks: an error names the first row that is not a ranking and states its fault."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_ranks(ranks: NDArray[Any], name: str, partial: bool) -> None:
    """Raise an error for the first row of ranks (n, K) that is not a ranking.

    A full ranking contains each of 1, …, K once. A partial ranking contains numbers of at least 1, where a
    larger number is less preferred, and NaN for items of unknown rank. At least one rank must be known.
    """
    if ranks.shape[1] < 2:
        raise ValueError(f"{name} must rank at least 2 items per row; got shape {ranks.shape}.")
    if partial:
        _check_partial_ranks(ranks, name)
    else:
        _check_full_ranks(ranks, name)


def _check_partial_ranks(ranks: NDArray[Any], name: str) -> None:
    """Raise an error for the first row without a known rank or with a rank below 1."""
    K = ranks.shape[1]
    unknown = np.all(np.isnan(ranks), axis=1)
    _raise_for_row(unknown, f"{name} in row {{row}} does not rank any item: all of its {K} ranks are NaN.")
    below = np.any(ranks < 1, axis=1)
    _raise_for_row(below, f"{name} in row {{row}} has a rank below 1: 1 is preferred, and an unknown rank is NaN.")


def _check_full_ranks(ranks: NDArray[Any], name: str) -> None:
    """Raise an error for the first row that is not a permutation of 1, …, K; list what is repeated and missing."""
    K = ranks.shape[1]
    wrong = (np.sort(ranks, axis=1) != np.arange(1, K + 1)).any(axis=1)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    given = ranks[row].tolist()
    counts = Counter(given)
    faults = [f"{rank:g} occurs {count} times" for rank, count in counts.items() if count > 1]
    faults += [f"{rank} is missing" for rank in range(1, K + 1) if rank not in counts]
    hint = "Ties and unknown ranks (NaN) are allowed with partial=True."
    if sorted(given) == list(range(K)):
        hint = "Ranks begin with 1: add 1 if these are ranks; an order of items is given as strings, 'b>c>a'."
    raise ValueError(
        f"{name} in row {row} is not a ranking of {K} items, [{', '.join(f'{rank:g}' for rank in given)}]: "
        f"{', '.join(faults)}. A ranking gives item i the rank r_i, each of 1 to {K} once. {hint}"
    )


def check_has_preference(ranks: NDArray[Any], name: str) -> None:
    """Raise an error for the first partial ranking that does not prefer any item to another."""
    ranks = ranks.astype(float)
    known = ~np.isnan(ranks)
    lowest = np.min(ranks, axis=1, initial=np.inf, where=known)
    highest = np.max(ranks, axis=1, initial=-np.inf, where=known)
    _raise_for_row(lowest >= highest, f"{name} in row {{row}} does not prefer any item to another: remove it.")


def _raise_for_row(wrong: NDArray[np.bool_], message: str) -> None:
    """Raise the message for the first marked row, with the row number in place of ``{row}``."""
    if wrong.any():
        raise ValueError(message.format(row=int(np.argmax(wrong))))
