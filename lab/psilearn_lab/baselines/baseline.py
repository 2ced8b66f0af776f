"""The common interface of all baselines: they predict vectors, and choose label sets or candidates by them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_array
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import validate_data

from psilearn.decoding import Candidates, TopK, as_candidates
from psilearn.metrics import TruthPositions, f1_score
from psilearn.utils import (
    Index,
    RandomStateLike,
    Samples,
    declare_sparse_inputs_and_outputs,
    distinct,
    fitted_snapshot,
    hold_out,
    match,
    n_columns,
    n_samples,
    publish,
    show_progress,
    take,
    unfitted_copy,
    validation,
)
from psilearn_lab.arrays import Array, Mask, Pairs, iter_blocks
from psilearn_lab.baselines.thresholds import apply_threshold, best_f1_error, best_threshold

TIE_TOLERANCE = 32 * float(np.finfo(np.float64).eps)  # relative difference of costs that counts as a tie
DeviceLike: TypeAlias = Any  # the name of a torch device, a torch.device, or None for the CPU
Settings: TypeAlias = Any  # what a subclass needs to learn: a value of its tuned parameter, numbers of epochs
CandidatesLike: TypeAlias = Samples | Sequence[Samples] | Candidates | None  # for all inputs, or one set per input
CostBlock: TypeAlias = tuple[Index, Samples, Array, Array]  # examples, their candidates, costs, rounding errors


@dataclass(eq=False, repr=False, kw_only=True)
class Baseline(BaseEstimator, ABC):
    """Base class of systems that predict one vector per input: one score per label, or the numbers themselves.

    Outputs are rows of 0 and 1 (dense or CSR), of which the labels with a score of at least ``threshold_`` are
    predicted, or rows of other numbers, which are predicted directly, dense. If every training row has at least one
    label, so has every prediction: the label with the highest score is predicted where no score reaches the threshold,
    and validation applies the same rule. A part of the training examples is held out to choose the best value of the
    tuned parameter, if it is a list, and the threshold; then the model is fitted on all examples.

    A subclass implements ``_learn`` and ``_predict_soft``, names the parameter that may be a list in
    ``tuned_parameter``, and may override the cost ⟨s(x), y⟩ + r(y) of a candidate y, by default its squared distance to
    the predicted vector without |ŷ|², which is the same for every y.

    Parameters
    ----------
    validation_fraction : float, default=0.2
        The share of examples that is held out to choose the tuned parameter and the threshold.
    device : str, torch.device or None, default=None
        The torch device of the computations, where there is code for one; None for NumPy.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    binary_ : bool
        Whether the outputs are rows of labels.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. Only for labels.
    threshold_ : float
        The smallest score of a predicted label. Only for labels.
    validation_error_ : float
        1 − F1, or the mean squared distance, on the held-out examples. Only if examples were held out.
    validation_errors_ : list of float
        The same for each value of the tuned parameter.

    See Also
    --------
    LR : A baseline for labels.
    KRR : A baseline for labels and numbers.

    Examples
    --------
    A baseline that ignores the input and predicts the mean:

    >>> import numpy as np
    >>> from psilearn_lab.baselines import Baseline
    >>> class MeanOutput(Baseline):
    ...     def _learn(self, X, Y, settings, held_out):
    ...         self.mean_ = Y.mean(axis=0)
    ...     def _predict_soft(self, X):
    ...         return np.tile(self.mean_, (len(X), 1))
    >>> MeanOutput().fit([[0.0], [1.0]], [[1.0, 2.0], [3.0, 4.0]]).predict([[5.0]])
    array([[2., 3.]])
    """

    validation_fraction: float = 0.2
    device: DeviceLike = None
    random_state: RandomStateLike = 0
    verbose: int = 0

    tuned_parameter: ClassVar[str] = ""
    _check_tuned: ClassVar[Any] = staticmethod(validation.check_regularization)  # of a value and its name
    _labels_only: ClassVar[bool] = False

    def fit(self, X: Samples, y: Samples) -> Self:
        """Fit the model to pairs (xᵢ, yᵢ).

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            The inputs.
        y : array-like or CSR matrix of shape (n, L), or n numbers
            The outputs: rows of 0 and 1 are label sets, other rows are numbers.

        Returns
        -------
        Baseline
            The fitted model.

        See Also
        --------
        predict : Predict the outputs of new inputs.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> KNN(n_neighbors=1).fit([[0.0], [1.0]], [[0.0, 0.5], [1.0, 0.5]]).binary_
        False
        """
        learner, X, Y = self._prepare_fit(X, y)
        with show_progress(self.verbose):
            learner._select_and_learn(X, Y)
        return publish(self, learner)

    def validate(self, X: Samples, y: Samples) -> Array:
        """Return the validation error of each value of the tuned parameter, without fitting on all examples.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            The inputs, of which ``validation_fraction`` are held out.
        y : array-like or CSR matrix of shape (n, L), or n numbers
            The outputs.

        Returns
        -------
        ndarray of shape (values,)
            1 − F1, or the mean squared distance, on the held-out examples: a single number if the parameter is not a
            list. ``fit`` chooses the value with the smallest one.

        See Also
        --------
        fit : Choose the best value and fit on all examples.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn_lab.baselines import KNN
        >>> X = np.arange(20.0).reshape(-1, 1)
        >>> KNN(n_neighbors=[1, 15]).validate(X, np.hstack([X, X])).round(1)
        array([  3.5, 107.4])
        """
        learner, X, Y = self._prepare_fit(X, y)
        with show_progress(self.verbose):
            return np.array(learner._select(X, Y)[1])

    def predict_soft(self, X: Samples) -> Array:
        """Return the predicted vectors before any threshold.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.

        Returns
        -------
        ndarray of shape (q, L)
            The scores of labels, mostly in [0, 1], or the predicted numbers.

        See Also
        --------
        predict : Predict label sets by a threshold, or outputs among candidates.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=2).fit([[0.0], [0.1], [0.9], [1.0]], [[1, 0], [1, 1], [0, 1], [0, 1]])
        >>> model.predict_soft([[0.0]])
        array([[1. , 0.5]])
        """
        model = fitted_snapshot(self)
        with show_progress(model.verbose):
            return model._predict_soft(model._check_new_inputs(X))

    def predict(self, X: Samples, candidates: CandidatesLike = None) -> Samples:
        """Return the predicted outputs, in the form of the training outputs.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs to choose from. By default the outputs are not restricted: labels are predicted by a threshold
            (at least one label, if every training row has one), numbers as they are.

        Returns
        -------
        array or CSR matrix of shape (q, L), or (q,) if the training outputs were numbers
            The predicted outputs; with candidates, the one of lowest cost for each input.

        See Also
        --------
        predict_soft : Return the scores of labels before the threshold.
        predict_topk : Return several candidates per input.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0]], [[0.0, 0.5], [1.0, 0.5]])
        >>> model.predict([[0.9]])
        array([[1. , 0.5]])
        >>> model.predict([[0.9]], candidates=[[0.0, 0.0], [1.5, 1.0]])
        array([[1.5, 1. ]])
        """
        if candidates is not None:
            return self.predict_topk(X, 1, candidates).nearest
        model = fitted_snapshot(self)
        known = model.candidates_
        if model.binary_:
            with show_progress(model.verbose):
                labels = model._predict_labels(model._check_new_inputs(X))
            if sparse.issparse(known):
                return type(known)(labels, dtype=known.dtype)
            prediction = labels.astype(known.dtype)
        else:
            prediction = model.predict_soft(X)
        return prediction[:, 0] if known.ndim == 1 else prediction

    def predict_topk(self, X: Samples, k: int = 10, candidates: CandidatesLike = None) -> TopK:
        """Return the k candidates of lowest cost for each input.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        k : int, default=10
            The number of candidates per input.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs to choose from; by default the distinct training outputs, ``candidates_``.

        Returns
        -------
        TopK
            The indices of the candidates and their costs, lowest first. Its ``distances`` are costs here, which may be
            negative.

        See Also
        --------
        predict : Return the best output only.
        costs : Compute the costs of all candidates.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], [[0.0, 0.5], [1.0, 0.5], [3.0, 0.5]])
        >>> model.predict_topk([[0.9]], k=2).indices
        array([[1, 0]])
        """
        k = validation.check_count(k, "k")
        model = fitted_snapshot(self)
        X = model._check_new_inputs(X)
        checked = as_candidates(candidates, model.candidates_, model._check_outputs, n_samples(X))
        k = min(k, checked.max_size)
        indices, costs = np.full((n_samples(X), k), -1, dtype=np.intp), np.full((n_samples(X), k), np.inf)
        for examples, _, D, slack in model._iter_costs(X, checked):
            columns = min(k, D.shape[1])
            indices[examples, :columns], costs[examples, :columns] = _k_smallest(D, slack, columns)
        return TopK(indices, costs, checked)

    def truth_positions(self, X: Samples, y: Samples, candidates: CandidatesLike = None) -> TruthPositions:
        """Return the position of the true output of each input among its distinct candidates.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        y : array-like or CSR matrix of shape (q, L), or q numbers
            The true outputs.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs among which the true one is searched; by default the distinct training outputs,
            ``candidates_``.

        Returns
        -------
        TruthPositions
            The number of candidates of lower cost, and the number of candidates of equal cost, ties counted separately.

        See Also
        --------
        psilearn.metrics.top_k_accuracy : Compute the top-k accuracy from the positions.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], [[0.0, 0.5], [1.0, 0.5], [3.0, 0.5]])
        >>> model.truth_positions([[0.9], [0.9]], [[1.0, 0.5], [3.0, 0.5]]).nearer
        array([0., 2.])
        """
        model = fitted_snapshot(self)
        X = model._check_new_inputs(X)
        truth = model._check_outputs(y, "y")
        _check_same_number(X, truth)
        checked = as_candidates(candidates, model.candidates_, model._check_outputs, n_samples(X)).distinct()
        nearer, tied = np.full(n_samples(X), np.inf), np.zeros(n_samples(X))
        for examples, C, D, slack in model._iter_costs(X, checked):
            places = match(take(truth, examples), C)
            rows = np.flatnonzero(places >= 0)
            D, slack, columns = D[rows], slack[rows], places[rows, None]
            true_cost = np.take_along_axis(D, columns, axis=1)
            slack = np.maximum(slack, np.take_along_axis(slack, columns, axis=1))
            nearer[examples[rows]] = np.count_nonzero(true_cost - slack > D, axis=1)
            tied[examples[rows]] = np.count_nonzero(np.abs(D - true_cost) <= slack, axis=1)
        return TruthPositions(nearer, tied)

    def costs(self, X: Samples, candidates: CandidatesLike = None) -> Iterator[CostBlock]:
        """Yield the costs ⟨s(x), y⟩ + r(y) of candidates, block by block, for examples with the same candidates.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs whose costs are computed; by default the distinct training outputs, ``candidates_``.

        Yields
        ------
        examples : ndarray of shape (m,)
            The indices of the inputs of this block.
        candidates : collection of c outputs
            Their candidates.
        costs : ndarray of shape (m, c)
            The cost of each candidate for each input.
        slack : ndarray of shape (m, c)
            The possible rounding error of each cost; costs that differ by less are tied.

        See Also
        --------
        predict_topk : Return the candidates of lowest cost.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0]], [[0.0, 0.5], [1.0, 0.5]])
        >>> [costs.tolist() for _, _, costs, _ in model.costs([[0.9]], candidates=[[1.0, 0.5], [0.0, 0.0]])]
        [[[-1.25, 0.0]]]
        """
        model = fitted_snapshot(self)
        X = model._check_new_inputs(X)
        checked = as_candidates(candidates, model.candidates_, model._check_outputs, n_samples(X))
        yield from model._iter_costs(X, checked)

    def score(self, X: Samples, y: Samples) -> float:
        """Return the mean example-based F1 of predicted label sets, or minus the mean squared distance of numbers.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        y : array-like or CSR matrix of shape (q, L), or q numbers
            The true outputs.

        Returns
        -------
        float
            The score; higher is better.

        See Also
        --------
        psilearn.metrics.f1_score : Compute the F1 of label sets.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> KNN(n_neighbors=1).fit([[0.0], [1.0]], [[0.0, 0.5], [1.0, 0.5]]).score([[0.9]], [[1.0, 2.5]])
        -4.0
        """
        model = fitted_snapshot(self)
        prediction, truth = model.predict(X), model._check_outputs(y, "y")
        _check_same_number(prediction, truth)
        if model.binary_:
            model._check_binary(truth)
            return float(f1_score(_as_columns(truth), _as_columns(prediction)))
        return -_mean_squared_distance(_to_dense(truth), _to_dense(prediction))

    @abstractmethod
    def _learn(self, X: Samples, Y: Array, settings: Settings, held_out: Pairs | None) -> Settings:
        """Set the fitted attributes from inputs and outputs (n, L); return the settings, completed by validation.

        ``held_out`` are the pairs for validation, if a network is to find its number of epochs by them.
        """

    @abstractmethod
    def _predict_soft(self, X: Samples) -> Array:
        """Return the predicted vectors for checked inputs, shape (len(X), L)."""

    def _linear_costs(self, X: Samples) -> Array:
        """Return s(x), shape (len(X), L); here −2ŷ(x)."""
        return -2 * self._predict_soft(X)

    def _candidate_costs(self, C: Samples) -> Array:
        """Return r(y) for rows of candidates, shape (len(C),); here |y|²."""
        return row_norms(C, squared=True)

    def _predict_labels(self, X: Samples) -> Mask:
        """Return the predicted label sets of checked inputs, (len(X), L)."""
        return apply_threshold(self._predict_soft(X), self.threshold_, self.allows_empty_)

    def _prepare_fit(self, X: Samples, y: Samples) -> tuple[Self, Samples, Array]:
        """Return an unfitted copy, so that a fit that fails changes nothing, and checked inputs and outputs (n, L)."""
        self._check_parameters()
        given, X = X, self._check_inputs(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = check_numbers(y, "y")
        _check_same_number(X, y)
        learner, Y = unfitted_copy(self), _to_dense(y)
        if self._labels_only:
            self._check_binary(Y)
        learner.binary_, learner.candidates_ = bool(np.isin(Y, (0, 1)).all()), take(y, distinct(y).first)
        if learner.binary_:
            learner.allows_empty_ = not bool(Y.any(axis=1).all())
        if n_columns(X) is not None:
            validate_data(learner, given, skip_check_array=True)  # stores the number and the names of the columns
        return learner, X, Y

    def _select_and_learn(self, X: Samples, Y: Array) -> None:
        """Choose the tuned parameter and the threshold on held-out examples, then learn from all examples."""
        values = self._tuned_values()
        self._store_tuned(values[0])
        if self.binary_ or len(values) > 1 or self._needs_validation():
            settings, errors = self._select(X, Y)
            self.validation_error_, self.validation_errors_ = min(errors), errors
        else:
            settings = self._initial_settings(values[0])
        self._learn(X, Y, settings, None)

    def _select(self, X: Samples, Y: Array) -> tuple[Settings, list[float]]:
        """Choose the tuned parameter and the threshold; return the best settings and the errors of all values."""
        training, held_out = hold_out(n_samples(X), self.validation_fraction, self.random_state)
        X_held_out, Y_held_out = take(X, held_out), Y[held_out]
        errors: list[float] = []
        for value in self._tuned_values():
            settings = self._initial_settings(value)
            settings = self._learn(take(X, training), Y[training], settings, (X_held_out, Y_held_out))
            error = float(self._validate(X_held_out, Y_held_out))
            if error < min(errors, default=np.inf):
                best = settings, value, dict(vars(self))
            errors.append(error)
        settings, value, self.__dict__ = best  # such as the threshold and the history of the chosen value
        self._store_tuned(value)
        return settings, errors

    def _validate(self, X: Samples, Y: Array) -> float:
        """Choose the threshold on held-out examples; return the error there, which validation minimizes."""
        soft = self._predict_soft(X)
        if not self.binary_:
            return _mean_squared_distance(Y, soft)
        self.threshold_ = self._find_threshold(Y, soft)
        return 1 - float(f1_score(Y, apply_threshold(soft, self.threshold_, self.allows_empty_)))

    def _find_threshold(self, Y: Array, soft: Array) -> Any:
        """Return the best threshold of the scores of held-out examples: a number, or one number per label."""
        return best_threshold(Y, soft, self.allows_empty_)

    def _validation_error(self, Y: Array, soft: Array) -> float:
        """Return 1 − F1 at the best threshold of scores, or the mean squared distance, such as after each epoch."""
        return best_f1_error(Y, soft, self.allows_empty_) if self.binary_ else _mean_squared_distance(Y, soft)

    def _initial_settings(self, value: Any) -> Settings:
        """Return the first settings of ``_learn`` for a value of the tuned parameter."""
        return value

    def _needs_validation(self) -> bool:
        """Return whether examples must be held out for more than the tuned parameter and the threshold."""
        return False

    def _tuned_values(self) -> list[Any]:
        """Return the values of the tuned parameter; a single one if it is not a list."""
        value = getattr(self, self.tuned_parameter) if self.tuned_parameter else None
        if isinstance(value, np.ndarray) and value.ndim:
            return value.tolist()
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]

    def _store_tuned(self, value: Any) -> None:
        """Store the chosen value of the tuned parameter under its name with an underscore."""
        if self.tuned_parameter:
            setattr(self, f"{self.tuned_parameter}_", value)

    def _iter_costs(self, X: Samples, candidates: Candidates) -> Iterator[CostBlock]:
        """Yield examples, their common candidates, costs (m, c) and rounding errors (m, c) for checked collections."""
        S = np.asarray(self._linear_costs(X), dtype=np.float64)  # (n, L)
        lengths = np.linalg.norm(S, axis=1)
        for C, members in candidates.groups(n_samples(X)):
            rows = _as_columns(C)
            constants = np.asarray(self._candidate_costs(rows), dtype=np.float64)  # (c,)
            norms = row_norms(rows)
            for part in iter_blocks(len(members), 24 * n_samples(rows)):
                examples = members[part]
                D = safe_sparse_dot(S[examples], rows.T, dense_output=True) + constants
                yield examples, C, D, TIE_TOLERANCE * (lengths[examples, None] * norms + np.abs(constants))

    def _check_parameters(self) -> None:
        """Raise an error for an invalid parameter."""
        validation.check_open_fraction(self.validation_fraction, "validation_fraction")
        validation.check_verbose(self.verbose, "verbose")
        validation.as_random_state(self.random_state)
        validation.check_n_jobs(getattr(self, "n_jobs", None))
        if not self._tuned_values():
            raise ValueError(f"{self.tuned_parameter} is an empty list: give at least one value.")
        for value in self._tuned_values() if self.tuned_parameter else ():
            self._check_tuned(value, self.tuned_parameter)

    def _check_binary(self, Y: Samples) -> None:
        """Raise an error for outputs that are not rows of labels."""
        values = Y.data if sparse.issparse(Y) else Y
        if not np.isin(values, (0, 1)).all():
            wrong = values[~np.isin(values, (0, 1))][0]
            raise ValueError(
                f"{type(self).__name__} predicts sets of labels: y must hold 0 and 1 only; it has {wrong:g}."
            )

    def _check_inputs(self, X: Samples) -> Samples:
        """Return checked inputs."""
        return check_numbers(X, "X", ensure_2d=True)

    def _check_new_inputs(self, X: Samples) -> Samples:
        """Return checked inputs of the form of the training inputs."""
        given, X = X, self._check_inputs(X)
        if n_columns(X) is not None:
            validate_data(self, given, reset=False, skip_check_array=True)
        return X

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        """Return checked outputs of the form of the training outputs."""
        Y = check_numbers(Y, name)
        if Y.shape[1:] != self.candidates_.shape[1:]:
            raise ValueError(
                f"{name} must have the same width as the outputs that the model was fitted on, "
                f"{self.candidates_.shape[1:]}; got shape {Y.shape}."
            )
        return Y

    def __sklearn_tags__(self) -> Tags:
        """Declare sparse inputs, and required outputs of several columns."""
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())


def check_numbers(A: Samples, name: str, ensure_2d: bool = False) -> Samples:
    """Return rows of finite numbers, dense or CSR."""
    if hasattr(A, "shape") and 0 in A.shape[:1]:
        raise ValueError(f"{name} is empty: it has shape {A.shape}.")
    return check_array(A, accept_sparse="csr", ensure_2d=ensure_2d, dtype="numeric", input_name=name)


def _k_smallest(D: Array, slack: Array, k: int) -> tuple[Index, Array]:
    """Return the columns and values of the k smallest entries of each row, ascending.

    Neighbors in this order that differ by at most their slack are ties: they are ordered by column and all get the
    smallest value among them.
    """
    order = np.argsort(D, axis=1, kind="stable")
    values = np.take_along_axis(D, order, axis=1)
    starts = np.diff(values, axis=1, prepend=-np.inf) > np.take_along_axis(slack, order, axis=1)
    by_column = np.lexsort((order, np.cumsum(starts, axis=1)), axis=1)[:, :k]
    first_of_run = np.maximum.accumulate(np.where(starts, np.arange(D.shape[1]), 0), axis=1)[:, :k]
    return np.take_along_axis(order, by_column, axis=1), np.take_along_axis(values, first_of_run, axis=1)


def _check_same_number(X: Samples, y: Samples) -> None:
    if n_samples(X) != n_samples(y):
        raise ValueError(f"X has {n_samples(X)} examples, y has {n_samples(y)}; both must have one row per example.")


def _as_columns(Y: Samples) -> Samples:
    """Return n numbers as one column (n, 1), and rows unchanged."""
    return Y.reshape(-1, 1) if Y.ndim == 1 else Y


def _to_dense(Y: Samples) -> Array:
    """Return rows as a dense float64 array (n, L)."""
    Y = _as_columns(Y)
    return np.asarray(Y.toarray() if sparse.issparse(Y) else Y, dtype=np.float64)


def _mean_squared_distance(Y_true: Array, Y_pred: Array) -> float:
    """Return the mean of |y − ŷ|² over rows."""
    return float(np.mean(np.sum((Y_true - Y_pred) ** 2, axis=1)))
