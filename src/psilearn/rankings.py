"""Rankings of K items in two forms: rows of ranks and strings of item names.

Ranks are a row of numbers, ``[3, 1, 2]``: item i has the rank rᵢ, and rank 1 is the preferred item. An order is a
string of names, ``"b>c>a"``, with the preferred item first. Both examples state that b is preferred to c, and c to a.
A row of integers is always read as ranks, never as an order. A partial ranking may tie items (equal ranks;
``"a>b=c"``) and omit items (rank NaN; the name is missing in the order).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from psilearn._backend import NUMPY
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples

__all__ = ["all_rankings", "from_orders", "is_orders", "ranks_from_item_numbers", "to_orders"]

BEFORE, TIED = ">", "="
MAX_ITEMS = 20  # 20! is the largest factorial below 2**63


def is_orders(A: Samples) -> bool:
    """Return whether a collection holds orders, that is strings, and not ranks.

    Parameters
    ----------
    A : array-like or sparse matrix
        The collection to inspect.

    Returns
    -------
    bool
        True for a list, a tuple or a one-dimensional array with at least one string; False for any other object.

    See Also
    --------
    from_orders : Convert orders to ranks.

    Examples
    --------
    >>> from psilearn.rankings import is_orders
    >>> is_orders(["b>c>a"]), is_orders([[3, 1, 2]])
    (True, False)
    """
    if sparse.issparse(A) or not (isinstance(A, list | tuple) or getattr(A, "ndim", 0) == 1):
        return False
    if isinstance(A, np.ndarray) and A.dtype.kind not in "UTO":
        return False
    return any(isinstance(order, str) for order in A)


def from_orders(
    orders: Sequence[str], items: Sequence[str] | None = None, partial: bool = False, name: str = "orders"
) -> tuple[NDArray[Any], list[str]]:
    """Return the ranks of orders such as ``"b>c>a"`` and the item names of their columns.

    Parameters
    ----------
    orders : sequence of n str
        The orders, the preferred item first: ``"b>c>a"``.
    items : sequence of K str, default=None
        The names of all items, in the order of the columns. By default the items are those named in the orders,
        sorted, with names that are numbers first and by value.
    partial : bool, default=False
        Whether orders may tie items, as in ``"a>b=c"``, and omit items. An omitted item has the rank NaN, and tied
        items share the best of their ranks.
    name : str, default="orders"
        The name of the argument in error messages.

    Returns
    -------
    ranks : ndarray of shape (n, K)
        The ranks, 1 for the preferred item: integers, or floats if ``partial`` is true.
    items : list of K str
        The item of each column.

    Raises
    ------
    ValueError
        If an order names an unknown item, names an item twice or, unless ``partial`` is true, ties or omits an item.

    See Also
    --------
    to_orders : The inverse conversion.

    Examples
    --------
    >>> from psilearn.rankings import from_orders
    >>> from_orders(["b>c>a", "a>b>c"])
    (array([[3, 1, 2],
           [1, 2, 3]]), ['a', 'b', 'c'])
    >>> from_orders(["c>a=b", "b>c"], partial=True)[0]
    array([[ 2.,  2.,  1.],
           [nan,  1.,  2.]])
    """
    validation.check_bool(partial, "partial")
    if isinstance(orders, str) or not isinstance(orders, Iterable) or getattr(orders, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a sequence of strings such as 'b>c>a'; got {orders!r:.80}.")
    orders = [_check_string(order, f"{name} in row {row}") for row, order in enumerate(orders)]
    if not orders:
        raise ValueError(f"{name} is empty: at least one order is needed.")
    if items is None:
        items = collect_items(orders if partial else orders[:1], name)
    items = check_items(items, f"items of {name}, whose row 0 is {orders[0]!r},")
    ranks = None if partial else _ranks_of_full_orders(orders, items)
    if ranks is not None:
        return ranks, items
    rows = [_ranks_of_order(order, items, partial, f"{name} in row {row}") for row, order in enumerate(orders)]
    return np.stack(rows), items


def collect_items(orders: Sequence[str], name: str = "orders") -> list[str]:
    """Return the item names that occur in orders, sorted, with names that are numbers first and by value."""
    labeled = ((order, f"{name} in row {row}") for row, order in enumerate(orders))
    parsed = (_parse(_check_string(order, where), where) for order, where in labeled)
    return sorted({item for order in parsed for item in order}, key=_sort_key)


def _ranks_of_full_orders(orders: list[str], items: list[str]) -> Index | None:
    """Return the ranks (n, K) of full orders in one vectorized pass; None if any order is not a plain full one."""
    K = len(items)
    names = np.array(BEFORE.join(orders).split(BEFORE))
    if len(names) != len(orders) * K or any(order.count(BEFORE) != K - 1 for order in orders):
        return None
    by_name = np.argsort(items)
    places = np.minimum(np.searchsorted(np.array(items)[by_name], names), K - 1)
    columns = by_name[places].reshape(len(orders), K)
    if (np.array(items)[columns].ravel() != names).any() or (np.sort(columns, axis=1) != np.arange(K)).any():
        return None
    return ranks_from_item_numbers(columns)


def _ranks_of_order(order: str, items: list[str], partial: bool, where: str) -> NDArray[Any]:
    """Return the ranks (K,) of one order; raise an error that states its place and its fault."""
    ranked = _parse(order, where)
    unknown = [item for item in ranked if item not in items]
    if unknown:
        raise ValueError(f"{where}: {order!r} names {unknown[0]!r}; the items are {', '.join(items)}.")
    missing = [item for item in items if item not in ranked]
    if not partial and (missing or TIED in order):
        fault = f"leaves out {', '.join(missing)}" if missing else "ties items"
        raise ValueError(
            f"{where}: {order!r} {fault}; a full ranking orders all of {', '.join(items)}. Partial rankings are "
            f"allowed with partial=True."
        )
    return np.array([ranked.get(item, np.nan) for item in items], dtype=float if partial else np.int64)


def to_orders(ranks: ArrayLike, items: Sequence[str] | None = None) -> NDArray[np.str_]:
    """Return orders such as ``"b>c>a"`` for rows of ranks.

    Parameters
    ----------
    ranks : array-like of shape (n, K)
        The ranks, 1 for the preferred item. Items of equal rank are tied, ``"b=c"``; items of rank NaN are omitted.
    items : sequence of K str, default=None
        The item of each column. By default the column names of a DataFrame; otherwise the letters a, b, …, or the
        numbers from 1 for more than 26 items.

    Returns
    -------
    ndarray of n str
        One order per row of ranks.

    See Also
    --------
    from_orders : The inverse conversion.

    Examples
    --------
    >>> from psilearn.rankings import to_orders
    >>> to_orders([[3, 1, 2], [1, 2, 2]])
    array(['b>c>a', 'a>b=c'], dtype='<U5')
    """
    if items is None and hasattr(ranks, "columns"):
        items = [str(column) for column in ranks.columns]
    ranks = validation.check_array_of_numbers(ranks, "ranks", allow_nan=True)
    if ranks.ndim != 2:
        raise ValueError(f"ranks must have the shape (n, K), one row per ranking; got shape {ranks.shape}.")
    K = ranks.shape[1]
    default = [chr(97 + i) if K <= 26 else str(i + 1) for i in range(K)]
    names = check_items(default if items is None else items, "items")
    if len(names) != K:
        raise ValueError(f"items names {len(names)} items, but ranks has {K} columns.")
    orders = []
    for row in ranks:
        known = sorted((rank, column) for column, rank in enumerate(row.tolist()) if rank == rank)
        groups = groupby(known, key=lambda pair: pair[0])
        orders.append(BEFORE.join(TIED.join(names[column] for _, column in group) for _, group in groups))
    return np.array(orders, dtype=str)


def all_rankings(n_items: int) -> Index:
    """Return the ranks of all K! rankings of K items.

    Parameters
    ----------
    n_items : int
        The number K of items, at most 20.

    Returns
    -------
    ndarray of shape (K!, K)
        One ranking per row, 1 for the preferred item, in lexicographic order.

    Raises
    ------
    MemoryError
        If the rankings do not fit into memory.

    See Also
    --------
    to_orders : Convert ranks to orders.

    Examples
    --------
    >>> from psilearn.rankings import all_rankings
    >>> all_rankings(3).tolist()
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]
    """
    K = validation.check_count(n_items, "n_items")
    if K > MAX_ITEMS:
        raise ValueError(f"All {K}! rankings of {K} items are too many to list (n_items). Give candidates.")
    what, remedy = f"All {K}! rankings of {K} items", "Rank fewer items, or give candidates."
    NUMPY.require_memory((2, factorial(K), K), what, remedy)
    ranks = np.ones((1, 1), dtype=np.intp)
    for k in range(2, K + 1):  # the first item has the rank f; the others are a ranking of k − 1 items that skips f
        ranks = np.concatenate([np.insert(ranks + (ranks >= f), 0, f, axis=1) for f in range(1, k + 1)])
    return ranks


def ranks_from_item_numbers(order: Index) -> Index:
    """Return ranks for rows of item numbers: the inverse permutation of each row.

    Parameters
    ----------
    order : ndarray of int of shape (n, K)
        The items 0, …, K − 1 of each row, the preferred item first.

    Returns
    -------
    ndarray of shape (n, K)
        The ranks, 1 for the preferred item.

    See Also
    --------
    from_orders : Ranks of orders with item names.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.rankings import ranks_from_item_numbers
    >>> ranks_from_item_numbers(np.array([[1, 2, 0]]))
    array([[3, 1, 2]])
    """
    numbers = validation.check_array_of_numbers(order, "order", ndim=2)
    if (np.sort(numbers, axis=1) != np.arange(numbers.shape[1])).any():
        raise ValueError(f"order must have the items 0 to {numbers.shape[1] - 1} once in each row; got {order!r:.200}.")
    order = numbers.astype(np.intp)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1), axis=1)
    return ranks


def _check_string(order: object, where: str) -> str:
    """Return an order if it is a string; raise an error that states its place otherwise."""
    if not isinstance(order, str):
        raise TypeError(f"{where} must be a string such as 'b>c>a'; got {order!r:.80}.")
    return str(order)


def check_items(items: Sequence[str], what: str) -> list[str]:
    """Return the item names if they are at least two different names without separators; raise an error otherwise."""
    if isinstance(items, bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) != 1:
        raise TypeError(f"{what} must be a sequence of names; got {items!r:.80}.")
    names = list(items)
    if not all(isinstance(item, str) for item in names):
        raise TypeError(f"{what} must be names, that is strings; got {names!r:.80}.")
    if len(set(names)) < max(2, len(names)):
        raise ValueError(f"{what} must be at least 2 different names, as in 'b>c>a'; got {names!r:.80}.")
    invalid = [item for item in names if item != item.strip() or not item or BEFORE in item or TIED in item]
    if invalid:
        raise ValueError(f"{what} must be names without '>', '=' and spaces at their ends; got {invalid[0]!r}.")
    return [str(item) for item in names]


def _parse(order: str, where: str) -> dict[str, int]:
    """Return the rank of each item of an order: one more than the number of items before it."""
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


def _sort_key(item: str) -> tuple[bool, int, str]:
    """Return a sort key that puts numbers first, by value."""
    return (False, int(item), item) if item.isdecimal() else (True, 0, item)


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
