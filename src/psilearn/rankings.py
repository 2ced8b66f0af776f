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

from psilearn import checks
from psilearn.backend import require_memory
from psilearn.linalg import Array
from psilearn.samples import Index, Samples, n_samples

BEFORE, TIED = ">", "="


def is_orders(A: Samples) -> bool:
    """Return whether a collection holds orders, that is strings, and not ranks."""
    if sparse.issparse(A) or not (isinstance(A, list | tuple) or getattr(A, "ndim", 0) == 1) or n_samples(A) == 0:
        return False
    return all(isinstance(order, str) for order in A)


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
    parsed = [_parse(order, f"{name} in row {row}") for row, order in enumerate(orders)]
    if not parsed:
        raise ValueError(f"{name} is empty: at least one order is needed.")
    if items is None:
        items = sorted({item for order in (parsed if partial else parsed[:1]) for item, _ in order}, key=_by_value)
    columns = {item: column for column, item in enumerate(items)}
    if len(columns) < max(2, len(items)):
        raise ValueError(
            f"{name} must rank at least 2 different items, as in 'b>c>a'; the items are {list(items)!r} (row 0: "
            f"{orders[0]!r})."
        )
    ranks = np.full((len(parsed), len(items)), np.nan if partial else 0, dtype=float if partial else np.int64)
    for row, order in enumerate(parsed):
        for item, rank in order:
            if item not in columns:
                raise ValueError(
                    f"{name} in row {row}: {orders[row]!r} names {item!r}; the items are {', '.join(items)}."
                )
            ranks[row, columns[item]] = rank
        if not partial and (len(order) < len(items) or len({rank for _, rank in order}) < len(order)):
            missing = [item for item in items if item not in dict(order)]
            why = f"leaves out {', '.join(missing)}" if missing else "ties items"
            raise ValueError(
                f"{name} in row {row}: {orders[row]!r} {why}; a full ranking orders all of {', '.join(items)}. Partial "
                f"rankings are allowed with partial=True."
            )
    return ranks, list(items)


def to_orders(ranks: Samples, items: Sequence[str] | None = None) -> Any:
    """Return orders such as ``"b>c>a"`` for ranks (n, K): an array of n strings.

    Parameters
    ----------
    ranks : array (n, K)
        1 = preferred. Items of equal rank are tied, ``"b=c"``; those of rank NaN are left out.
    items : K names, optional
        by default the letters a, b, …, or the numbers from 1 where there are more than 26.

    Examples
    --------
    >>> to_orders([[3, 1, 2], [1, 2, 2]])
    array(['b>c>a', 'a>b=c'], dtype='<U5')
    """
    ranks = np.asarray(ranks, dtype=float)
    if ranks.ndim != 2:
        raise ValueError(f"ranks must be of shape (n, K), a row a ranking; got shape {ranks.shape}.")
    K = ranks.shape[1]
    names = list(items) if items is not None else [chr(97 + i) if K <= 26 else str(i + 1) for i in range(K)]
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

    A full ranking gives each of 1, …, K once. A partial one may be any numbers, the larger the less preferred, and NaN
    for items of unknown rank, but not for all of them.
    """
    if ranks.shape[1] < 2:
        raise ValueError(f"{name} must rank at least 2 items a row; got shape {ranks.shape}.")
    K = ranks.shape[1]
    if partial:
        wrong = np.isnan(ranks).all(axis=1) if np.issubdtype(ranks.dtype, np.floating) else np.zeros(1, bool)
    else:
        wrong = (np.sort(ranks, axis=1) != np.arange(1, K + 1)).any(axis=1)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    given = ranks[row].tolist()
    if partial:
        raise ValueError(f"{name} in row {row} ranks no item: all of its {K} ranks are NaN.")
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


def all_rankings(n_items: int) -> Index:
    """Return the ranks of all K! rankings of K items, (K!, K), in lexicographic order.

    Examples
    --------
    >>> all_rankings(3).tolist()
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]
    """
    K = checks.count(n_items, "n_items")
    require_memory((2, factorial(K), K), f"All {K}! rankings of {K} items", "Rank fewer items, or give candidates.")
    ranks = np.ones((1, 1), dtype=np.intp)
    for k in range(2, K + 1):  # first item: rank f; the others: a ranking of k − 1 items that skips f
        ranks = np.concatenate([np.insert(ranks + (ranks >= f), 0, f, axis=1) for f in range(1, k + 1)])
    return ranks


def ranks_from_item_numbers(order: Index) -> Index:
    """Return ranks (n, K) for item numbers (n, K) from 0, the preferred item first: the inverse permutation."""
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1), axis=1)
    return ranks


def _parse(order: Any, where: str) -> list[tuple[str, int]]:
    """Return each item with its rank: one more than the number of items before it."""
    if not isinstance(order, str):
        raise TypeError(f"{where} must be a string such as 'b>c>a'; got {order!r:.80}.")
    ranked: list[tuple[str, int]] = []
    for group in order.split(BEFORE):
        ranked += [(item, len(ranked) + 1) for item in map(str.strip, group.split(TIED))]
    names = [item for item, _ in ranked]
    if "" in names:
        raise ValueError(f"{where}: {order!r} has an empty name; an order looks like 'b>c>a'.")
    twice = [item for item, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{where}: {order!r} names {', '.join(twice)} more than once.")
    return ranked


def _by_value(item: str) -> tuple[bool, int, str]:
    """Sort key: numbers by value, before other names."""
    return (False, int(item), item) if item.isdecimal() else (True, 0, item)
