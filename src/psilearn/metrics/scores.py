"""Scores and losses of label sets, alone and in a hierarchy, of strings and of candidates, and the loss of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, check_collection
from psilearn.kernels import HierarchicalDice, Hierarchy, Kernel, as_kernel
from psilearn.kernels.binary import Dice, Tanimoto
from psilearn.kernels.inner_products import paired_inner_products
from psilearn.kernels.linear import Linear
from psilearn.kernels.string.edit_gaussian import paired_edit_distances
from psilearn.kernels.string.tokens import check_strings

TIES = ("expected", "optimistic", "pessimistic")


class Mean(float):
    """Mean of one value per example, a float that also carries its standard error.

    Parameters
    ----------
    values : array-like of shape (n,)
        One value per example, at least one.

    Attributes
    ----------
    values : ndarray of shape (n,)
        The values, in float64.
    standard_error : float
        The standard error s/√n of the mean, where s is the sample standard deviation; NaN for a single example.

    See Also
    --------
    f1_score : A metric that returns a mean.

    Examples
    --------
    >>> from psilearn.metrics import Mean
    >>> mean = Mean([1.0, 2.0, 3.0])
    >>> mean
    2.0000 ± 0.5774
    >>> mean + 1
    3.0
    """

    values: Array
    standard_error: float

    def __new__(cls, values: ArrayLike) -> Mean:
        """Compute the mean and its standard error."""
        values = validation.check_array_of_numbers(values, "values", ndim=1, allow_nan=True, allow_infinite=True)
        mean = super().__new__(cls, np.mean(values))
        mean.values = values
        with np.errstate(over="ignore", invalid="ignore"):  # values that are infinite or too large to square
            deviation = np.std(values, ddof=1) if len(values) > 1 else np.nan
        mean.standard_error = float(deviation / np.sqrt(len(values)))
        return mean

    def __reduce__(self) -> tuple[type[Mean], tuple[Array]]:
        """Return the class and the values, from which a pickle is restored."""
        return Mean, (self.values,)

    def __repr__(self) -> str:
        """Return the mean and its standard error, as in ``0.7360 ± 0.0110``."""
        return f"{float(self):.4f} ± {self.standard_error:.4f}"

    __str__ = __repr__


def check_same_length(Y_true: Samples, Y_pred: Samples) -> None:
    """Raise an error if the numbers of true and predicted outputs differ."""
    n_true, n_predicted = check_collection(Y_true, "Y_true"), check_collection(Y_pred, "Y_pred")
    if n_true != n_predicted:
        raise ValueError(f"Y_true has {n_true} outputs, Y_pred has {n_predicted}.")


def f1_score(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the example-based F1 score of label sets, the mean of 2|A∩B| / (|A| + |B|).

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. Two empty sets have the score 1.

    See Also
    --------
    jaccard_score : The same with |A∩B| / |A∪B|.
    subset_accuracy : The share of label sets that are predicted exactly.
    hamming_loss : The share of single labels that are predicted wrongly.

    Examples
    --------
    >>> from psilearn.metrics import f1_score
    >>> f1_score([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.8333 ± 0.1667
    """
    return _mean_similarity(Dice(), Y_true, Y_pred)


