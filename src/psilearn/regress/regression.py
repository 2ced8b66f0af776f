"""What a regression gives back, and what it asks of its targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from scipy.linalg import solve_triangular

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
    """x ↦ k_x(x, anchors) L⁻ᵀ @ solution, fitted onto targets in r coordinates."""

    solution: Array  # (a, r)
    triangle: Array | None  # (a, a)  L; None for the identity
    anchors: Samples  # a inputs: all of them, or landmarks
    moment: MixedMoment | None  # 1/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ of the fitted values, (r, r); None where it was not asked for
    approximation_error: float  # the share of Σ k_x(x, x) that the anchors do not span

    def settled(self) -> Regression:
        """Return the same regression in the fewest numbers: a·r + r², no triangle and no fitted values; a²r flops."""
        moment = None if self.moment is None else self.moment.summed()
        return replace(self, solution=self.coef(), triangle=None, moment=moment)

    def coef(self, V: Array | None = None) -> Array:
        """Return the coefficients C (a, p) of x ↦ k_x(x, anchors) C, in the directions V (r, p); in all without V."""
        rotated = self.solution if V is None else self.solution @ V
        if self.triangle is None or not len(rotated):
            return rotated
        return solve_triangular(self.triangle, rotated, trans="T", lower=True, check_finite=False)


class Regressor(Protocol):
    """A regression that was fitted on inputs alone, before it sees targets."""

    def regress(self, V: Targets, with_moment: bool = True) -> Regression:
        """Regress onto targets V (n, r), with the moment of the fitted values where it is wanted."""
