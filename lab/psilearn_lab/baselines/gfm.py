"""Expected-F1 maximization with logistic estimates of P(yᵢ=1, |y|=s | x)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from joblib import delayed
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import safe_sparse_dot

from psilearn.metrics import f1_score
from psilearn.utils import Samples, run_parallel, take, track, validation
from psilearn_lab.arrays import Array, Mask, Pairs, iter_blocks
from psilearn_lab.baselines.baseline import Baseline, DeviceLike
from psilearn_lab.baselines.logistic import MAX_ITERATIONS, TOLERANCE, append_columns, fit_labels


@dataclass(eq=False, repr=False, kw_only=True)
class GFM(Baseline):
    """The label set with the largest expected F1, for logistic estimates of P(yᵢ=1, |y|=s | x).

    The maximization over all label sets is exact (:func:`maximize_expected_f1`), so no threshold is needed. Empty sets
    are predicted only if a training row is empty. With kernel ridge regression in place of logistic regression, this
    is :class:`~psilearn.IOKR` with the kernel :class:`~psilearn.kernels.Dice` and ``candidates="all"``.

    Parameters
    ----------
    C : float or sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        The inverse strength C > 0 of the L2 penalty; the value of a sequence with the best F1 on held-out examples is
        chosen.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``C``.
    device : str, torch.device or None, default=None
        The torch device of the computations; None for NumPy on the CPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.
    estimate : {"multinomial", "sizes"}, default="multinomial"
        How the probabilities are estimated. "multinomial" learns one multinomial regression per label, whose classes
        are yᵢ = 0 and yᵢ = 1 with |y| = s for each size s (EFP in the literature). "sizes" learns one multinomial
        regression for P(|y|=s | x) and, for each label, a logistic regression for P(yᵢ=1 | x, |y|=s) with one
        intercept per size, at the cost of :class:`LR`: for thousands of labels.
    n_jobs : int or None, default=None
        The number of labels that are learned in parallel.

    Attributes
    ----------
    sizes_ : ndarray of shape (S,)
        The sizes s ≥ 1 of the training label sets.
    C_ : float
        The chosen inverse strength of the penalty.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was.
    validation_error_ : float
        1 − F1 on the held-out examples.

    See Also
    --------
    LR : Logistic regression with a threshold.
    maximize_expected_f1 : The exact maximization.

    References
    ----------
    Dembczyński, Jachnik, Kotłowski, Waegeman and Hüllermeier, *Optimizing the F-measure in multi-label classification:
    plug-in rule approach versus structured loss minimization*, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import GFM
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Y = (X[:, :2] > 0).astype(int)
    >>> GFM(C=10.0).fit(X, Y).predict([[2.0, -2.0, 0.0]])
    array([[1, 0]])
    """

    C: float | Sequence[float] = field(default=(0.1, 1.0, 10.0, 100.0), kw_only=False)
    estimate: str = "multinomial"
    n_jobs: int | None = None

    tuned_parameter: ClassVar[str] = "C"
    _labels_only: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_option(self.estimate, ESTIMATES, "estimate")

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Pairs | None) -> float:
        sizes = Y.sum(axis=1).astype(np.intp)
        self.sizes_ = np.unique(sizes[sizes > 0])
        self.estimate_: JointEstimate = ESTIMATES[self.estimate](X, Y, sizes, settings, self.n_jobs, self.device)
        return settings

    def _predict_soft(self, X: Samples) -> Array:
        """Return the probabilities P(yᵢ=1 | x)."""
        return np.concatenate([joint.sum(axis=2) for joint, _ in self._iter_joint(X)])

    def _predict_labels(self, X: Samples) -> Mask:
        if not len(self.sizes_):  # no training row has a label
            return np.zeros((X.shape[0], self.candidates_.shape[1]), dtype=np.bool_)
        return np.concatenate(
            [
                maximize_expected_f1(joint, self.sizes_, empty if self.allows_empty_ else None)
                for joint, empty in self._iter_joint(X)
            ]
        )

    def _validate(self, X: Samples, Y: Array) -> float:
        return 1 - float(f1_score(Y, self._predict_labels(X)))

    def _iter_joint(self, X: Samples) -> Any:
        """Yield P(yᵢ=1, |y|=s | x), (rows, L, S), and P(y=∅ | x), (rows,), for blocks of inputs."""
        n_labels = self.candidates_.shape[1] if self.candidates_.ndim > 1 else 1
        for rows in iter_blocks(X.shape[0], 4 * 8 * n_labels * (len(self.sizes_) + 1)):
            yield self.estimate_.joint(take(X, rows), self.sizes_)


class JointEstimate(Protocol):
    """A fitted estimate of the probabilities of labels and sizes."""

    def joint(self, X: Samples, sizes: Array) -> tuple[Array, Array]:
        """Return P(yᵢ=1, |y|=s | x), (len(X), L, S), and P(y=∅ | x), (len(X),)."""


@dataclass(frozen=True)
class Multinomial:
    """A multinomial logistic regression; a single class has the probability one."""

    classes: Array
    coef: Array  # (classes, d)
    intercept: Array

    @classmethod
    def fit(cls, X: Samples, classes: Array, C: float) -> Multinomial:
        """Learn the probabilities of classes, given as one integer per row."""
        found = np.unique(classes)
        if len(found) == 1:
            return cls(found, np.zeros((1, X.shape[1])), np.zeros(1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits do not matter for a baseline
            model = LogisticRegression(C=C, max_iter=MAX_ITERATIONS, tol=TOLERANCE).fit(X, classes)
        if len(found) > 2:
            return cls(found, model.coef_, model.intercept_)
        return cls(
            found, np.vstack([np.zeros_like(model.coef_), model.coef_]), np.append(0.0, model.intercept_)
        )  # two classes have one vector

    def probabilities(self, X: Samples, classes: Array) -> Array:
        """Return the probabilities of the given classes, (len(X), classes); zero for those that were not seen."""
        P = softmax(np.asarray(safe_sparse_dot(X, self.coef.T)) + self.intercept, axis=1)
        return P @ (self.classes[:, None] == np.asarray(classes))


class LabelMultinomials:
    """One multinomial regression per label, with the classes 0 (absent) and s (present in a set of size s)."""

    def __init__(self, X: Samples, Y: Array, sizes: Array, C: float, n_jobs: int | None, device: DeviceLike) -> None:
        columns = track((Y * sizes[:, None]).T.astype(np.intp), f"multinomial regressions, C = {C:g}", Y.shape[1])
        self.models = list(run_parallel((delayed(Multinomial.fit)(X, column, C) for column in columns), n_jobs))
        self.empty = Multinomial.fit(X, (sizes == 0).astype(np.intp), C)

    def joint(self, X: Samples, sizes: Array) -> tuple[Array, Array]:
        """Return P(yᵢ=1, |y|=s | x) and P(y=∅ | x)."""
        joint = np.stack([model.probabilities(X, sizes) for model in self.models], axis=1)
        return joint, self.empty.probabilities(X, np.array([1]))[:, 0]


class SizesAndLabels:
    """P(|y|=s | x) by one multinomial regression, and P(yᵢ=1 | x, |y|=s) = σ(⟨wᵢ, x⟩ + bᵢₛ) for each label."""

    def __init__(self, X: Samples, Y: Array, sizes: Array, C: float, n_jobs: int | None, device: DeviceLike) -> None:
        self.size_model = Multinomial.fit(X, sizes, C)
        self.sizes = np.unique(sizes)
        indicators = (sizes[:, None] == self.sizes).astype(np.float64)
        coef, self.intercept = fit_labels(append_columns(X, indicators), Y, C, n_jobs, device)
        self.coef, self.size_coef = np.split(coef, [X.shape[1]], axis=1)

    def joint(self, X: Samples, sizes: Array) -> tuple[Array, Array]:
        """Return P(yᵢ=1, |y|=s | x) and P(y=∅ | x)."""
        P = self.size_model.probabilities(X, np.append(0, sizes))
        scores = np.asarray(safe_sparse_dot(X, self.coef.T)) + self.intercept
        offsets = self.size_coef[:, np.isin(self.sizes, sizes)]  # (L, S)
        return expit(scores[:, :, None] + offsets) * P[:, None, 1:], P[:, 0]


ESTIMATES: dict[str, Any] = {"multinomial": LabelMultinomials, "sizes": SizesAndLabels}


def maximize_expected_f1(joint: Array, sizes: Array, empty: Array | None = None) -> Mask:
    """Return the label sets with the largest expected example-based F1, among all 2^L label sets.

    The expected F1 of a set h of size k is Σ_{i∈h} Δᵢₖ with Δᵢₖ = Σₛ 2·P(yᵢ=1, |y|=s)/(s + k), which is linear in h. So
    the best set of size k has the k labels with the largest Δᵢₖ, and the best of these L sets, or the empty set with
    P(y=∅), is the best of all. For k' > k and the largest size m of y, Δᵢₖ' ≤ (m + k)/(m + k') · Δᵢₖ, so that the sum
    of the k' largest Δᵢₖ bounds the expected F1 of all sets of size k'. Examples for which no larger size can be better
    are left out. Cost for each visited size: 2LS flops per example for S sizes of y, and the order of L numbers.

    Parameters
    ----------
    joint : ndarray of shape (n, L, S)
        The probability, not negative, that label i is present and that the set has the size ``sizes[s]``.
    sizes : ndarray of shape (S,)
        The sizes s ≥ 1 of label sets.
    empty : ndarray of shape (n,), default=None
        The probability of the empty set. None does not allow empty sets.

    Returns
    -------
    ndarray of bool of shape (n, L)
        One label set per row; the smallest one if several are best.

    See Also
    --------
    GFM : A baseline that estimates the probabilities.

    References
    ----------
    Waegeman, Dembczyński, Jachnik, Cheng and Hüllermeier, *On the Bayes-optimality of F-measure maximizers*, 2014.

    Examples
    --------
    The sets {0}, {0, 1} and {1, 2} have the probabilities 0.4, 0.3 and 0.3:

    >>> import numpy as np
    >>> from psilearn_lab.baselines import maximize_expected_f1
    >>> joint = np.array([[[0.4, 0.3], [0.0, 0.6], [0.0, 0.3]]])
    >>> maximize_expected_f1(joint, np.array([1, 2])).astype(int)
    array([[1, 1, 0]])
    """
    joint = validation.check_array_of_numbers(joint, "joint", ndim=3)
    sizes = validation.check_array_of_numbers(sizes, "sizes", ndim=1)
    if (joint < 0).any():
        raise ValueError(f"joint must have probabilities, which are not negative; got {joint.min():g}.")
    n, n_labels, _ = joint.shape
    if len(sizes) != joint.shape[2] or not (sizes >= 1).all():
        raise ValueError(
            f"sizes must have one number from 1 per set size of joint, {joint.shape[2]}; got {sizes!r:.80}."
        )
    best_value = np.full(n, -np.inf)
    if empty is not None:
        best_value = np.array(validation.check_array_of_numbers(empty, "empty", ndim=1))
        if len(best_value) != n:
            raise ValueError(f"empty must have one probability per row of joint, {n}; got {len(best_value)}.")
    labels = np.zeros((n, n_labels), dtype=np.bool_)
    rows = np.arange(n)  # those for which this or a larger size can be better
    for k in range(1, n_labels + 1):
        gains = joint @ (2 / (sizes + k))  # (rows, L)
        order = np.argsort(-gains, axis=1)
        totals = np.cumsum(np.take_along_axis(gains, order, axis=1), axis=1)  # of the 1, …, L largest gains
        better = np.flatnonzero(totals[:, k - 1] > best_value[rows])
        best_value[rows[better]] = totals[better, k - 1]
        labels[rows[better]] = False
        labels[rows[better, None], order[better, :k]] = True
        larger = np.arange(k + 1, n_labels + 1)
        bounds = totals[:, k:] * ((sizes.max(initial=1) + k) / (sizes.max(initial=1) + larger))
        can_gain = bounds.max(axis=1, initial=-np.inf) > best_value[rows]
        if not can_gain.all():
            rows, joint = rows[can_gain], joint[can_gain]
        if not len(rows):
            break
    return labels
