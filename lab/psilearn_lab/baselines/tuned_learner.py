"""The choice of the tuned parameter and of the threshold of a baseline on held-out examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from psilearn._linalg import Array
from psilearn.metrics import f1_score
from psilearn.utils import Pairs, RandomStateLike, Samples, hold_out, n_samples, take, validation
from psilearn_lab.baselines.thresholds import apply_threshold, best_f1_error, best_threshold

TunedValue: TypeAlias = Any  # a number of the type of the tuned parameter; None without one
Settings: TypeAlias = Any  # what a subclass needs to learn: a value of its tuned parameter, numbers of epochs


class TunedLearner(ABC):
    """The methods of a baseline that choose settings on held-out examples and then learn from all examples.

    A subclass sets ``binary_`` and, for labels, ``allows_empty_`` before it learns.
    """

    validation_fraction: float
    random_state: RandomStateLike
    binary_: bool
    allows_empty_: bool
    threshold_: Any
    tuned_parameter: ClassVar[str] = ""

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
        best: tuple[Settings, TunedValue, dict[str, Any]] | None = None
        errors: list[float] = []
        for value in self._tuned_values():
            settings = self._initial_settings(value)
            settings = self._learn(take(X, training), Y[training], settings, (X_held_out, Y_held_out))
            error = float(self._validate(X_held_out, Y_held_out))
            if best is None or error < min(errors):
                best = settings, value, dict(vars(self))
            errors.append(error)
        assert best is not None
        settings, value, attributes = best
        self.__dict__ = attributes  # such as the threshold and the history of the chosen value
        self._store_tuned(value)
        return settings, errors

    def _validate(self, X: Samples, Y: Array) -> float:
        """Choose the threshold on held-out examples; return the error there, which validation minimizes."""
        soft = self._predict_soft(X)
        if not self.binary_:
            return mean_squared_distance(Y, soft)
        self.threshold_ = self._find_threshold(Y, soft)
        return 1 - float(f1_score(Y, apply_threshold(soft, self.threshold_, self.allows_empty_)))

    def _find_threshold(self, Y: Array, soft: Array) -> Any:
        """Return the best threshold of the scores of held-out examples: a number, or one number per label."""
        return best_threshold(Y, soft, self.allows_empty_)

    def _validation_error(self, Y: Array, soft: Array) -> float:
        """Return 1 − F1 at the best threshold of scores, or the mean squared distance, such as after each epoch."""
        return best_f1_error(Y, soft, self.allows_empty_) if self.binary_ else mean_squared_distance(Y, soft)

    def _initial_settings(self, value: TunedValue) -> Settings:
        """Return the first settings of ``_learn`` for a value of the tuned parameter."""
        return value

    def _needs_validation(self) -> bool:
        """Return whether examples must be held out for more than the tuned parameter and the threshold."""
        return False

    def _tuned_values(self) -> list[TunedValue]:
        """Return the values of the tuned parameter; a single one if it is not a list."""
        value = getattr(self, self.tuned_parameter) if self.tuned_parameter else None
        if isinstance(value, np.ndarray) and value.ndim:
            return value.tolist()
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]

    def _check_regularization(self) -> None:
        """Raise an error for an invalid value of a tuned parameter that regularizes."""
        for value in self._tuned_values():
            validation.check_regularization(value, self.tuned_parameter)

    def _store_tuned(self, value: TunedValue) -> None:
        """Store the chosen value of the tuned parameter under its name with an underscore."""
        if self.tuned_parameter:
            setattr(self, f"{self.tuned_parameter}_", value)

    @abstractmethod
    def _learn(self, X: Samples, Y: Array, settings: Settings, held_out: Pairs | None) -> Settings:
        """Set the fitted attributes from inputs and outputs (n, L); return the settings, completed by validation.

        ``settings`` is the return value of ``_initial_settings`` or of an earlier ``_learn``. ``held_out`` are pairs to
        validate on, such as for the number of epochs; None if nothing is left to choose.
        """

    @abstractmethod
    def _predict_soft(self, X: Samples) -> Array:
        """Return the predicted vectors for checked inputs, shape (len(X), L)."""


def mean_squared_distance(Y_true: Array, Y_pred: Array) -> float:
    """Return the mean of |y − ŷ|² over rows."""
    return float(np.mean(np.sum((Y_true - Y_pred) ** 2, axis=1)))
