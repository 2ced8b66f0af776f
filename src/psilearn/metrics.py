"""Losses and scores of structured predictions: means that carry their standard error.

Each function returns a :class:`Mean`, a float that also knows its standard error, so that it serves in
``sklearn.metrics.make_scorer`` as it is and prints as ``0.736 ± 0.011``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn import checks
from psilearn.decode.nearest import Ranks
from psilearn.kernels.base import Array, Kernel, as_kernel
from psilearn.kernels.binary import Dice
from psilearn.kernels.ranking import Kemeny, pair_signs
from psilearn.rankings import from_orders, is_orders
from psilearn.samples import Samples, n_samples

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
    return Mean(kernel.paired_squared_distances(kernel.check(Y_true, "Y_true"), kernel.check(Y_pred, "Y_pred")))


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
    A, B = check(Y_true, "Y_true", allow_1d=False), check(Y_pred, "Y_pred", allow_1d=False)
    if A.shape != B.shape:
        raise ValueError(f"Y_true and Y_pred must have one shape; got {A.shape} and {B.shape}.")
    return Mean(np.asarray((A != B).sum(axis=1)).ravel() / A.shape[1])


def kendall_tau(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of Kendall's τ-b between rankings, row by row.

    τ-b = (concordant − discordant) / √((pairs − ties in y)(pairs − ties in ŷ)) over the pairs of items that both rank;
    NaN where one of them ties all of these. Rankings are ranks (1 = preferred, NaN = unknown) or orders, ``"b>c>a"``,
    both in one form.

    Examples
    --------
    >>> kendall_tau([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [2, 1, 3]])
    0.6667 ± 0.3333
    >>> float(kendall_tau(["a>b>c"], ["c>b>a"]))
    -1.0
    """
    A, B = _signs_of_known_pairs(Y_true, Y_pred)
    untied = np.sqrt(np.sum(A**2, axis=1) * np.sum(B**2, axis=1))
    return Mean(np.divide(np.sum(A * B, axis=1), untied, out=np.full(len(A), np.nan), where=untied > 0))


def spearman_rho(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of Spearman's ρ between rankings, row by row: the correlation of the ranks, tied ones averaged.

    Over the items that both rank; NaN where one of them ties all of these. Rankings as in :func:`kendall_tau`.

    Examples
    --------
    >>> float(spearman_rho([[1, 2, 3, 4]], [[2, 1, 3, 4]]))
    0.8
    """
    signs = _signs_of_known_pairs(Y_true, Y_pred)
    K = round((1 + np.sqrt(1 + 8 * signs[0].shape[1])) / 2)
    i, j = np.triu_indices(K, 1)
    centred = []  # an averaged rank is, up to a constant, half the sum of sign(rᵢ − rⱼ) over j: of mean zero
    for S in signs:
        sums = np.zeros((len(S), K))
        for item in range(K):
            sums[:, item] = S[:, j == item].sum(axis=1) - S[:, i == item].sum(axis=1)
        centred.append(sums)
    A, B = centred
    lengths = np.sqrt(np.sum(A**2, axis=1) * np.sum(B**2, axis=1))
    return Mean(np.divide(np.sum(A * B, axis=1), lengths, out=np.full(len(A), np.nan), where=lengths > 0))


def pairwise_accuracy(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean share of item pairs, of those that y orders, that ŷ orders the same way; a tie in ŷ counts half.

    Over the pairs of items that both rank; NaN where y orders none of these. Rankings as in :func:`kendall_tau`. For
    full rankings it is (1 + τ)/2.

    Examples
    --------
    >>> float(pairwise_accuracy([[1, 2, 3]], [[1, 3, 2]])) == 2 / 3
    True
    """
    A, B = _signs_of_known_pairs(Y_true, Y_pred)
    ordered = np.sum(A != 0, axis=1)
    right = np.sum((1 + A * B) * (A != 0), axis=1) / 2
    return Mean(np.divide(right, ordered, out=np.full(len(A), np.nan), where=ordered > 0))


def _signs_of_known_pairs(Y_true: Samples, Y_pred: Samples) -> tuple[Array, Array]:
    """Return the signs of the item pairs i<j of both, (n, K(K−1)/2); zero where one of them misses an item."""
    _same_length(Y_true, Y_pred)
    if is_orders(Y_true) != is_orders(Y_pred):
        raise ValueError("Y_true and Y_pred must have one form: both ranks, or both orders such as 'b>c>a'.")
    if is_orders(Y_true):
        both, _ = from_orders([*Y_true, *Y_pred], partial=True, name="Y_true and Y_pred")
        A, B = both[: n_samples(Y_true)], both[n_samples(Y_true) :]
    else:
        check = Kemeny(partial=True).check
        A, B = (np.asarray(check(Y, name), float) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred")))
    if A.shape != B.shape:
        raise ValueError(f"Y_true ranks {A.shape[1]} items, Y_pred {B.shape[1]}.")
    i, j = np.triu_indices(A.shape[1], 1)
    known = ~(np.isnan(A) | np.isnan(B))
    pairs = known[:, i] & known[:, j]
    return pair_signs(A) * pairs, pair_signs(B) * pairs


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
    >>> from psilearn.decode import Ranks
    >>> ranks = Ranks(nearer=np.array([1.0]), tied=np.array([2.0]))
    >>> [float(top_k_accuracy(ranks, 2, ties)) for ties in ("expected", "optimistic", "pessimistic")]
    [0.5, 1.0, 0.0]
    """
    checks.count(k, "k")
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
