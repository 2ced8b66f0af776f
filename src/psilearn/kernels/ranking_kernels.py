"""Kernels on rankings: inner products of finite embeddings of permutations, over all of which decoding is exact.

A ranking is a row of K ranks, 1 = preferred, or an order of names, ``"b>c>a"`` (:mod:`psilearn.rankings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psilearn._backend import working_dtype
from psilearn._utils.rank_checks import check_has_preference, check_ranks
from psilearn._utils.samples import Index, Samples
from psilearn.kernels.inner_products import gemm_tiles, strips
from psilearn.kernels.kernel import Array, RowKernel, same_length
from psilearn.rankings import from_orders, is_orders, to_orders


class RankingKernel(RowKernel):
    """k(σ, τ) = ⟨ψ(σ), ψ(τ)⟩ for an embedding ψ of rankings with few coordinates, |ψ(σ)| ≤ 1.

    Estimators with such an output kernel predict over all K! rankings, without candidates:
    :mod:`psilearn.decoding.all_rankings`.

    Parameters
    ----------
    partial : bool
        whether outputs may be partial rankings: tied items have equal ranks, items of unknown rank NaN. False refuses
        all but permutations of 1, …, K.
    items : sequence of K names, optional
        of the items in partial orders given as strings; full ones name all items themselves.
    """

    _accepts_sparse = False
    _accepts_nan = True  # the check of ranks names the row
    _makes_blocks = True

    def __init__(self, partial: bool = False, items: Sequence[str] | None = None) -> None:
        self.partial = partial
        self.items = items

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of similarities; sums of integers, exact."""
        rows, others = self._row_pair(A, B)
        K = rows.shape[1]
        block, scale = np.empty((len(rows), len(others)), working_dtype()), self._scale(K)

        def finish(sums: Array, i: slice, j: slice) -> None:
            np.divide(sums, scale, out=block[i, j], dtype=block.dtype)

        gemm_tiles(lambda i: self._code(rows[i]), lambda j: self._code(others[j]), block.shape, self._width(K), finish)
        return block

    def diag(self, A: Samples) -> Array:
        """Return |ψ(σ)|²."""
        return self._paired(*self._row_pair(A, None))

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return ⟨ψ(σᵢ), ψ(τᵢ)⟩."""
        same_length(A, B)
        return self._paired(*self._row_pair(A, B))

    def features(self, A: Samples) -> Array:
        """Return ψ(σ), shape (len(A), D)."""
        rows = self._rows(A)
        return np.divide(self._code(rows), np.sqrt(self._scale(rows.shape[1])), dtype=np.float64)

    def n_items(self, A: Samples) -> int:
        """Return K, the number of items ranked."""
        return int(self._rows(A[:1]).shape[1])

    def n_features(self, A: Samples) -> int:
        """Return D, the number of coordinates of ψ."""
        return self._width(self.n_items(A))

    def in_form_of(self, A: Samples, ranks: Index) -> Samples:
        """Return ranks (n, K) in the form of the rankings A: ranks of their dtype, or orders of their items."""
        return to_orders(ranks, self._read(A[:1], "A")[1]) if is_orders(A) else ranks.astype(A.dtype)

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = False) -> Samples:
        """Demand rankings: dense rows of ranks, or orders, which are returned as an array of strings."""
        if is_orders(A):
            ranks, items = self._read(A, name)
            self._check_ranks(ranks, name)
            return to_orders(ranks, items)
        if isinstance(A, list | tuple):
            _refuse_ragged(A, name)
        if getattr(A, "ndim", 0) == 2 and A.shape[1] == 1 and is_orders(np.asarray(A)[:, 0]):
            raise ValueError(f"{name} holds orders in a column, shape {A.shape}: give them as one sequence of strings.")
        A = super().check(A, name, allow_1d=False)
        self._check_ranks(A, name)
        if self.items is not None and A.shape[1] != len(self.items):
            raise ValueError(f"{name} ranks {A.shape[1]} items a row, but items names {len(self.items)}.")
        return A

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Demand one form and the same items."""
        forms = [
            _form(self._read(C[:1], called)[1]) if is_orders(C) else "ranks" for C, called in ((A, name), (B, other))
        ]
        if forms[0] != forms[1]:
            raise ValueError(
                f"{name} and {other} must be rankings of one form and of the same items: {name}: {forms[0]}; {other}: "
                f"{forms[1]}."
            )
        super().check_alike(A, name, B, other)

    def check_full(self, A: Samples, name: str) -> None:
        """Refuse partial rankings, by the first."""
        ranks = self._rows(A, name)
        partial = (np.sort(ranks, axis=1) != np.arange(1, ranks.shape[1] + 1)).any(axis=1)
        if partial.any():
            raise ValueError(
                f"{name} in row {int(np.argmax(partial))} is a partial ranking, which has no place among all full "
                f"ones: give candidates that hold it."
            )

    def _read(self, orders: Any, name: str) -> tuple[Array, list[str]]:
        """Return the ranks and the items of orders."""
        orders = list(orders)
        if self.partial and self.items is None:
            raise ValueError(
                f"{name} may hold partial orders, such as {str(orders[0])!r}: name all items, "
                f'{type(self).__name__}(partial=True, items=["a", "b", …]), or give ranks with NaN for unknown ones.'
            )
        return from_orders(orders, self.items, bool(self.partial), name)

    def _check_ranks(self, ranks: Array, name: str) -> None:
        check_ranks(ranks, name, bool(self.partial))
        if self.partial:
            check_has_preference(ranks, name)

    def _rows(self, A: Samples, name: str = "A") -> Any:
        """Return checked ranks (len(A), K)."""
        if not is_orders(A):
            return self.check(A, name)
        ranks = self._read(A, name)[0]
        self._check_ranks(ranks, name)
        return ranks

    def _row_pair(self, A: Samples, B: Samples | None) -> tuple[Any, Any]:
        if B is not None and (is_orders(A) or is_orders(B)):
            self.check_alike(A, "A", B, "B")
        return super()._row_pair(A, B)

    def _paired(self, rows: Any, others: Any) -> Array:
        K = rows.shape[1]
        values = np.empty(len(rows))
        for part in strips(len(rows), 8 * self._width(K)):
            left, right = self._code(rows[part]), self._code(others[part])
            values[part] = np.einsum("ij,ij->i", left, right, dtype=np.float64) / self._scale(K)
        return values

    def _dtype(self, n_items: int) -> Any:
        """Return the dtype in which sums of products of the code are exact."""
        return np.float32 if self._scale(n_items) < 2**24 else np.float64

    def _code(self, ranks: Any) -> Array:
        """Return ψ times √scale, integers, (n, width)."""
        raise NotImplementedError

    def _width(self, n_items: int) -> int:
        """Return D, the number of coordinates."""
        raise NotImplementedError

    def _scale(self, n_items: int) -> int:
        """Return the largest |code|², which is made 1."""
        raise NotImplementedError


