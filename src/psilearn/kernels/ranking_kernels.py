"""Kernels on rankings: the Kemeny, Hamming and Lehmer embeddings, with exact decoding over all rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import array_namespace, is_tensor
from psilearn._linalg import Array
from psilearn.kernels.inner_products import match_block
from psilearn.kernels.ranking_kernel import RankingKernel
from psilearn.rankings import check_ranks


class Kemeny(RankingKernel):
    """Kendall's τ of two rankings: k(σ, τ) is the mean over item pairs i<j of sign(σⱼ − σᵢ)·sign(τⱼ − τᵢ).

    ψ(σ) holds the signs of the P = K(K−1)/2 pairs. For full rankings |ψ(σ) − ψ(τ)|² = 2 − 2·τ(σ, τ) is 4/P times
    Kendall's distance, the number of pairs ordered differently. Tied and unknown pairs count zero. Decoding over all
    rankings is the Kemeny consensus problem, which :mod:`psilearn.decoding.kemeny` solves exactly.

    Parameters
    ----------
    partial : bool, default=False
        Whether outputs may be partial rankings: tied items have equal ranks, items of unknown rank have NaN. False
        accepts permutations of 1, …, K only.
    items : sequence of str, default=None
        The K names of the items in partial orders that are given as strings. Full orders name all items themselves.

    See Also
    --------
    Hamming : Compares the rank of each item.
    Lehmer : Compares Lehmer codes.

    References
    ----------
    Jiao and Vert, *The Kendall and Mallows kernels for permutations*, 2015; Korba, Garcia and d'Alché-Buc, *A
    structured prediction approach for label ranking*, 2018.

    Examples
    --------
    >>> from psilearn.kernels import Kemeny
    >>> Kemeny()([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[ 1.    ,  0.3333, -1.    ]])
    >>> Kemeny()(["a>b>c"], ["a>b>c", "b>a>c", "c>b>a"]).round(4)
    array([[ 1.    ,  0.3333, -1.    ]])
    >>> Kemeny(partial=True)([[1, 2, 3]], [[1, 2, float("nan")], [1, 1, 2]]).round(4)
    array([[0.3333, 0.6667]])
    """

    supports_torch = True

    def _code(self, ranks: Any) -> Any:
        return pair_signs(ranks, self._dtype(ranks))

    def _width(self, n_items: int) -> int:
        return n_items * (n_items - 1) // 2

    _scale = _width


class Hamming(RankingKernel):
    """The share of items that have the same rank in both rankings.

    ψ(σ) is the permutation matrix, ψ_ir = [σᵢ = r] / √K, so that |ψ(σ) − ψ(τ)|² is 2/K times the Hamming distance.
    Items of unknown rank count zero. With ``partial=True`` ranks are still integers from 1 to K, and orders must be
    full, because an order that omits or ties items does not determine ranks. Decoding over all rankings is a linear
    assignment problem.

    Parameters
    ----------
    partial : bool, default=False
        Whether outputs may be partial rankings: tied items have equal ranks, items of unknown rank have NaN. False
        accepts permutations of 1, …, K only.
    items : sequence of str, default=None
        The K names of the items in partial orders that are given as strings. Full orders name all items themselves.

    See Also
    --------
    Kemeny : Compares the order of each pair of items.
    Lehmer : Compares Lehmer codes.

    References
    ----------
    Korba, Garcia and d'Alché-Buc, *A structured prediction approach for label ranking*, 2018.

    Examples
    --------
    >>> from psilearn.kernels import Hamming
    >>> Hamming()([[1, 2, 3]], [[1, 2, 3], [1, 3, 2], [3, 1, 2]]).round(4)
    array([[1.    , 0.3333, 0.    ]])
    """

    supports_torch = True

    def _read(self, orders: Any, name: str) -> tuple[Array, list[str]]:
        orders = list(orders)
        ranks, items = super()._read(orders, name)
        partial = (np.sort(ranks, axis=1) != np.arange(1, len(items) + 1)).any(axis=1)
        if partial.any():
            row = int(np.argmax(partial))
            raise ValueError(
                f"{name} in row {row}: {str(orders[row])!r} omits or ties items, and does not determine the ranks that "
                f"Hamming compares. Give ranks with NaN for unknown ones, or use Kemeny or Lehmer."
            )
        return ranks, items

    def _check_ranks(self, ranks: Array, name: str) -> None:
        check_ranks(ranks, name, bool(self.partial))
        K = ranks.shape[1]
        invalid = ~np.isin(ranks, np.arange(1, K + 1)) & ~np.isnan(ranks)
        if invalid.any():
            row, column = np.argwhere(invalid)[0]
            raise ValueError(
                f"{name} in row {row} has the rank {ranks[row, column]:g}: Hamming requires integers from 1 to {K}. "
                f"Kemeny and Lehmer accept any numbers as partial ranks."
            )

    def _code(self, ranks: Any) -> Any:
        xp, numbers = array_namespace(ranks), match_block(np.arange(1, ranks.shape[1] + 1), ranks)
        return xp.astype((ranks[:, :, None] == numbers).reshape(len(ranks), -1), self._dtype(ranks))

    def _width(self, n_items: int) -> int:
        return n_items**2

    def _scale(self, n_items: int) -> int:
        return n_items


class Lehmer(RankingKernel):
    """The inner product of centered Lehmer codes, ψᵢ(σ) ∝ Σ_{j<i} sign(σⱼ − σᵢ).

    The Lehmer code cᵢ = #{j < i: σⱼ > σᵢ} ∈ {0, …, i−1} counts the earlier items that i is preferred to. The sum of
    signs is 2cᵢ − (i−1). Its mean over all rankings is zero, so that the zero vector, to which a ridge shrinks, favors
    no ranking. Tied and unknown pairs count zero. |ψ(σ) − ψ(τ)|² is proportional to |c(σ) − c(τ)|²; |ψ(σ)| is 1 for the
    order of the numbering and its reverse, and less for all others. Every code belongs to one ranking, so decoding over
    all rankings rounds each coordinate. There are only K coordinates, but the distance depends on the numbering of the
    items.

    Parameters
    ----------
    partial : bool, default=False
        Whether outputs may be partial rankings: tied items have equal ranks, items of unknown rank have NaN. False
        accepts permutations of 1, …, K only.
    items : sequence of str, default=None
        The K names of the items in partial orders that are given as strings. Full orders name all items themselves.

    See Also
    --------
    Kemeny : Compares the order of each pair of items.
    Hamming : Compares the rank of each item.

    References
    ----------
    Korba, Garcia and d'Alché-Buc, *A structured prediction approach for label ranking*, 2018.

    Examples
    --------
    >>> from psilearn.kernels import Lehmer
    >>> Lehmer()([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[ 1. ,  0.6, -1. ]])
    """

    supports_torch = True

    def _code(self, ranks: Any) -> Any:
        dtype = self._dtype(ranks)
        columns = [_signs(ranks[:, i : i + 1], ranks[:, :i], dtype).sum(axis=1) for i in range(ranks.shape[1])]
        return array_namespace(ranks).stack(columns, axis=1)

    def _width(self, n_items: int) -> int:
        return n_items

    def _scale(self, n_items: int) -> int:
        return (n_items - 1) * n_items * (2 * n_items - 1) // 6


def pair_signs(ranks: Any, dtype: Any = np.float64) -> Any:
    """Return sign(rⱼ − rᵢ) for the item pairs i<j, shape (n, K(K−1)/2); zero for ties and where a rank is NaN."""
    i, j = np.triu_indices(ranks.shape[1], 1)
    return _signs(ranks[:, i], ranks[:, j], dtype)


def _signs(left: Any, right: Any, dtype: Any) -> Any:
    """Return sign(right − left) in this dtype; zero for ties and where a number is NaN."""
    if is_tensor(left):
        return (right > left).to(dtype) - (right < left).to(dtype)
    return np.subtract(right > left, right < left, dtype=dtype)
