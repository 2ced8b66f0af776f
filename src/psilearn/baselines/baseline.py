"""What the baselines share: they predict vectors, and choose labels or candidates by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from psilearn._backend import require_memory, row_blocks
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.holdout import hold_out
from psilearn._utils.progress import show_progress
from psilearn._utils.samples import Index, Samples, describe, distinct, match, n_columns, n_samples, take
from psilearn.baselines.thresholds import best_threshold
from psilearn.decoding import CandidateSets, Ranks, TopK, as_candidates
from psilearn.decoding.bounds import TIE
from psilearn.decoding.nearest import count_nearer, smallest
from psilearn.kernels.kernel import check_rows
from psilearn.kernels.vector import Linear
from psilearn.metrics import f1_score


class Baseline(BaseEstimator):
    """A system that predicts a vector for each input: a score a label, or the numbers themselves.

    Outputs are rows of 0 and 1 (dense or CSR), for which labels with a score of at least ``threshold_`` are predicted,
    or rows of other numbers, which are predicted as they are, dense. A part of the training examples is held out to
    choose what a list was given for, and the threshold; then all of them are learned from.

    A subclass defines ``_learn`` and ``_soft``, names in ``_tuned`` the parameter that may be a list, and may judge
    candidates in its own way: the cost of y at x is ⟨s(x), y⟩ + r(y), by default the squared distance to the predicted
    vector without |ŷ|², which is the same for every y.
    """

    validation_fraction: float
    random_state: Any
    verbose: int
    _tuned: str = ""
    _binary_only = False

    def fit(self, X: Samples, y: Samples) -> Self:
        """Learn from pairs (xᵢ, yᵢ).

        Parameters
        ----------
        X : array or CSR matrix (n, d)
        y : array or CSR matrix (n, L), or n numbers
        """
        self._check_parameters()
        given, X = X, self._check_inputs(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = _rows(y, "y")
        if n_samples(X) != n_samples(y):
            raise ValueError(
                f"X and y must have one row an example: X has {n_samples(X)}, y has {n_samples(y)} ({describe(y)})."
            )
        Y = _dense(y, "y")
        labels = (Y == 0) | (Y == 1)
        binary = bool(labels.all())
        if self._binary_only and not binary:
            odd = Y[~labels][0]
            raise ValueError(
                f"{type(self).__name__} predicts sets of labels: y must hold 0 and 1 only; it has {odd:g}."
            )
        learner = copy(self)  # so that a fit that fails changes nothing
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(learner, name)
        learner.binary_, learner.candidates_ = binary, take(y, distinct(y).first)
        if n_columns(X) is not None:
            validate_data(learner, given, skip_check_array=True)  # remembers the number and the names of the columns
        with show_progress(self.verbose):
            learner._select(X, Y)
        self.__dict__ = learner.__dict__
        return self

    def _select(self, X: Samples, Y: Array) -> None:
        """Choose on held-out examples what is to be chosen, then learn from all."""
        values = self._values()
        if self._tuned:
            setattr(self, f"{self._tuned}_", values[0])
        if not (self.binary_ or len(values) > 1 or self._needs_validation()):
            self._learn(X, Y, self._settings(values[0]), None)
            return
        kept, held = hold_out(n_samples(X), self.validation_fraction, self.random_state)
        X_held, Y_held = take(X, held), Y[held]
        best, best_error = None, np.inf
        for value in values:
            settings = self._learn(take(X, kept), Y[kept], self._settings(value), (X_held, Y_held))
            soft = self._soft(X_held)
            error = validation_error(self.binary_)(Y_held, soft)
            if best is None or error < best_error:
                best, best_error = (settings, soft, value, dict(vars(self))), error
        assert best is not None
        settings, soft, chosen, attributes = best
        self.__dict__ = attributes  # what was seen on the way is that of the chosen value
        if self.binary_:
            self.threshold_ = best_threshold(Y_held, soft)
        if self._tuned:
            setattr(self, f"{self._tuned}_", chosen)
        self.validation_error_ = float(best_error)
        self._learn(X, Y, settings, None)

    def predict_soft(self, X: Samples) -> Array:
        """Return the predicted vectors: scores of labels, mostly in [0, 1], or numbers; shape (len(X), L)."""
        check_is_fitted(self)
        with show_progress(self.verbose):
            return self._soft(self._checked_inputs(X))

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Return the predicted outputs, in the form of y; with candidates, the one of least cost for each input.

        Parameters
        ----------
        X : inputs
        candidates : collection of outputs, or one collection an input; optional
        """
        if candidates is not None:
            return self.predict_topk(X, 1, candidates).nearest
        soft = self.predict_soft(X)
        if self.binary_:
            known = self.candidates_
            labels = soft >= self.threshold_
            if sparse.issparse(known):
                return type(known)(labels, dtype=known.dtype)
            soft = labels.astype(known.dtype)
        return soft[:, 0] if self.candidates_.ndim == 1 else soft

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Return the k candidates of least cost of each input; ``distances`` are costs, which may be negative.

        Parameters
        ----------
        X : inputs
        k : int
        candidates : as in ``predict``; by default the distinct training outputs, ``candidates_``
        """
        k = validation.check_count(k, "k")
        check_is_fitted(self)
        X = self._checked_inputs(X)
        prepared = self._prepare(candidates, n_samples(X))
        sets = prepared.sets if isinstance(prepared, CandidateSets) else [prepared]
        k = min(k, max(map(n_samples, sets)))
        indices, costs = np.full((n_samples(X), k), -1, dtype=np.intp), np.full((n_samples(X), k), np.inf)
        for examples, _, D, slack in self._costs(X, prepared):
            columns = min(k, D.shape[1])
            indices[examples, :columns], costs[examples, :columns] = smallest(D, slack, columns)
        return TopK(indices, costs, prepared)

    def rank(self, X: Samples, y: Samples, candidates: Any = None) -> Ranks:
        """Return where the true output of each input stands among its distinct candidates, ties counted apart."""
        check_is_fitted(self)
        X = self._checked_inputs(X)
        truth = self._check_outputs(y, "y")
        if n_samples(X) != n_samples(truth):
            raise ValueError(f"X has {n_samples(X)} examples, y has {n_samples(truth)}.")
        prepared = self._prepare(candidates, n_samples(X))
        if isinstance(prepared, CandidateSets):
            prepared = prepared.distinct()
        else:
            prepared = take(prepared, distinct(prepared).first)
        nearer, tied = np.full(n_samples(X), np.inf), np.zeros(n_samples(X))
        for examples, C, D, slack in self._costs(X, prepared):
            places = match(take(truth, examples), C)
            rows = np.flatnonzero(places >= 0)
            at = places[rows, None]
            own, own_slack = (np.take_along_axis(part[rows], at, axis=1) for part in (D, slack))
            nearer[examples[rows]], tied[examples[rows]] = count_nearer(D[rows], slack[rows], own, own_slack)
        return Ranks(nearer, tied)

    def costs(self, X: Samples, candidates: Any = None) -> Iterator[tuple[Index, Samples, Array, Array]]:
        """Yield what candidates cost, ⟨s(x), y⟩ + r(y), for examples that share them, block by block.

        Each item holds the examples (m,), their candidates (c of them), the costs (m, c) and how much of each may be
        rounding: costs that differ by less are a tie.

        Parameters
        ----------
        X : inputs
        candidates : as in ``predict_topk``
        """
        check_is_fitted(self)
        X = self._checked_inputs(X)
        yield from self._costs(X, self._prepare(candidates, n_samples(X)))

    def score(self, X: Samples, y: Samples) -> float:
        """Return the mean example-based F1 of predicted labels, or minus the mean squared distance of numbers."""
        prediction = self.predict(X)
        truth = self._check_outputs(y, "y")
        if n_samples(prediction) != n_samples(truth):
            raise ValueError(f"X has {n_samples(prediction)} examples, y has {n_samples(truth)}.")
        if self.binary_:
            as_rows = (one.reshape(-1, 1) if one.ndim == 1 else one for one in (truth, prediction))
            return float(f1_score(*as_rows))
        return -_mean_squared(_dense(truth, "y"), _dense(prediction, "the prediction"))

    def _costs(self, X: Samples, candidates: Samples | CandidateSets) -> Iterator[tuple[Index, Samples, Array, Array]]:
        """Yield examples, their common candidates, costs ⟨s(x), y⟩ + r(y) (m, c), and what of them may be rounding."""
        everyone = np.arange(n_samples(X))
        groups = candidates.groups() if isinstance(candidates, CandidateSets) else [(candidates, everyone)]
        S = np.asarray(self._linear_costs(X), dtype=np.float64)  # (n, L)
        lengths = np.linalg.norm(S, axis=1)
        linear = Linear()
        for C, members in groups:
            rows = C.reshape(-1, 1) if C.ndim == 1 else C
            own = np.asarray(self._candidate_costs(rows), dtype=np.float64)  # (c,)
            norms = np.sqrt(linear.diag(rows))
            for part in row_blocks(len(members), 24 * n_samples(rows)):
                examples = members[part]
                D = linear(S[examples], rows)
                D += own
                yield examples, C, D, TIE * (lengths[examples, None] * norms + np.abs(own))

    def _linear_costs(self, X: Samples) -> Array:
        """Return s(x), shape (len(X), L)."""
        return -2 * self._soft(X)

    def _candidate_costs(self, C: Samples) -> Array:
        """Return r(y) for rows of candidates, shape (len(C),)."""
        return Linear().diag(C)

    def _learn(self, X: Samples, Y: Array, settings: Any, held_out: tuple[Samples, Array] | None) -> Any:
        """Set the fitted attributes from pairs; return the settings, completed by what held-out pairs have chosen.

        Parameters
        ----------
        X, Y : inputs, array (n, L)
        settings : whatever ``_settings`` or an earlier ``_learn`` returned
        held_out : pairs to choose by; None where all has been chosen
        """
        raise NotImplementedError

    def _soft(self, X: Samples) -> Array:
        """Return the predicted vectors for checked inputs."""
        raise NotImplementedError

    def _settings(self, value: Any) -> Any:
        """Return what ``_learn`` is to be told: here the value of the parameter that may be a list."""
        return value

    def _needs_validation(self) -> bool:
        """Whether held-out examples are needed for other things than lists and thresholds."""
        return False

    def _values(self) -> list[Any]:
        value = getattr(self, self._tuned) if self._tuned else None
        return list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else [value]

    def _check_parameters(self) -> None:
        validation.check_open_fraction(self.validation_fraction, "validation_fraction")
        if self._tuned and not self._values():
            raise ValueError(f"{self._tuned} is an empty list: give at least one value.")

    def _check_inputs(self, X: Samples) -> Samples:
        return _rows(X, "X", ensure_2d=True)

    def _checked_inputs(self, X: Samples) -> Samples:
        given, X = X, self._check_inputs(X)
        if n_columns(X) is not None:
            validate_data(self, given, reset=False, skip_check_array=True)
        return X

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        Y = _rows(Y, name)
        Linear().check_alike(Y, name, self.candidates_, "the outputs that the model was fitted on")
        return Y

    def _prepare(self, candidates: Any, n_examples: int) -> Samples | CandidateSets:
        if candidates is None:
            return self.candidates_
        candidates = as_candidates(candidates, self.candidates_)
        if isinstance(candidates, CandidateSets):
            return candidates.checked(self._check_outputs, n_examples)
        return self._check_outputs(candidates, "candidates")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _rows(A: Samples, name: str, ensure_2d: bool = False) -> Samples:
    """Return finite numbers, dense or CSR, in the form in which they came."""
    return check_rows(A, name, "must be rows of numbers, dense or CSR", accept_sparse="csr", ensure_2d=ensure_2d)


def _dense(Y: Samples, name: str) -> Array:
    """Return rows of float64 numbers, (n, L)."""
    Y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
    require_memory((2, *Y.shape), f"{name} as a dense array", "Train on fewer rows, or on fewer labels.")
    return np.asarray(Y.toarray() if sparse.issparse(Y) else Y, dtype=np.float64)


def validation_error(binary: bool) -> Callable[[Array, Array], float]:
    """Return what validation makes small: 1 − F1 at the best threshold of scores, or the mean squared distance."""
    return _best_f1_error if binary else _mean_squared


def _best_f1_error(Y: Array, scores: Array) -> float:
    return 1 - float(f1_score(Y, scores >= best_threshold(Y, scores)))


def _mean_squared(Y: Array, predicted: Array) -> float:
    return float(np.mean(np.sum((Y - predicted) ** 2, axis=1)))