class Kemeny(RankingKernel):
    """k(σ, τ) = mean over item pairs i<j of sign(σⱼ − σᵢ)·sign(τⱼ − τᵢ): Kendall's τ of two rankings.

    ψ(σ) holds the signs of the P = K(K−1)/2 pairs. For full rankings |ψ(σ) − ψ(τ)|² = 2 − 2·τ(σ, τ) is 4/P times
    Kendall's distance, the number of pairs ordered differently. Tied and unknown pairs count zero. Decoding over all
    rankings is the Kemeny consensus problem: :mod:`psilearn.decoding.kemeny`.

    Parameters
    ----------
    partial, items :
        as in :class:`RankingKernel`.

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

    def _code(self, ranks: Any) -> Array:
        return pair_signs(ranks, self._dtype(ranks.shape[1]))

    def _width(self, n_items: int) -> int:
        return n_items * (n_items - 1) // 2

    _scale = _width


class Hamming(RankingKernel):
    """k(σ, τ) = the share of items that have the same rank in both rankings.

    ψ(σ) is the permutation matrix, ψ_ir = [σᵢ = r] / √K, so that |ψ(σ) − ψ(τ)|² is 2/K times the Hamming distance.
    Items of unknown rank count zero. With ``partial=True`` ranks are still integers from 1 to K, and orders must be
    full: one that leaves items out or ties them tells no places. Decoding over all rankings is linear assignment.

    Parameters
    ----------
    partial, items :
        as in :class:`RankingKernel`.

    References
    ----------
    Korba, Garcia and d'Alché-Buc, *A structured prediction approach for label ranking*, 2018.

    Examples
    --------
    >>> from psilearn.kernels import Hamming
    >>> Hamming()([[1, 2, 3]], [[1, 2, 3], [1, 3, 2], [3, 1, 2]]).round(4)
    array([[1.    , 0.3333, 0.    ]])
    """

    def _read(self, orders: Any, name: str) -> tuple[Array, list[str]]:
        orders = list(orders)
        ranks, items = super()._read(orders, name)
        partial = (np.sort(ranks, axis=1) != np.arange(1, len(items) + 1)).any(axis=1)
        if partial.any():
            row = int(np.argmax(partial))
            raise ValueError(
                f"{name} in row {row}: {str(orders[row])!r} leaves items out or ties them, and does not tell the "
                f"places that Hamming compares. Give ranks with NaN for unknown places, or use Kemeny or Lehmer."
            )
        return ranks, items

    def _check_ranks(self, ranks: Array, name: str) -> None:
        check_ranks(ranks, name, bool(self.partial))
        K = ranks.shape[1]
        odd = ~np.isin(ranks, np.arange(1, K + 1)) & ~np.isnan(ranks)
        if odd.any():
            row, column = np.argwhere(odd)[0]
            raise ValueError(
                f"{name} in row {row} has the rank {ranks[row, column]:g}: Hamming compares places, integers from 1 to "
                f"{K}. Kemeny and Lehmer take any numbers as partial ranks."
            )

    def _code(self, ranks: Any) -> Array:
        K = ranks.shape[1]
        return (ranks[:, :, None] == np.arange(1, K + 1)).reshape(len(ranks), -1).astype(self._dtype(K))

    def _width(self, n_items: int) -> int:
        return n_items**2

    def _scale(self, n_items: int) -> int:
        return n_items


class Lehmer(RankingKernel):
    """k(σ, τ) = ⟨ψ(σ), ψ(τ)⟩ for the centred Lehmer code ψᵢ(σ) ∝ Σ_{j<i} sign(σⱼ − σᵢ).

    The Lehmer code cᵢ = #{j < i: σⱼ > σᵢ} ∈ {0, …, i−1} counts the earlier items that i is preferred to. The sum of
    signs is 2cᵢ − (i−1): its mean over all rankings is zero, so that the zero vector, to which a ridge shrinks, prefers
    no ranking; tied and unknown pairs count zero. |ψ(σ) − ψ(τ)|² is proportional to |c(σ) − c(τ)|²; |ψ(σ)| is 1 for the
    order of the numbering and its reverse, and less for all others. Every code is the code of a ranking, so decoding
    over all rankings rounds each coordinate. K coordinates are few, but the distance depends on the numbering of the
    items.

    Parameters
    ----------
    partial, items :
        as in :class:`RankingKernel`.

    References
    ----------
    Korba, Garcia and d'Alché-Buc, *A structured prediction approach for label ranking*, 2018.

    Examples
    --------
    >>> from psilearn.kernels import Lehmer
    >>> Lehmer()([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[ 1. ,  0.6, -1. ]])
    """

    def _code(self, ranks: Any) -> Array:
        K = ranks.shape[1]
        dtype = self._dtype(K)
        code = np.zeros((len(ranks), K), dtype)
        for i in range(1, K):
            before, own = ranks[:, :i], ranks[:, i : i + 1]
            code[:, i] = np.subtract(before > own, before < own, dtype=dtype).sum(axis=1)
        return code

    def _width(self, n_items: int) -> int:
        return n_items

    def _scale(self, n_items: int) -> int:
        return (n_items - 1) * n_items * (2 * n_items - 1) // 6


def pair_signs(ranks: Any, dtype: Any = np.float64) -> Array:
    """Return sign(rⱼ − rᵢ) for the item pairs i<j, shape (n, K(K−1)/2); zero for ties and where a rank is NaN."""
    i, j = np.triu_indices(ranks.shape[1], 1)
    left, right = ranks[:, i], ranks[:, j]
    return np.subtract(right > left, right < left, dtype=dtype)


def _form(items: list[str]) -> str:
    return f"orders of {', '.join(items)}"


def _refuse_ragged(A: Sequence[Any], name: str) -> None:
    """Name the first row whose length is another than that of the first."""
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in A]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"{name} must rank the same items in every row: row 0 has {lengths[0]} ranks, row {row} has {length}."
            )
