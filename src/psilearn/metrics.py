"""Losses and scores of structured predictions: means that carry their standard error.

Each function returns a :class:`Mean`, a float that also knows its standard error, so that it serves in
``sklearn.metrics.make_scorer`` as it is and prints as ``0.736 ± 0.011``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from psilearn._backend import off_device, row_blocks
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples
from psilearn.decoding.nearest import Ranks
from psilearn.kernels.binary import Dice
from psilearn.kernels.blocks import checked
from psilearn.kernels.kernel import Array, Kernel, as_kernel
from psilearn.kernels.ranking_kernels import pair_signs
from psilearn.rankings import check_orders_something, check_ranks, from_orders, is_orders, items_of

TIES = ("expected", "optimistic", "pessimistic")


class Mean(float):
    """The mean of one value an example, with its standard error s/√n; NaN for a single example.

    Examples
    --------
    >>> Mean([1.0, 2.0, 3.0])
    2.0000 ± 0.5774
    """

    values: Array  # (n,)  one value an example
    standard_error: float

    def __new__(cls, values: Any) -> Mean:  # noqa: D102
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"A mean needs one value an example, at least one; got shape {values.shape}.")
        self = super().__new__(cls, np.mean(values))
        self.values = values
        self.standard_error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        return self

    def __reduce__(self) -> Any:
        return Mean, (self.values,)

    def __repr__(self) -> str:
        return f"{float(self):.4f} ± {self.standard_error:.4f}"

    __str__ = __repr__


def kernel_loss(Y_true: Samples, Y_pred: Samples, kernel: Kernel) -> Mean:
    """Return the mean of |ψ(y) − ψ(ŷ)|² = k(y,y) + k(ŷ,ŷ) − 2k(y,ŷ), the loss that output kernel regression minimises.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> kernel_loss([[0.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [1.0, 1.0]], Linear())
    2.0000 ± 2.0000
    """
    _same_length(Y_true, Y_pred)
    if not isinstance(kernel, Kernel):
        kernel = as_kernel(kernel, "kernel")
    return Mean(kernel.paired_squared_distances(checked(kernel, Y_true, "Y_true"), checked(kernel, Y_pred, "Y_pred")))


def f1_score(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the example-based F1, the mean of 2|A∩B| / (|A| + |B|), for 0/1 rows, dense or CSR; 1 for two empty sets.

    Examples
    --------
    >>> f1_score([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.8333 ± 0.1667
    """
    _same_length(Y_true, Y_pred)
    dice = Dice()
    return Mean(dice.paired(dice.check(Y_true, "Y_true"), dice.check(Y_pred, "Y_pred")))


def hamming_loss(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean share of labels that differ, for rows of equal width, dense or CSR.

    Examples
    --------
    >>> hamming_loss([[1, 1, 0, 0]], [[1, 0, 0, 0]])
    0.2500 ± nan
    """
    _same_length(Y_true, Y_pred)
    from psilearn.kernels.vector import Linear

    check = Linear().check
    A, B = (check(off_device(Y), name, allow_1d=False) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred")))
    if A.shape != B.shape:
        raise ValueError(f"Y_true and Y_pred must have one shape; got {A.shape} and {B.shape}.")
    return Mean(np.asarray((A != B).sum(axis=1)).ravel() / A.shape[1])


def kendall_tau(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of Kendall's τ-b between rankings, row by row.

    τ-b = (concordant − discordant) / √((pairs − ties in y)(pairs − ties in ŷ)) over the pairs of items that both rank;
    NaN where one of them ties all of these. Rankings are ranks (1 = preferred, NaN = unknown) or orders, ``"b>c>a"``,
    both in one form. A y that prefers no item to another is refused.

    Examples
    --------
    >>> kendall_tau([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [2, 1, 3]])
    0.6667 ± 0.3333
    >>> float(kendall_tau(["a>b>c"], ["c>b>a"]))
    -1.0
    """
    return Mean(_row_by_row(_correlation, Y_true, Y_pred))


def spearman_rho(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of Spearman's ρ between rankings, row by row: the correlation of the ranks, tied ones averaged.

    Over the items that both rank; NaN where one of them ties all of these. Rankings as in :func:`kendall_tau`.

    Examples
    --------
    >>> float(spearman_rho([[1, 2, 3, 4]], [[2, 1, 3, 4]]))
    0.8
    """

    def correlation(A: Array, B: Array) -> Array:
        # an averaged rank is, up to a constant, half the sum of sign(rᵢ − rⱼ) over j: of mean zero
        return _correlation(_sums_over_items(A), _sums_over_items(B))

    return Mean(_row_by_row(correlation, Y_true, Y_pred))


def pairwise_accuracy(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean share of item pairs, of those that y orders, that ŷ orders the same way; a tie in ŷ counts half.

    Over the pairs of items that both rank; NaN where y orders none of these. Rankings as in :func:`kendall_tau`. For
    full rankings it is (1 + τ)/2.

    Examples
    --------
    >>> float(pairwise_accuracy([[1, 2, 3]], [[1, 3, 2]])) == 2 / 3
    True
    """

    def share(A: Array, B: Array) -> Array:
        ordered = np.sum(A != 0, axis=1)
        right = np.sum((1 + A * B) * (A != 0), axis=1) / 2
        return np.divide(right, ordered, out=np.full(len(A), np.nan), where=ordered > 0)

    return Mean(_row_by_row(share, Y_true, Y_pred))


def _row_by_row(compare: Callable[[Array, Array], Array], Y_true: Samples, Y_pred: Samples) -> Array:
    """Return what is made of the signs of the item pairs i<j of both, (b, K(K−1)/2), a block of rows at a time.

    A sign is zero where items are tied and where one of the rankings misses an item.
    """
    A, B = _ranks(Y_true, Y_pred)
    values = np.empty(len(A))
    for rows in row_blocks(len(A), 32 * A.shape[1] ** 2):
        known = ~(np.isnan(A[rows]) | np.isnan(B[rows]))
        values[rows] = compare(*(pair_signs(np.where(known, ranks[rows], np.nan)) for ranks in (A, B)))
    return values


def _ranks(Y_true: Samples, Y_pred: Samples) -> tuple[Array, Array]:
    """Return checked ranks (n, K) of both, NaN where unknown."""
    _same_length(Y_true, Y_pred)
    Y_true, Y_pred = off_device(Y_true), off_device(Y_pred)
    if is_orders(Y_true) != is_orders(Y_pred):
        raise ValueError("Y_true and Y_pred must have one form: both ranks, or both orders such as 'b>c>a'.")
    if is_orders(Y_true):
        named = [items_of(Y, name) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred"))]
        if not set(named[0]) & set(named[1]):
            raise ValueError(f"Y_true orders {', '.join(named[0])}, Y_pred {', '.join(named[1])}: no common item.")
        items = sorted({*named[0], *named[1]})
        A, B = (from_orders(Y, items, True, name)[0] for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred")))
    else:
        A, B = (
            check_array(Y, dtype=float, ensure_all_finite="allow-nan", input_name=name)
            for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred"))
        )
        if A.shape != B.shape:
            raise ValueError(f"Y_true ranks {A.shape[1]} items, Y_pred {B.shape[1]}.")
        check_ranks(B, "Y_pred", partial=True)
    check_ranks(A, "Y_true", partial=True)
    check_orders_something(A, "Y_true")
    return A, B


def _correlation(A: Array, B: Array) -> Array:
    """Return ⟨a, b⟩/|a||b| for each row; NaN where one of them is zero."""
    lengths = np.sqrt(np.sum(A**2, axis=1) * np.sum(B**2, axis=1))
    return np.divide(np.sum(A * B, axis=1), lengths, out=np.full(len(A), np.nan), where=lengths > 0)


def _sums_over_items(signs: Array) -> Array:
    """Return Σⱼ sign(rᵢ − rⱼ) for each item, (n, K), from the signs of the pairs i<j."""
    K = round((1 + np.sqrt(1 + 8 * signs.shape[1])) / 2)
    i, j = np.triu_indices(K, 1)
    sums = np.empty((len(signs), K))
    for item in range(K):
        sums[:, item] = signs[:, j == item].sum(axis=1) - signs[:, i == item].sum(axis=1)
    return sums


def top_k_accuracy(ranks: Ranks, k: int, ties: str = "expected") -> Mean:
    """Return how often the true output is among the k nearest candidates, with a stated policy on ties.

    Parameters
    ----------
    ranks : Ranks
        what ``model.rank(X, Y, candidates)`` returns.
    k : int
    ties : {"expected", "optimistic", "pessimistic"}
        candidates at the truth's own distance stand in random order ("expected": the probability of a hit), all
        behind the truth, or all before it.

    Examples
    --------
    The truth shares the second place with one other candidate:

    >>> import numpy as np
    >>> from psilearn.decoding import Ranks
    >>> ranks = Ranks(nearer=np.array([1.0]), tied=np.array([2.0]))
    >>> [float(top_k_accuracy(ranks, 2, ties)) for ties in ("expected", "optimistic", "pessimistic")]
    [0.5, 1.0, 0.0]
    """
    validation.check_count(k, "k")
    if not isinstance(ranks, Ranks):
        raise TypeError(f"ranks must be what model.rank returns; got {type(ranks).__name__}.")
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}.")
    tied = np.maximum(ranks.tied, 1)  # 0 only where the truth is no candidate, and then nearer = ∞
    if ties == "optimistic":
        return Mean(ranks.nearer < k)
    if ties == "pessimistic":
        return Mean(ranks.nearer + tied <= k)
    return Mean(np.clip((k - ranks.nearer) / tied, 0, 1))


def _same_length(Y_true: Samples, Y_pred: Samples) -> None:
    if n_samples(Y_true) != n_samples(Y_pred):
        raise ValueError(f"Y_true has {n_samples(Y_true)} outputs, Y_pred has {n_samples(Y_pred)}.")