def jaccard_score(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the example-based Jaccard score of label sets, the mean of |A∩B| / |A∪B|.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. Two empty sets have the score 1.

    See Also
    --------
    f1_score : The same with 2|A∩B| / (|A| + |B|).
    subset_accuracy : The share of label sets that are predicted exactly.

    Examples
    --------
    >>> from psilearn.metrics import jaccard_score
    >>> jaccard_score([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.7500 ± 0.2500
    """
    return _mean_similarity(Tanimoto(), Y_true, Y_pred)


def subset_accuracy(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the share of rows that are predicted exactly, all labels together.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true rows.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted rows.

    Returns
    -------
    Mean
        The share of the n rows that are equal, with its standard error.

    See Also
    --------
    hamming_loss : The share of single labels that are predicted wrongly.
    f1_score : A score that rewards label sets that are partly right.

    Examples
    --------
    >>> from psilearn.metrics import subset_accuracy
    >>> subset_accuracy([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.5000 ± 0.5000
    """
    n_wrong, _ = _count_wrong_labels(Y_true, Y_pred)
    return Mean(n_wrong == 0)


def hamming_loss(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean share of labels that differ between true and predicted rows.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true rows.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted rows.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    subset_accuracy : The share of rows in which no label differs.
    f1_score : A score that ignores the labels which are absent from both sets.

    Examples
    --------
    >>> from psilearn.metrics import hamming_loss
    >>> hamming_loss([[1, 1, 0, 0]], [[1, 0, 0, 0]])
    0.2500 ± nan
    """
    n_wrong, n_labels = _count_wrong_labels(Y_true, Y_pred)
    return Mean(n_wrong / n_labels)


def _mean_similarity(kernel: Dice | Tanimoto, Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of k(y, ŷ) over pairs of label sets."""
    check_same_length(Y_true, Y_pred)
    return Mean(kernel.paired(kernel.check(Y_true, "Y_true"), kernel.check(Y_pred, "Y_pred")))


def _count_wrong_labels(Y_true: Samples, Y_pred: Samples) -> tuple[Array, int]:
    """Return the number of entries that differ in each row, (n,), and the number of columns."""
    check_same_length(Y_true, Y_pred)
    check = Linear().check
    A, B = (check(tensor_to_numpy(Y), name, allow_1d=False) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred")))
    if A.shape != B.shape:
        raise ValueError(f"Y_true and Y_pred must have the same shape; got {A.shape} and {B.shape}.")
    return np.asarray((A != B).sum(axis=1)).ravel(), int(A.shape[1])


def kernel_loss(Y_true: Samples, Y_pred: Samples, kernel: Kernel | Callable[[Any, Any], float]) -> Mean:
    """Return the mean squared distance of true and predicted outputs in the space of a kernel.

    The distance is |ψ(y) − ψ(ŷ)|² = k(y,y) + k(ŷ,ŷ) − 2k(y,ŷ), the loss that output kernel regression minimizes.

    Parameters
    ----------
    Y_true : collection of n outputs
        The true outputs, in any form that the kernel accepts.
    Y_pred : collection of n outputs
        The predicted outputs, in the same form.
    kernel : Kernel or callable
        The output kernel, or a function k(y, ŷ) of two outputs.

    Returns
    -------
    Mean
        The mean of the distances, with its standard error.

    See Also
    --------
    f1_score : For label sets; the loss of the kernel ``Dice`` is 2 − 2·F1.
    kendall_tau : For rankings; the loss of the kernel ``Kemeny`` on full rankings is 2 − 2τ.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> from psilearn.metrics import kernel_loss
    >>> kernel_loss([[0.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [1.0, 1.0]], Linear())
    2.0000 ± 2.0000
    """
    check_same_length(Y_true, Y_pred)
    if kernel is None:
        raise TypeError("kernel must be a kernel of psilearn.kernels or a function k(a, b); got None.")
    if not isinstance(kernel, Kernel):
        kernel = as_kernel(kernel, "kernel")
    truth, predicted = kernel.check(Y_true, "Y_true"), kernel.check(Y_pred, "Y_pred")
    return Mean(kernel.paired_squared_distances(truth, predicted))


class TruthPositions(NamedTuple):
    """Position of the true output among the distinct candidates of each example.

    Parameters
    ----------
    nearer : ndarray of shape (n,)
        The number of candidates that are strictly nearer than the true output; ∞ if the true output is not among the
        candidates.
    tied : ndarray of shape (n,)
        The number of candidates at the distance of the true output, including the true output itself; 0 if it is not
        among the candidates.

    See Also
    --------
    top_k_accuracy : How often the true output is among the first k candidates.

    Examples
    --------
    The first true output is nearest; the second shares the positions 2 and 3 with one other candidate:

    >>> import numpy as np
    >>> from psilearn.metrics import TruthPositions
    >>> positions = TruthPositions(nearer=np.array([0.0, 1.0]), tied=np.array([1.0, 2.0]))
    >>> positions.nearer + 1
    array([1., 2.])
    """

    nearer: Array
    tied: Array


def top_k_accuracy(positions: TruthPositions, k: int, ties: str = "expected") -> Mean:
    """Return how often the true output is among the k nearest candidates, with an explicit policy for ties.

    Parameters
    ----------
    positions : TruthPositions
        The positions of the true outputs, as returned by ``model.truth_positions(X, y, candidates)``.
    k : int
        The number of nearest candidates to search for the true output.
    ties : {"expected", "optimistic", "pessimistic"}, default="expected"
        How candidates at the same distance as the true output are ordered: at random, where the probability of a hit
        is counted ("expected"), all behind the true output ("optimistic"), or all before it ("pessimistic").

    Returns
    -------
    Mean
        The share of hits, with its standard error.

    See Also
    --------
    TruthPositions : The positions that are counted.
    mean_reciprocal_rank : The mean of 1/position.

    Examples
    --------
    The true output shares the second place with one other candidate:

    >>> import numpy as np
    >>> from psilearn.metrics import TruthPositions, top_k_accuracy
    >>> positions = TruthPositions(nearer=np.array([1.0]), tied=np.array([2.0]))
    >>> [float(top_k_accuracy(positions, 2, ties)) for ties in ("expected", "optimistic", "pessimistic")]
    [0.5, 1.0, 0.0]
    """
    validation.check_count(k, "k")
    _check_positions(positions, ties)
    return Mean(hits(positions, k, ties))


def mean_reciprocal_rank(positions: TruthPositions, k: int | None = 25, ties: str = "expected") -> Mean:
    """Return the mean of 1/position of the true outputs, where positions beyond k count 0.

    Parameters
    ----------
    positions : TruthPositions
        The positions of the true outputs, as returned by ``model.truth_positions(X, y, candidates)``.
    k : int or None, default=25
        The last position that counts: MRR@k. None counts all positions.
    ties : {"expected", "optimistic", "pessimistic"}, default="expected"
        How candidates at the same distance as the true output are ordered: at random, where the mean of 1/position is
        counted ("expected"), all behind the true output ("optimistic"), or all before it ("pessimistic").

    Returns
    -------
    Mean
        The mean reciprocal rank, with its standard error.

    See Also
    --------
    top_k_accuracy : How often the true output is among the first k candidates.

    Examples
    --------
    The first true output is nearest, and the second shares the positions 2 and 3 with one other candidate:

    >>> import numpy as np
    >>> from psilearn.metrics import TruthPositions, mean_reciprocal_rank
    >>> positions = TruthPositions(nearer=np.array([0.0, 1.0]), tied=np.array([1.0, 2.0]))
    >>> round(float(mean_reciprocal_rank(positions)), 4)
    0.7083
    """
    _check_positions(positions, ties)
    limit = np.inf if k is None else validation.check_count(k, "k")
    tied = np.maximum(positions.tied, 1)  # 0 only if the truth is not a candidate, and then nearer = ∞
    if ties != "expected":
        place = positions.nearer + (1 if ties == "optimistic" else tied)
        return Mean(np.where(place <= limit, 1 / place, 0.0))
    last = np.minimum(positions.nearer + tied, limit)
    counted = positions.nearer < last  # and therefore finite
    sums = np.zeros(len(positions.nearer))
    sums[counted] = _harmonic(last[counted]) - _harmonic(positions.nearer[counted])
    return Mean(sums / tied)


def _harmonic(n: Array) -> Array:
    """Return 1 + 1/2 + … + 1/n."""
    return np.asarray(digamma(n + 1) + np.euler_gamma)


def _check_positions(positions: TruthPositions, ties: str) -> None:
    if not isinstance(positions, TruthPositions):
        raise TypeError(f"positions must be TruthPositions(nearer, tied); got {type(positions).__name__}.")
    validation.check_option(ties, TIES, "ties")


def hits(positions: TruthPositions, k: int, ties: str = "expected") -> Array:
    """Return the probability that each true output is among the first k candidates, in the shape of the positions."""
    tied = np.maximum(positions.tied, 1)  # 0 only if the truth is not a candidate, and then nearer = ∞
    if ties == "optimistic":
        return np.asarray(positions.nearer < k)
    if ties == "pessimistic":
        return np.asarray(positions.nearer + tied <= k)
    return np.clip((k - positions.nearer) / tied, 0, 1)


def hierarchical_f1(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> Mean:
    """Return the hierarchical F1 of label sets, the mean of 2|Ā∩B̄| / (|Ā| + |B̄|) with all ancestors.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.
    hierarchy : Hierarchy
        The parents of the labels.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. Two empty sets have the score 1.

    See Also
    --------
    hierarchical_precision : The share of predicted labels that are right.
    hierarchical_recall : The share of true labels that are predicted.
    psilearn.kernels.HierarchicalDice : The kernel whose mean this is.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> from psilearn.metrics import hierarchical_f1
    >>> hierarchical_f1([[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], Hierarchy([-1, 0, 0]))
    0.5833 ± 0.0833
    """
    common, n_true, n_predicted = _compare_closures(Y_true, Y_pred, hierarchy)
    return Mean(_shares(2 * common, n_true + n_predicted))


def hierarchical_precision(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> Mean:
    """Return the hierarchical precision of label sets, the mean of |Ā∩B̄| / |B̄| with all ancestors.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.
    hierarchy : Hierarchy
        The parents of the labels.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. An empty prediction has the precision 1.

    See Also
    --------
    hierarchical_recall : The share of true labels that are predicted.
    hierarchical_f1 : The harmonic mean of both, per example.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> from psilearn.metrics import hierarchical_precision
    >>> hierarchical_precision([[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], Hierarchy([-1, 0, 0]))
    0.7500 ± 0.2500
    """
    common, _, n_predicted = _compare_closures(Y_true, Y_pred, hierarchy)
    return Mean(_shares(common, n_predicted))


def hierarchical_recall(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> Mean:
    """Return the hierarchical recall of label sets, the mean of |Ā∩B̄| / |Ā| with all ancestors.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.
    hierarchy : Hierarchy
        The parents of the labels.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. The recall of an empty set is 1.

    See Also
    --------
    hierarchical_precision : The share of predicted labels that are right.
    hierarchical_f1 : The harmonic mean of both, per example.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> from psilearn.metrics import hierarchical_recall
    >>> hierarchical_recall([[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], Hierarchy([-1, 0, 0]))
    0.5000 ± 0.0000
    """
    common, n_true, _ = _compare_closures(Y_true, Y_pred, hierarchy)
    return Mean(_shares(common, n_true))


def _compare_closures(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> tuple[Array, Array, Array]:
    """Return |Ā∩B̄|, |Ā| and |B̄| of each example."""
    check_same_length(Y_true, Y_pred)
    kernel = HierarchicalDice(hierarchy)
    rows = [
        kernel.features(tensor_to_numpy(kernel.check(Y, name))) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred"))
    ]
    common = np.asarray(paired_inner_products(*rows), dtype=np.float64)
    sizes = [np.asarray(part.sum(axis=1), dtype=np.float64).ravel() for part in rows]
    return common, sizes[0], sizes[1]


def _shares(part: Array, whole: Array) -> Array:
    """Return part/whole, and 1 where the whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 1.0)


def edit_distance(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean number of insertions, deletions and substitutions between true and predicted strings.

    Needs rapidfuzz: ``pip install 'psilearn[strings]'``.

    Parameters
    ----------
    Y_true : sequence of n strings or sequences of tokens
        The true strings.
    Y_pred : sequence of n strings or sequences of tokens
        The predicted strings.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    edit_similarity : The same relative to the length of the longer string.

    Examples
    --------
    >>> from psilearn.metrics import edit_distance
    >>> edit_distance(["tea", "cat"], ["tee", "cats"])  # doctest: +SKIP
    1.0000 ± 0.0000
    """
    check_same_length(Y_true, Y_pred)
    return Mean(paired_edit_distances(check_strings(Y_true, "Y_true"), check_strings(Y_pred, "Y_pred")))


def edit_similarity(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of 1 − d/m, where d is the edit distance and m the length of the longer string.

    Needs rapidfuzz: ``pip install 'psilearn[strings]'``.

    Parameters
    ----------
    Y_true : sequence of n strings or sequences of tokens
        The true strings.
    Y_pred : sequence of n strings or sequences of tokens
        The predicted strings.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error: 1 for equal strings, 0 for strings without a common token.

    See Also
    --------
    edit_distance : The number of edits.

    Examples
    --------
    >>> from psilearn.metrics import edit_similarity
    >>> edit_similarity(["tea", "cat"], ["tee", "cats"])  # doctest: +SKIP
    0.7083 ± 0.0417
    """
    distances = edit_distance(Y_true, Y_pred).values
    longest = [max(len(a), len(b)) for a, b in zip(Y_true, Y_pred, strict=True)]
    return Mean(1 - distances / np.array(longest))
