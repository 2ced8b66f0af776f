"""Rankings of K items, in two forms that cannot be taken for each other.

Ranks are a row of numbers, ``[3, 1, 2]``: item i has the rank rᵢ, and 1 is preferred. An order is a string of names,
``"b>c>a"``: the preferred item first. Both of these say that b is preferred to c, and c to a. Integers are never read
as an order. A partial ranking may tie items (equal ranks; ``"a>b=c"``) and leave some out (NaN; no name in the order).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import factorial
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import NUMPY
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples

BEFORE, TIED = ">", "="
MOST = 20  # items whose rankings can be counted in 64 bits


def is_orders(A: Samples) -> bool:
    """Return whether a collection holds orders, that is strings, and not ranks."""
    if sparse.issparse(A) or not (isinstance(A, list | tuple) or getattr(A, "ndim", 0) == 1):
        return False
    if isinstance(A, np.ndarray) and A.dtype.kind not in "UTO":
        return False
    return any(isinstance(order, str) for order in A)


def from_orders(
    orders: Sequence[str], items: Sequence[str] | None = None, partial: bool = False, name: str = "orders"
) -> tuple[Array, list[str]]:
    """Return ranks (n, K) and the names of their columns, for orders such as ``"b>c>a"``.

    Parameters
    ----------
    orders : n strings
    items : K names, optional
        which items there are, in the order of the columns; by default those that the orders name, sorted (numbers by
        value).
    partial : bool
        whether orders may tie items, as in ``"a>b=c"``, and leave some out; unknown ranks are then NaN, and tied items
        have the best of their ranks.
    name : str
        how errors call the orders.

    Examples
    --------
    >>> from_orders(["b>c>a", "a>b>c"])
    (array([[3, 1, 2],
           [1, 2, 3]]), ['a', 'b', 'c'])
    >>> from_orders(["c>a=b", "b>c"], partial=True)[0]
    array([[ 2.,  2.,  1.],
           [nan,  1.,  2.]])
    """
    orders = [_as_text(order, f"{name} in row {row}") for row, order in enumerate(orders)]
    if not orders:
        raise ValueError(f"{name} is empty: at least one order is needed.")
    if items is None:
        items = items_of(orders if partial else orders[:1], name)
    items = _check_items(items, f"items of {name}, whose row 0 is {orders[0]!r},")
    ranks = None if partial else _ranks_of_full_orders(orders, items)
    if ranks is None:
        ranks = np.stack([_ranks_of_one(order, items, partial, f"{name} in row {i}") for i, order in enumerate(orders)])
    return ranks, items


def items_of(orders: Sequence[str], name: str = "orders") -> list[str]:
    """Return the names in orders, sorted, numbers by value."""
    places = ((order, f"{name} in row {row}") for row, order in enumerate(orders))
    parsed = (_parse(_as_text(order, where), where) for order, where in places)
    return sorted({item for order in parsed for item in order}, key=_by_value)


def _ranks_of_full_orders(orders: list[str], items: list[str]) -> Any:
    """Return the ranks (n, K) of plain full orders, all at once; None where one of them is anything else."""
    K = len(items)
    names = np.array(BEFORE.join(orders).split(BEFORE))
    if len(names) != len(orders) * K or any(order.count(BEFORE) != K - 1 for order in orders):
        return None
    by_name = np.argsort(items)
    place = np.minimum(np.searchsorted(np.array(items)[by_name], names), K - 1)
    columns = by_name[place].reshape(len(orders), K)
    if (np.array(items)[columns].ravel() != names).any() or (np.sort(columns, axis=1) != np.arange(K)).any():
        return None
    return ranks_from_item_numbers(columns)


def _ranks_of_one(order: str, items: list[str], partial: bool, where: str) -> Array:
    """Return the ranks (K,) of one order, or say what is wrong with it."""
    ranked = _parse(order, where)
    unknown = [item for item in ranked if item not in items]
    if unknown:
        raise ValueError(f"{where}: {order!r} names {unknown[0]!r}; the items are {', '.join(items)}.")
    missing = [item for item in items if item not in ranked]
    if not partial and (missing or TIED in order):
        why = f"leaves out {', '.join(missing)}" if missing else "ties items"
        raise ValueError(
            f"{where}: {order!r} {why}; a full ranking orders all of {', '.join(items)}. Partial rankings are allowed "
            f"with partial=True."
        )
    return np.array([ranked.get(item, np.nan) for item in items], dtype=float if partial else np.int64)


def to_orders(ranks: Samples, items: Sequence[str] | None = None) -> Any:
    """Return orders such as ``"b>c>a"`` for ranks (n, K): an array of n strings.

    Parameters
    ----------
    ranks : array (n, K)
        1 = preferred. Items of equal rank are tied, ``"b=c"``; those of rank NaN are left out.
    items : K names, optional
        by default the columns of a DataFrame, else the letters a, b, …, or the numbers from 1 where there are more than
        26.

    Examples
    --------
    >>> to_orders([[3, 1, 2], [1, 2, 2]])
    array(['b>c>a', 'a>b=c'], dtype='<U5')
    """
    if items is None and hasattr(ranks, "columns"):
        items = [str(column) for column in ranks.columns]
    ranks = np.asarray(ranks, dtype=float)
    if ranks.ndim != 2:
        raise ValueError(f"ranks must be of shape (n, K), a row a ranking; got shape {ranks.shape}.")
    K = ranks.shape[1]
    names = [chr(97 + i) if K <= 26 else str(i + 1) for i in range(K)] if items is None else items
    names = _check_items(names, "items")
    if len(names) != K:
        raise ValueError(f"items names {len(names)} items, but ranks has {K} columns.")
    orders = []
    for row in ranks:
        known = sorted((rank, column) for column, rank in enumerate(row.tolist()) if rank == rank)
        groups = groupby(known, key=lambda pair: pair[0])
        orders.append(BEFORE.join(TIED.join(names[column] for _, column in group) for _, group in groups))
    return np.array(orders, dtype=str)


def check_ranks(ranks: Array, name: str, partial: bool) -> None:
    """Refuse rows of ranks (n, K) that are no rankings, by the first such row.

    A full ranking gives each of 1, …, K once. A partial one may have any numbers from 1 on, the larger the less
    preferred, and NaN for items of unknown rank, but not for all of them.
    """
    if ranks.shape[1] < 2:
        raise ValueError(f"{name} must rank at least 2 items a row; got shape {ranks.shape}.")
    K = ranks.shape[1]
    if partial:
        unknown = np.isnan(ranks)
        _refuse_row(unknown.all(axis=1), f"{name} in row {{row}} ranks no item: all of its {K} ranks are NaN.")
        below = (ranks < 1).any(axis=1)
        _refuse_row(below, f"{name} in row {{row}} has a rank below 1: 1 is preferred, and an unknown rank is NaN.")
        return
    wrong = (np.sort(ranks, axis=1) != np.arange(1, K + 1)).any(axis=1)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    given = ranks[row].tolist()
    counts = Counter(given)
    faults = [f"{rank:g} stands {count} times" for rank, count in counts.items() if count > 1]
    faults += [f"{rank} is missing" for rank in range(1, K + 1) if rank not in counts]
    hint = "Ties and unknown ranks (NaN) are allowed with partial=True."
    if sorted(given) == list(range(K)):
        hint = "Ranks begin with 1: add 1 if these are ranks; an order of items is given as strings, 'b>c>a'."
    raise ValueError(
        f"{name} in row {row} is no ranking of {K} items, [{', '.join(f'{rank:g}' for rank in given)}]: "
        f"{', '.join(faults)}. A ranking gives item i the rank r_i, each of 1 to {K} once. {hint}"
    )


def check_orders_something(ranks: Array, name: str) -> None:
    """Refuse partial rankings that prefer no item to another, by the first such row."""
    ranks = ranks.astype(float)
    known = ~np.isnan(ranks)
    lowest, highest = (
        edge(ranks, axis=1, initial=start, where=known) for edge, start in ((np.min, np.inf), (np.max, -np.inf))
    )
    _refuse_row(lowest >= highest, f"{name} in row {{row}} prefers no item to another and says nothing: leave it out.")


def _refuse_row(wrong: Any, message: str) -> None:
    if wrong.any():
        raise ValueError(message.format(row=int(np.argmax(wrong))))


def all_rankings(n_items: int) -> Index:
    """Return the ranks of all K! rankings of K items, (K!, K), in lexicographic order.

    Examples
    --------
    >>> all_rankings(3).tolist()
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]
    """
    K = validation.check_count(n_items, "n_items")
    if K > MOST:
        raise ValueError(f"All {K}! rankings of {K} items are too many to list. Give candidates.")
    NUMPY.require_memory((2, factorial(K), K), f"All {K}! rankings of {K} items", "Rank fewer items, or give candidates.")
    ranks = np.ones((1, 1), dtype=np.intp)
    for k in range(2, K + 1):  # first item: rank f; the others: a ranking of k − 1 items that skips f
        ranks = np.concatenate([np.insert(ranks + (ranks >= f), 0, f, axis=1) for f in range(1, k + 1)])
    return ranks


def ranks_from_item_numbers(order: Index) -> Index:
    """Return ranks (n, K) for item numbers (n, K) from 0, the preferred item first: the inverse permutation."""
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1), axis=1)
    return ranks


def _as_text(order: Any, where: str) -> str:
    if not isinstance(order, str):
        raise TypeError(f"{where} must be a string such as 'b>c>a'; got {order!r:.80}.")
    return str(order)


def _check_items(items: Sequence[str], what: str) -> list[str]:
    """Return names of items: different ones, at least two, that an order can be written with."""
    names = list(items)
    if not all(isinstance(item, str) for item in names):
        raise TypeError(f"{what} must be names, that is strings; got {names!r:.80}.")
    if len(set(names)) < max(2, len(names)):
        raise ValueError(f"{what} must be at least 2 different names, as in 'b>c>a'; got {names!r:.80}.")
    odd = [item for item in names if item != item.strip() or not item or BEFORE in item or TIED in item]
    if odd:
        raise ValueError(f"{what} must be names without '>', '=' and spaces at their ends; got {odd[0]!r}.")
    return [str(item) for item in names]


def _parse(order: str, where: str) -> dict[str, int]:
    """Return each item with its rank: one more than the number of items before it."""
    ranked: dict[str, int] = {}
    for group in order.split(BEFORE):
        rank = len(ranked) + 1
        for item in map(str.strip, group.split(TIED)):
            if not item:
                raise ValueError(f"{where}: {order!r} has an empty name; an order looks like 'b>c>a'.")
            if item in ranked:
                raise ValueError(f"{where}: {order!r} names {item} more than once.")
            ranked[item] = rank
    return ranked


def _by_value(item: str) -> tuple[bool, int, str]:
    """Sort key: numbers by value, before other names."""
    return (False, int(item), item) if item.isdecimal() else (True, 0, item)
