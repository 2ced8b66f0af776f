"""Rank correlations between true and predicted rankings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from psilearn._backend import iter_blocks, tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.kernels.ranking_kernels import pair_signs
from psilearn.kernels.row_kernel import check_rows
from psilearn.metrics.scores import Mean, check_same_length
from psilearn.rankings import check_has_preference, check_ranks, collect_items, from_orders, is_orders

# a function of the signs (b, K(K−1)/2) of all item pairs i<j in two rankings per row → one value per row (b,)
SignComparison: TypeAlias = Callable[[Array, Array], Array]


def kendall_tau(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of Kendall's τ-b between true and predicted rankings, row by row.

    τ-b = (concordant − discordant) / √((pairs − ties in y)(pairs − ties in ŷ)), over the pairs of items that both
    rankings contain. It is NaN for a row in which one of the rankings ties all these items.

    Parameters
    ----------
    Y_true : array-like of shape (n, K) or sequence of n str
        The true rankings: ranks (1 is preferred, NaN is unknown) or orders such as ``"b>c>a"``. Each must prefer some
        item to another.
    Y_pred : array-like of shape (n, K) or sequence of n str
        The predicted rankings, in the same form as ``Y_true``.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    spearman_rho : The correlation of the ranks.
    pairwise_accuracy : The share of item pairs in the right order.

    Examples
    --------
    >>> from psilearn.metrics import kendall_tau
    >>> kendall_tau([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [2, 1, 3]])
    0.6667 ± 0.3333
    >>> float(kendall_tau(["a>b>c"], ["c>b>a"]))
    -1.0
    """
    return Mean(_compare_rows(_correlate, Y_true, Y_pred))


