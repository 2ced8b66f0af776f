"""Kernels on rankings: the Kemeny, Hamming and Lehmer embeddings, with exact decoding over all rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from psilearn._backend import Compute, array_namespace, is_tensor, iter_blocks, tensor_to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples
from psilearn.kernels.inner_products import gemm_tiles, match_block, strips
from psilearn.kernels.row_kernel import RowKernel
from psilearn.rankings import check_has_preference, check_items, check_ranks, from_orders, is_orders, to_orders

CODE_COPIES = 6  # arrays of the size of a code while it is computed: ranks of both items, comparisons, numbers


# The base class of kernels on rankings: inner products of finite embeddings of permutations.
#
# A ranking is a row of K ranks, 1 = preferred, or an order of names, ``"b>c>a"`` (:mod:`psilearn.rankings`).
class RankingKernel(RowKernel):
    """A kernel k(σ, τ) = ⟨ψ(σ), ψ(τ)⟩ for an embedding ψ of rankings with few coordinates and |ψ(σ)| ≤ 1.

    Estimators with such an output kernel predict over all K! rankings without a list of candidates.

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
    Lehmer : Compares Lehmer codes.

    Examples
    --------
    >>> from psilearn.kernels import Kemeny, RankingKernel
    >>> isinstance(Kemeny(), RankingKernel)
    True
    """

    _accepts_sparse = False
    _accepts_nan = True  # the validation of ranks names the row
    _returns_new_block = True

    def __init__(self, partial: bool = False, items: Sequence[str] | None = None) -> None:
        self.partial = partial
        self.items = items

    def features(self, A: Samples) -> Array:
        """Compute the embedding ψ(σ) of rankings.

        Parameters
        ----------
        A : array of shape (n, K) or sequence of n orders
            The rankings.

        Returns
        -------
        ndarray of shape (n, D)
            The coordinates.

        See Also
        --------
        RankingKernel.n_features : The number D of coordinates.

        Examples
        --------
        >>> from psilearn.kernels import Kemeny
        >>> Kemeny().features([[1, 2]])
        array([[1.]])
        """
        rows = self._ranks(self.check(A), "A")
        return np.divide(self._code(rows), np.sqrt(self._scale(rows.shape[1])), dtype=np.float64)

    def n_items(self, A: Samples) -> int:
        """Return the number K of items that are ranked.

        Parameters
        ----------
        A : array of shape (n, K) or sequence of n orders
            The rankings.

        Returns
        -------
        int
            The number of items.

        See Also
        --------
        RankingKernel.n_features : The number of coordinates of the embedding.

        Examples
        --------
        >>> from psilearn.kernels import Kemeny
        >>> Kemeny().n_items(["a>b>c"])
        3
        """
        return int(self._ranks(self.check(A[:1]), "A").shape[1])

    def n_features(self, A: Samples) -> int:
        """Return the number D of coordinates of the embedding.

        Parameters
        ----------
        A : array of shape (n, K) or sequence of n orders
            The rankings.

        Returns
        -------
        int
            The number of coordinates.

        See Also
        --------
        RankingKernel.features : The coordinates.

        Examples
        --------
        >>> from psilearn.kernels import Kemeny
        >>> Kemeny().n_features(["a>b>c"])
        3
        """
        return self._width(self.n_items(A))

    def to_form_of(self, A: Samples, ranks: Index) -> Samples:
        """Return ranks in the form of other rankings: ranks of their dtype, or orders of their items.

        Parameters
        ----------
        A : array of shape (n, K) or sequence of n orders
            Rankings in the desired form.
        ranks : ndarray of shape (m, K)
            The ranks to convert.

        Returns
        -------
        ndarray
            Ranks of shape (m, K), or m orders.

        See Also
        --------
        psilearn.rankings.to_orders : Orders from ranks.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Kemeny
        >>> Kemeny().to_form_of(np.array(["a>b>c"]), np.array([[3, 1, 2]]))
        array(['b>c>a'], dtype='<U5')
        """
        return to_orders(ranks, self._read(A[:1], "A")[1]) if is_orders(A) else ranks.astype(A.dtype)

    def check_full(self, A: Samples, name: str) -> None:
        """Raise if a ranking is partial; the error names the first such row.

        Parameters
        ----------
        A : array of shape (n, K) or sequence of n orders
            The rankings.
        name : str
            What errors call the rankings.

        See Also
        --------
        Kernel.check : Validate rankings that may be partial.

        Examples
        --------
        >>> from psilearn.kernels import Kemeny
        >>> Kemeny().check_full([[1, 2, 3]], "y")
        """
        ranks = self._ranks(self.check(A, name), name)
        partial = (np.sort(ranks, axis=1) != np.arange(1, ranks.shape[1] + 1)).any(axis=1)
        if partial.any():
            raise ValueError(
                f"{name} in row {int(np.argmax(partial))} is a partial ranking, which is not among the full rankings: "
                f"give candidates that contain it."
            )

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        K, shape = A.shape[1], (len(A), len(B))
        scale = self._scale(K)
        if is_tensor(A):
            block = compute.empty(shape, compute.dtype)
            for columns in self._code_blocks(B):
                code = self._code(B[columns]).T
                for rows in self._code_blocks(A):
                    block[rows, columns] = self._code(A[rows]) @ code
            block /= scale
            return block
        block = np.empty(shape, compute.dtype)

        def finish(sums: Array, i: slice, j: slice) -> None:  # sums of integers, exact
            np.divide(sums, scale, out=block[i, j], dtype=block.dtype)

        gemm_tiles(lambda i: self._code(A[i]), lambda j: self._code(B[j]), block.shape, self._width(K), finish)
        return block

    def _diag(self, A: Any) -> Any:
        return self._paired(A, A)

    def _paired(self, A: Any, B: Any) -> Any:
        values = [row_products(self._code(A[rows]), self._code(B[rows])) for rows in self._code_blocks(A)]
        return array_namespace(A).concat(values) / self._scale(A.shape[1])

    def _code_blocks(self, A: Any) -> Iterable[slice]:
        """Return slices of rows whose code stays in the cache, or on a device within the working memory."""
        bytes_per_row = 8 * self._width(A.shape[1])
        if is_tensor(A):
            return iter_blocks(len(A), CODE_COPIES * bytes_per_row)
        return strips(len(A), bytes_per_row)

    def _place(self, A: Samples, compute: Compute) -> Any:
        return super()._place(self._ranks(A, "A"), compute)

    def __call__(self, A: Samples, B: Samples | None = None, *, compute: Compute | None = None) -> Array:
        """Compute the block k(A, B); both collections must have the same form and the same items.

        Parameters
        ----------
        A : array of shape (n, K) or sequence of n orders
            The rows of the block.
        B : array of shape (m, K) or sequence of m orders, default=None
            The columns of the block. None stands for A.
        compute : Compute, default=None
            Precision and device. By default float64, or as set by :func:`psilearn.computing`.

        Returns
        -------
        array of shape (n, m)
            The values.

        See Also
        --------
        Kernel.gram : The symmetric matrix k(A, A).

        Examples
        --------
        >>> from psilearn.kernels import Kemeny
        >>> Kemeny()(["a>b>c"], ["c>b>a"])
        array([[-1.]])
        """
        if B is not None and (is_orders(A) or is_orders(B)):
            self.check_same_kind(A, "A", B, "B")
        return super().__call__(A, B, compute=compute)

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        validation.check_bool(self.partial, "partial")
        if self.items is not None:
            check_items(self.items, "items")
        A = tensor_to_numpy(A)  # ranks are validated, kept and decoded as arrays
        if is_orders(A):
            ranks, items = self._read(A, name)
            self._check_ranks(ranks, name)
            return to_orders(ranks, items)
        if isinstance(A, list | tuple):
            _check_equal_lengths(A, name)
        if getattr(A, "ndim", 0) == 2 and A.shape[1] == 1 and is_orders(np.asarray(A)[:, 0]):
            raise ValueError(f"{name} holds orders in a column, shape {A.shape}: give them as one sequence of strings.")
        A = super()._check(A, name, False)
        self._check_ranks(A, name)
        if self.items is not None and A.shape[1] != len(self.items):
            raise ValueError(f"{name} ranks {A.shape[1]} items per row, but items has {len(self.items)} names.")
        return A

    def _check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        forms = [
            _describe_orders(self._read(C[:1], label)[1]) if is_orders(C) else "ranks"
            for C, label in ((A, name), (B, other))
        ]
        if forms[0] != forms[1]:
            raise ValueError(
                f"{name} and {other} must be rankings of the same form and of the same items: {name}: {forms[0]}; "
                f"{other}: {forms[1]}."
            )
        super()._check_same_kind(A, name, B, other)

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

    def _ranks(self, A: Samples, name: str) -> Any:
        """Return validated rankings as ranks (len(A), K)."""
        return self._read(A, name)[0] if is_orders(A) else A

    def _dtype(self, ranks: Any) -> Any:
        """Return the dtype, of NumPy or torch as the ranks, in which sums of products of the code are exact."""
        xp = array_namespace(ranks)
        return xp.float32 if self._scale(ranks.shape[1]) < 2**24 else xp.float64

    def _code(self, ranks: Any) -> Any:
        """Return ψ times √scale, integers, (n, width); a tensor for ranks on a device."""
        raise TypeError(f"{type(self).__name__} must implement _code(ranks), the embedding times √scale.")

    def _width(self, n_items: int) -> int:
        """Return D, the number of coordinates."""
        raise TypeError(f"{type(self).__name__} must implement _width(n_items), the number of coordinates.")

    def _scale(self, n_items: int) -> int:
        """Return the largest |code|², which the scaling makes 1."""
        raise TypeError(f"{type(self).__name__} must implement _scale(n_items), the largest |code|².")


def _describe_orders(items: list[str]) -> str:
    return f"orders of {', '.join(items)}"


def _check_equal_lengths(A: Sequence[Any], name: str) -> None:
    """Raise if a row has another length than the first one."""
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in A]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"{name} must rank the same items in every row: row 0 has {lengths[0]} ranks, row {row} has {length}."
            )


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
