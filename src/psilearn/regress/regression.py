"""What a regression gives back, and what it asks of its targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from psilearn.linalg import Array
from psilearn.moments import MixedMoment
from psilearn.samples import Samples


class Targets(Protocol):
    """Rows of target coordinates, an array or something that makes them when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, r)."""

    def __getitem__(self, rows: slice) -> Any:
        """Return the rows as an array."""


@dataclass(frozen=True)
class Regression:
    """x ↦ k_x(x, anchors) @ coef, fitted onto targets in r coordinates."""

    coef: Array  # (a, r)
    anchors: Samples  # a inputs: all of them, or landmarks
    moment: MixedMoment  # 1/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ of the fitted values, (r, r)
    approximation_error: float  # the share of Σ k_x(x, x) that the anchors do not span


class Regressor(Protocol):
    """A regression that was fitted on inputs alone, before it sees targets."""

    def regress(self, V: Targets) -> Regression:
        """Regress onto targets V (n, r)."""
