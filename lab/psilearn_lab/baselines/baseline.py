"""The common interface of all baselines: they predict vectors, and choose label sets or candidates by them."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from psilearn._linalg import Array
from psilearn.kernels.row_kernel import check_numbers
from psilearn.metrics import f1_score
from psilearn.utils import (
    Samples,
    declare_sparse_inputs_and_outputs,
    describe_shape,
    distinct,
    fitted_snapshot,
    n_columns,
    n_samples,
    publish,
    show_progress,
    take,
    unfitted_copy,
    validation,
)
from psilearn_lab.baselines.candidate_choice import CandidateChoice, CandidatesLike
from psilearn_lab.baselines.output_rows import as_columns, to_dense
from psilearn_lab.baselines.thresholds import apply_threshold
from psilearn_lab.baselines.tuned_learner import TunedLearner, mean_squared_distance


class Baseline(TunedLearner, CandidateChoice, BaseEstimator):
    """Base class of systems that predict one vector per input: one score per label, or the numbers themselves.

    Outputs are rows of 0 and 1 (dense or CSR), of which the labels with a score of at least ``threshold_`` are
    predicted, or rows of other numbers, which are predicted directly, dense. If every training row has at least one
    label, so has every prediction: the label with the highest score is predicted where no score reaches the threshold,
    and validation applies the same rule. A part of the training examples is held out to choose the best value of the
    tuned parameter, if it is a list, and the threshold; then the model is fitted on all examples.

    A subclass implements ``_learn`` and ``_predict_soft``, names the parameter that may be a list in
    ``tuned_parameter``, and may override the cost ⟨s(x), y⟩ + r(y) of a candidate y, by default its squared distance to
    the predicted vector without |ŷ|², which is the same for every y.

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
    ...     def __init__(self, validation_fraction=0.2, random_state=0, verbose=0):
    ...         self.validation_fraction = validation_fraction
    ...         self.random_state = random_state
    ...         self.verbose = verbose
    ...     def _learn(self, X, Y, settings, held_out):
    ...         self.mean_ = Y.mean(axis=0)
    ...     def _predict_soft(self, X):
    ...         return np.tile(self.mean_, (len(X), 1))
    >>> MeanOutput().fit([[0.0], [1.0]], [[1.0, 2.0], [3.0, 4.0]]).predict([[5.0]])
    array([[2., 3.]])
    """

    verbose: int
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

    def _prepare_fit(self, X: Samples, y: Samples) -> tuple[Self, Samples, Array]:
        """Return an unfitted copy, so that a fit that fails changes nothing, and checked inputs and outputs (n, L)."""
        self._check_parameters()
        given, X = X, self._check_inputs(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = check_numbers(y, "y")
        if n_samples(X) != n_samples(y):
            raise ValueError(
                f"X and y must have one row per example: X has {n_samples(X)}, y has {n_samples(y)} "
                f"({describe_shape(y)})."
            )
        Y = to_dense(y, "y")
        learner = unfitted_copy(self)
        learner.binary_, learner.candidates_ = self._check_binary(Y), take(y, distinct(y).first)
        if learner.binary_:
            learner.allows_empty_ = not bool(Y.any(axis=1).all())
        if n_columns(X) is not None:
            validate_data(learner, given, skip_check_array=True)  # stores the number and the names of the columns
        return learner, X, Y

    def _check_binary(self, Y: Array) -> bool:
        """Return whether the outputs are label rows; raise an error for others if the model only predicts labels."""
        labels = (Y == 0) | (Y == 1)
        binary = bool(labels.all())
        if self._labels_only and not binary:
            raise ValueError(
                f"{type(self).__name__} predicts sets of labels: y must hold 0 and 1 only; it has {Y[~labels][0]:g}."
            )
        return binary

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
        if n_samples(prediction) != n_samples(truth):
            raise ValueError(f"X has {n_samples(prediction)} examples, y has {n_samples(truth)}.")
        if model.binary_:
            values = to_dense(truth, "y")
            if not ((values == 0) | (values == 1)).all():
                raise ValueError(f"{type(self).__name__} was fitted on label rows: y must hold 0 and 1 only.")
            return float(f1_score(as_columns(truth), as_columns(prediction)))
        return -mean_squared_distance(to_dense(truth, "y"), to_dense(prediction, "the prediction"))

    def _predict_labels(self, X: Samples) -> NDArray[np.bool_]:
        """Return the predicted label sets of checked inputs, (len(X), L)."""
        return apply_threshold(self._predict_soft(X), self.threshold_, self.allows_empty_)

    def _check_parameters(self) -> None:
        """Raise an error for an invalid parameter."""
        validation.check_open_fraction(self.validation_fraction, "validation_fraction")
        validation.check_verbose(self.verbose, "verbose")
        validation.as_random_state(self.random_state)
        validation.check_n_jobs(getattr(self, "n_jobs", None))
        if self.tuned_parameter and not self._tuned_values():
            raise ValueError(f"{self.tuned_parameter} is an empty list: give at least one value.")

    def _check_inputs(self, X: Samples) -> Samples:
        """Return checked inputs."""
        return check_numbers(X, "X", ensure_2d=True)

    def _check_new_inputs(self, X: Samples) -> Samples:
        given, X = X, self._check_inputs(X)
        if n_columns(X) is not None:
            validate_data(self, given, reset=False, skip_check_array=True)
        return X

    def __sklearn_tags__(self) -> Tags:
        """Declare sparse inputs, and required outputs of several columns."""
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())
