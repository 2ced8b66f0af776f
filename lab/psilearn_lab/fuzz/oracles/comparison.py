"""What an oracle returns: two results that must agree, and the tolerance that rounding explains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psilearn._backend import to_numpy
from psilearn_lab.fuzz.oracles.problems import Problem
from psilearn_lab.fuzz.oracles.reference import Array, model_distances

MAX_TOLERANCE = 0.03  # relative; what rounding may change by more is not compared


@dataclass(frozen=True)
class Comparison:
    """Two arrays, what their entries are measured in, and the allowed relative differences (0: equal bits).

    A tolerance and a scale hold for all entries, or are arrays with one per entry.
    """

    actual: Any
    expected: Any
    tolerance: Any
    scale: Any = 1.0

    @property
    def is_decidable(self) -> bool:
        """Whether the problem is conditioned well enough for a difference to mean a defect."""
        return bool(np.all(np.less_equal(self.tolerance, MAX_TOLERANCE)))

    @cached_property
    def differences(self) -> Array:
        """The differences relative to the scale; ∞ for other shapes or NaN."""
        actual, expected = np.asarray(self.actual), np.asarray(self.expected)
        if actual.shape != expected.shape:
            return np.array(np.inf)
        with np.errstate(invalid="ignore"):
            differences = np.where(actual == expected, 0.0, np.abs(np.subtract(actual, expected, dtype=float)))
        return np.nan_to_num(differences / self.scale, nan=np.inf)

    @property
    def worst(self) -> float:
        """The largest relative difference."""
        return float(self.differences.max(initial=0.0))

    @property
    def agrees(self) -> bool:
        """Whether all differences are within the tolerance."""
        return bool(np.all(self.differences <= self.tolerance))


def compare_models(problem: Problem, other: Any, epsilon: float | None = None) -> Comparison:
    """Compare the distances of another route to the same model with those of the model of the problem."""
    tolerance = (
        problem.tolerance
        if epsilon is None
        else problem.reference.tolerance(problem.X_test, problem.candidates, epsilon)
    )
    actual = model_distances(other, problem.X_test, problem.candidates)
    return Comparison(actual, problem.distances, tolerance, problem.scale)


def excess(distances: Array, indices: Any) -> Array:
    """Return how much farther chosen candidates are than the nearest ones: 0 for ties, whatever their indices.

    ``indices`` (q, k) are compared with the k smallest of each row of ``distances`` (q, c).
    """
    indices = to_numpy(indices)
    return np.take_along_axis(distances, indices, axis=1) - np.sort(distances, axis=1)[:, : indices.shape[1]]


def all_equal(*pairs: tuple[Any, Any]) -> Comparison:
    """Compare arrays or collections for equal bits: the mean of the pairs that agree must be 1."""
    return Comparison([_is_equal(a, b) for a, b in pairs], [True] * len(pairs), 0.0)


def _is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_equal, a, b))
    if hasattr(a, "tocsr") and hasattr(b, "tocsr"):
        return bool(a.shape == b.shape and (a != b).nnz == 0)
    a, b = np.asarray(a), np.asarray(b)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"))
