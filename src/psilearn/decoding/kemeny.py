"""Exact search for the best ranking by pairwise preferences: argmax over σ of Σ_{i<j} w_ij sign(σⱼ − σᵢ).

Let C_ij = w_ij = −C_ji be the gain of placing i before j. This is the linear ordering (Kemeny consensus) problem. It is
NP-hard in K, but fast for the small K of label ranking. There are two exact methods:

- Up to 12 items: dynamic programming over the 2ᴷ sets of items, for all queries at once.
- More items: a decomposition. Let i → j if C_ij > 0. Between two strongly connected components all arrows have the same
  direction, so it is optimal to order the components along the arrows, and the items of each component separately. Most
  components have only a few items and are ordered by dynamic programming. A component of more than 16 items is ordered
  by integer programming, which is exact up to the tolerances of HiGHS (1e-6 of the largest gain) and limited to 60 s.
  Random gains are hard from about 30 items on; noisy orders are not.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

from psilearn._backend import iter_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.rankings import ranks_from_item_numbers

MAX_ITEMS_AT_ONCE = 12  # items for which dynamic programming is used without a decomposition
MAX_ITEMS_OF_SETS = 16  # items of a component for which dynamic programming is used: 2¹⁶ sets per query
CACHE_BYTES = 2**22  # size of the values that are processed together
MAX_ITEMS_OF_INTEGERS = 200  # items of one integer program: 1.3 million constraints
MAX_SECONDS = 60.0  # time limit of one integer program: one component of one query
GAIN_TOLERANCE = 64 * float(
    np.finfo(float).eps
)  # gains below this part of Σ_ij |C_ij| are rounding: the lower item comes first


def best_kemeny(W: Array) -> Index:
    """Return the ranks (q, K) that maximize Σ_{i<j} w_ij sign(σⱼ − σᵢ) for weights W (q, K(K−1)/2) of the pairs i<j.

    If several rankings are equally good, lower items come first, except in integer programs. Cost for K ≤ 12: 2ᴷK²
    flops per query. Temporary arrays are limited by ``working_memory``.
    """
    K = round((1 + np.sqrt(1 + 8 * W.shape[1])) / 2)
    i, j = np.triu_indices(K, 1)
    order = np.empty((len(W), K), dtype=np.intp)
    for rows in iter_blocks(len(W), 16 * K * K):
        C = np.zeros((rows.stop - rows.start, K, K))
        C[:, i, j] = W[rows]
        C[:, j, i] = -W[rows]
        order[rows] = _order(C)
    return ranks_from_item_numbers(order)


def _order(C: Array) -> Index:
    """Return the best orders (q, K), item numbers, for antisymmetric gains C (q, K, K)."""
    q, K = C.shape[:2]
    if K <= MAX_ITEMS_AT_ONCE:
        return order_by_programming(C)
    order = np.empty((q, K), dtype=np.intp)
    by_size: dict[int, list[tuple[int, int, Index]]] = defaultdict(list)  # components: query, place, items
    for query in range(q):
        place = 0
        for items in _components(C[query]):
            order[query, place : place + len(items)] = items
            if len(items) > 1:
                by_size[len(items)].append((query, place, items))
            place += len(items)
    for size, parts in by_size.items():
        gains = np.stack([C[query][np.ix_(items, items)] for query, _, items in parts])
        inner = order_by_programming(gains) if size <= MAX_ITEMS_OF_SETS else np.stack([*map(order_by_integers, gains)])
        for (query, place, items), sequence in zip(parts, inner, strict=True):
            order[query, place : place + size] = items[sequence]
    return order


def order_by_programming(C: Array) -> Index:
    """Return the best orders (q, K) by dynamic programming over sets of items, for K ≤ 16.

    The best order of a set S begins with some a ∈ S and continues with the best order of the rest:

        v(S) = max_{a∈S} Σ_{b∈S} C_ab + v(S∖a),   v(∅) = 0.

    Sets of the same size are processed together, for a block of queries.
    """
    q, K = C.shape[:2]
    order = np.empty((q, K), dtype=np.intp)
    max_rows = max(16, CACHE_BYTES // (8 * 2**K))
    for rows in iter_blocks(q, 4 * 8 * 2**K, max_rows):
        order[rows] = _order_by_sets(C[rows])
    return order


def _order_by_sets(C: Array) -> Index:
    """Return the best orders of a block of queries."""
    q, K = C.shape[:2]
    slack = GAIN_TOLERANCE * np.abs(C).sum(axis=(1, 2))  # (q,)
    value = np.zeros((2**K, q))
    first = np.zeros((2**K, q), dtype=np.int8)  # the item that the best order of a set begins with
    for sets, members, items in _layers(K):
        best = np.full((len(sets), q), -np.inf)
        begin = np.zeros((len(sets), q), dtype=np.int8)
        for a, rows in enumerate(items):
            gain = members[rows] @ C[:, a].T  # (s, q)
            gain += value[sets[rows] ^ (1 << a)]
            is_better = gain > best[rows] + slack
            best[rows] = np.where(is_better, gain, best[rows])
            begin[rows] = np.where(is_better, np.int8(a), begin[rows])
        value[sets], first[sets] = best, begin
    order = np.empty((q, K), dtype=np.intp)
    rest = np.full(q, 2**K - 1)
    for place in range(K):
        order[:, place] = first[rest, np.arange(q)]
        rest ^= 1 << order[:, place]
    return order


@cache
def _layers(K: int) -> list[tuple[Index, Array, list[Index]]]:
    """Return, for the sets of each size, their bits (s,), their members (s, K), and the sets that contain each item."""
    everything = np.arange(2**K)
    members = (everything[:, None] >> np.arange(K)) & 1
    sizes = members.sum(axis=1)
    layers = []
    for size in range(1, K + 1):
        sets = np.flatnonzero(sizes == size)
        layers.append((sets, members[sets].astype(float), [np.flatnonzero(members[sets, a]) for a in range(K)]))
    return layers


def _components(C: Array) -> list[Index]:
    """Return the strongly connected components of the arrows i → j with C_ij > 0, ordered along the arrows.

    If the arrows do not determine the order of two components, the one with the lower first item comes first.
    """
    noise = GAIN_TOLERANCE * np.abs(C).sum()
    arrows = noise < C
    n, label = connected_components(sparse.csr_matrix(arrows), directed=True, connection="strong")
    items = [np.flatnonzero(label == component) for component in range(n)]
    before = np.zeros((n, n), dtype=bool)
    source, target = np.nonzero(arrows)
    before[label[source], label[target]] = True
    np.fill_diagonal(before, False)
    waiting = before.sum(axis=0)  # number of components that must come before each one
    free = [(int(items[c][0]), int(c)) for c in np.flatnonzero(waiting == 0)]
    heapify(free)
    sorted_components = []
    while free:
        c = heappop(free)[1]
        sorted_components.append(items[c])
        for after in np.flatnonzero(before[c]):
            waiting[after] -= 1
            if waiting[after] == 0:
                heappush(free, (int(items[after][0]), int(after)))
    return sorted_components


def order_by_integers(C: Array) -> Index:
    """Return the best order (K,) for gains C (K, K) by integer programming (HiGHS).

    x_ij ∈ {0, 1} for i<j states that i comes before j; x_ij + x_jk − x_ik ∈ {0, 1} for i<j<k excludes cycles of three
    items, and thereby all cycles.
    """
    K = len(C)
    if K > MAX_ITEMS_OF_INTEGERS:
        raise ValueError(
            f"The preferences of {K} items are cyclic: the best order of more than {MAX_ITEMS_OF_INTEGERS} such items "
            f"is not searched. Give candidates, such as model.candidates_."
        )
    gains = C[np.triu_indices(K, 1)]
    scale = np.abs(gains).max()
    solution = milp(
        -gains / (scale or 1.0),
        integrality=np.ones(len(gains)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(_no_cycles(K), 0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": MAX_SECONDS},
    )
    if solution.x is None or solution.status != 0:
        raise RuntimeError(
            f"The best order of {K} items with cyclic preferences was not found: {solution.message} Give candidates, "
            f"such as model.candidates_."
        )
    wins = np.zeros((K, K))
    wins[np.triu_indices(K, 1)] = np.rint(solution.x)
    wins += np.tril(1 - wins.T, -1)
    return np.argsort(-wins.sum(axis=1), kind="stable")


@lru_cache(maxsize=4)
def _no_cycles(K: int) -> sparse.csr_matrix:
    """Return the rows x_ij + x_jk − x_ik for i<j<k over the pairs i<j, (K choose 3, K choose 2)."""
    pair = np.zeros((K, K), dtype=np.intp)
    pair[np.triu_indices(K, 1)] = np.arange(K * (K - 1) // 2)
    item = np.arange(K)
    i, j, k = np.nonzero((item[:, None, None] < item[:, None]) & (item[:, None] < item))
    columns = np.stack([pair[i, j], pair[j, k], pair[i, k]], axis=1)
    rows = np.repeat(np.arange(len(i)), 3)
    return sparse.csr_matrix((np.tile([1.0, 1.0, -1.0], len(i)), (rows, columns.ravel())))
