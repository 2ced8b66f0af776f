"""Ensembles of classifier chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from joblib import delayed
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from psilearn.utils import Index, Samples, run_parallel, track, validation
from psilearn_lab.arrays import Array, Pairs
from psilearn_lab.baselines.baseline import Baseline, DeviceLike
from psilearn_lab.baselines.logistic import TOLERANCE, append_columns, fit_label, fit_labels, fit_labels_at_once


@dataclass(eq=False, repr=False, kw_only=True)
class ECC(Baseline):
    """Ensemble of classifier chains: logistic regressions that also see the labels before them in a random order.

    Each chain predicts one label after the other; the predicted labels (probability at least ½) are inputs of the
    following regressions, which are learned with the true ones. The score of a label is the mean of its probabilities
    over all chains, and one threshold is chosen for all labels.

    Parameters
    ----------
    C : float or sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        The inverse strength C > 0 of the L2 penalty; the value of a sequence with the best F1 on held-out examples is
        chosen.
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose ``C`` and the threshold.
    device : str, torch.device or None, default=None
        The torch device of the computations; None for NumPy on the CPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples and of the orders of labels.
    verbose : int, default=0
        Whether to show a progress bar.
    n_chains : int, default=10
        The number of chains.
    max_chain_labels : int or None, default=None
        The number of labels in the chains: the most frequent ones. The others have a logistic regression of the
        inputs alone, as in :class:`LR`: for thousands of labels. None is all labels.
    n_jobs : int or None, default=None
        The number of chains that are learned in parallel.

    Attributes
    ----------
    chains_ : list
        The fitted chains.
    C_ : float
        The chosen inverse strength of the penalty.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. If not, the label with the highest score is
        predicted where no score reaches the threshold.
    threshold_ : float
        The smallest mean probability of a predicted label.
    validation_error_ : float
        1 − F1 on the held-out examples.

    See Also
    --------
    LR : One logistic regression per label, without chains.

    References
    ----------
    Read, Pfahringer, Holmes and Frank, *Classifier chains for multi-label classification*, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import ECC
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Y = (X[:, :2] > 0).astype(int)
    >>> ECC(C=10.0, n_chains=3).fit(X, Y).predict([[2.0, -2.0, 0.0]])
    array([[1, 0]])
    """

    C: float | Sequence[float] = field(default=(0.1, 1.0, 10.0, 100.0), kw_only=False)
    n_chains: int = 10
    max_chain_labels: int | None = None
    n_jobs: int | None = None

    tuned_parameter: ClassVar[str] = "C"
    _labels_only: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_count(self.n_chains, "n_chains")
        if self.max_chain_labels is not None:
            validation.check_count(self.max_chain_labels, "max_chain_labels")

    def _learn(self, X: Samples, Y: Array, settings: float, held_out: Pairs | None) -> float:
        frequent = np.argsort(-Y.sum(axis=0), kind="stable")[: self.max_chain_labels]
        rng = check_random_state(self.random_state)
        orders = track([rng.permutation(frequent) for _ in range(self.n_chains)], f"chains, C = {settings:g}")
        if self.device is not None:
            self.chains_ = [Chain.fit_at_once(X, Y, order, settings, self.device) for order in orders]
        else:
            tasks = (delayed(Chain.fit)(X, Y, order, settings) for order in orders)
            self.chains_ = list(run_parallel(tasks, self.n_jobs))
        self.others_ = np.setdiff1d(np.arange(Y.shape[1]), frequent)
        self.coef_, self.intercept_ = fit_labels(X, Y[:, self.others_], settings, self.n_jobs, self.device)
        return settings

    def _predict_soft(self, X: Samples) -> Array:
        soft = np.zeros((X.shape[0], self.chains_[0].order.size + len(self.others_)))
        for chain in self.chains_:
            soft[:, chain.order] += chain.probabilities(X) / len(self.chains_)
        if len(self.others_):
            soft[:, self.others_] = expit(np.asarray(safe_sparse_dot(X, self.coef_.T)) + self.intercept_)
        return soft


@dataclass(frozen=True)
class Chain:
    """Logistic regressions of labels on the inputs and on the labels before them."""

    order: Index  # the labels, first one first
    coef: Array  # (labels, d), the weights of the inputs
    label_coef: Array  # (labels, labels), lower triangular: the weights of the labels before
    intercept: Array

    @classmethod
    def fit(cls, X: Samples, Y: Array, order: Index, C: float) -> Chain:
        """Learn one label after the other, from the inputs and the true values of the labels before."""
        n_labels, d = len(order), X.shape[1]
        coef, label_coef, intercept = np.empty((n_labels, d)), np.zeros((n_labels, n_labels)), np.empty(n_labels)
        features = append_columns(X, Y[:, order])
        for j, label in enumerate(order):
            weights, intercept[j] = fit_label(features[:, : d + j], Y[:, label], C)
            coef[j], label_coef[j, :j] = weights[:d], weights[d:]
        return cls(order, coef, label_coef, intercept)

    @classmethod
    def fit_at_once(cls, X: Samples, Y: Array, order: Index, C: float, device: DeviceLike) -> Chain:
        """Do the same for all labels at once on a device; the label at place j may use the labels at places below j."""
        n_labels, d = len(order), X.shape[1]
        allowed = np.vstack([np.ones((d, n_labels)), np.triu(np.ones((n_labels, n_labels)), 1)])
        features = append_columns(X, Y[:, order])
        coef, intercept = fit_labels_at_once(features, Y[:, order], C, TOLERANCE, device, allowed)
        return cls(order, coef[:, :d], coef[:, d:], intercept)

    def probabilities(self, X: Samples) -> Array:
        """Return the probability of each label of the chain, in its order, given the predicted labels before it."""
        scores = np.asarray(safe_sparse_dot(X, self.coef.T)) + self.intercept
        for j in range(1, scores.shape[1]):
            scores[:, j] += (scores[:, :j] >= 0) @ self.label_coef[j, :j]
        return np.asarray(expit(scores))