def spearman_rho(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of Spearman's ρ between true and predicted rankings, row by row.

    ρ is the correlation of the ranks, where tied items share the average of their ranks, over the items that both
    rankings contain. It is NaN for a row in which one of the rankings ties all these items.

    Parameters
    ----------
    Y_true : array-like of shape (n, K) or sequence of n str
        The true rankings: ranks (1 is preferred, NaN is unknown) or orders such as ``"b>c>a"``. Each must prefer some
        item to another.
    Y_pred : array-like of shape (n, K) or sequence of n str
        The predicted rankings, in the same form as ``Y_true``.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    kendall_tau : The correlation of the order of item pairs.
    pairwise_accuracy : The share of item pairs in the right order.

    Examples
    --------
    >>> from psilearn.metrics import spearman_rho
    >>> float(spearman_rho([[1, 2, 3, 4]], [[2, 1, 3, 4]]))
    0.8
    """

    def correlate_ranks(A: Array, B: Array) -> Array:
        # the averaged rank of an item is, up to a constant, half the sum of sign(rᵢ − rⱼ) over j, which has mean zero
        return _correlate(_sum_over_items(A), _sum_over_items(B))

    return Mean(_compare_rows(correlate_ranks, Y_true, Y_pred))


def pairwise_accuracy(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean share of the item pairs ordered by y that ŷ orders in the same way.

    Only pairs of items that both rankings contain are counted, and a tie in ŷ counts one half. The share is NaN for a
    row in which y orders none of these pairs. For full rankings it is (1 + τ)/2 with Kendall's τ.

    Parameters
    ----------
    Y_true : array-like of shape (n, K) or sequence of n str
        The true rankings: ranks (1 is preferred, NaN is unknown) or orders such as ``"b>c>a"``. Each must prefer some
        item to another.
    Y_pred : array-like of shape (n, K) or sequence of n str
        The predicted rankings, in the same form as ``Y_true``.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    kendall_tau : The correlation of the order of item pairs.
    spearman_rho : The correlation of the ranks.

    Examples
    --------
    >>> from psilearn.metrics import pairwise_accuracy
    >>> float(pairwise_accuracy([[1, 2, 3]], [[1, 3, 2]])) == 2 / 3
    True
    """

    def share_of_pairs(A: Array, B: Array) -> Array:
        ordered = np.sum(A != 0, axis=1)
        right = np.sum((1 + A * B) * (A != 0), axis=1) / 2
        return _divide(right, ordered)

    return Mean(_compare_rows(share_of_pairs, Y_true, Y_pred))


def _compare_rows(compare: SignComparison, Y_true: Samples, Y_pred: Samples) -> Array:
    """Return one value per row from the signs of all item pairs of both rankings, computed block by block.

    A sign is zero where two items are tied and where one of the rankings does not contain both items.
    """
    A, B = _check_rankings(Y_true, Y_pred)
    values = np.empty(len(A))
    for rows in iter_blocks(len(A), 32 * A.shape[1] ** 2):
        known = ~(np.isnan(A[rows]) | np.isnan(B[rows]))
        values[rows] = compare(*(pair_signs(np.where(known, ranks[rows], np.nan)) for ranks in (A, B)))
    return values


def _check_rankings(Y_true: Samples, Y_pred: Samples) -> tuple[Array, Array]:
    """Return checked ranks (n, K) of both, NaN where unknown."""
    check_same_length(Y_true, Y_pred)
    Y_true, Y_pred = tensor_to_numpy(Y_true), tensor_to_numpy(Y_pred)
    if is_orders(Y_true) != is_orders(Y_pred):
        raise ValueError("Y_true and Y_pred must have the same form: both ranks, or both orders such as 'b>c>a'.")
    A, B = _read_orders(Y_true, Y_pred) if is_orders(Y_true) else _read_ranks(Y_true, Y_pred)
    check_ranks(A, "Y_true", partial=True)
    check_has_preference(A, "Y_true")
    return A, B


def _read_orders(Y_true: Samples, Y_pred: Samples) -> tuple[Array, Array]:
    """Return the ranks of orders over all items that either of them names."""
    true_items, predicted_items = collect_items(Y_true, "Y_true"), collect_items(Y_pred, "Y_pred")
    if not set(true_items) & set(predicted_items):
        raise ValueError(f"Y_true orders {', '.join(true_items)}, Y_pred {', '.join(predicted_items)}: no common item.")
    items = sorted({*true_items, *predicted_items})
    return from_orders(Y_true, items, True, "Y_true")[0], from_orders(Y_pred, items, True, "Y_pred")[0]


def _read_ranks(Y_true: Samples, Y_pred: Samples) -> tuple[Array, Array]:
    """Return rows of ranks of the same width, and check the predicted ones."""
    A, B = (
        check_rows(Y, name, "must be rows of ranks", ensure_all_finite="allow-nan").astype(float)
        for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred"))
    )
    if A.shape != B.shape:
        raise ValueError(f"Y_true ranks {A.shape[1]} items, Y_pred {B.shape[1]}.")
    check_ranks(B, "Y_pred", partial=True)
    return A, B


def _correlate(A: Array, B: Array) -> Array:
    """Return ⟨a, b⟩/|a||b| for each row; NaN where one of them is zero."""
    return _divide(np.sum(A * B, axis=1), np.sqrt(np.sum(A**2, axis=1) * np.sum(B**2, axis=1)))


def _divide(numerator: Array, denominator: Array) -> Array:
    """Return the quotients (n,); NaN where the denominator is zero."""
    quotients = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=quotients, where=denominator > 0)
    return quotients


def _sum_over_items(signs: Array) -> Array:
    """Return Σⱼ sign(rᵢ − rⱼ) for each item, (n, K), from the signs of the pairs i<j."""
    K = round((1 + np.sqrt(1 + 8 * signs.shape[1])) / 2)
    i, j = np.triu_indices(K, 1)
    sums = np.empty((len(signs), K))
    for item in range(K):
        sums[:, item] = signs[:, j == item].sum(axis=1) - signs[:, i == item].sum(axis=1)
    return sums
