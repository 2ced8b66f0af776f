"""What a regression asks of its targets, what it gives back, and how its answer is evaluated at new inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from psilearn._backend import asarray, computing_blocks, cut, moved_bytes, stream, to_host, working_dtype, zeros
from psilearn._linalg import Array, solve_transposed
from psilearn._linalg.moments import MixedMoment
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels.blocks import block, checked, resident
from psilearn.kernels.kernel import Kernel


class Targets(Protocol):
    """Rows of target coordinates, an array or something that makes them when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, r)."""

    def __getitem__(self, rows: slice) -> Any:
        """Return the rows as an array."""


class Regressor(Protocol):
    """A regression that has seen inputs alone, before it sees targets."""

    def fit(self, X: Samples) -> Self:
        """Take the inputs, and do what needs no targets."""

    def regress(self, V: Targets, with_moment: bool = True) -> Regression:
        """Regress onto targets V (n, r), with the moment of the fitted values where it is wanted."""


class Regression(Protocol):
    """x ↦ ĥ(x), fitted onto targets in r coordinates."""

    @property
    def moment(self) -> MixedMoment | None:
        """1/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ over the training inputs, (r, r); None where it was not asked for."""

    @property
    def approximation_error(self) -> float:
        """The share of Σ k_x(x, x) that landmarks do not span; 0 where there are none."""

    def settled(self) -> Self:
        """Return the same regression in the fewest numbers, without the fitted values."""

    def parked(self) -> Self:
        """Return the same regression in NumPy: nothing of it on a device."""

    def attributes(self, V: Array | None) -> dict[str, Any]:
        """Return what an estimator keeps to evaluate x ↦ ĥ(x)V in the directions V (r, p); in all where V is None."""


class Predictor(Protocol):
    """x ↦ z(x) = ĥ(x)V, evaluated at one block of inputs after the other."""

    def check(self, X: Samples) -> Samples:
        """Return inputs in a form that can be evaluated, or say what is wrong with X."""

    def predictions(self, X: Samples) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows and their z(x), (b, p), in blocks that fit where the work is done."""


@dataclass(frozen=True)
class KernelRegression:
    """x ↦ k_x(x, anchors) L⁻ᵀ @ solution, fitted onto targets in r coordinates."""

    kernel: Kernel  # k_x
    solution: Array  # (a, r)
    triangle: Array | None  # (a, a)  L; None for the identity
    anchors: Samples  # a inputs: all of them, or landmarks
    moment: MixedMoment | None  # 1/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ of the fitted values, (r, r); None where it was not asked for
    approximation_error: float  # the share of Σ k_x(x, x) that the anchors do not span

    def settled(self) -> KernelRegression:
        """Return the same regression in the fewest numbers: a·r + r², no triangle and no fitted values; a²r flops."""
        moment = None if self.moment is None else self.moment.summed()
        return replace(self, solution=self.coef(), triangle=None, moment=moment)

    def parked(self) -> KernelRegression:
        """Return the same regression in NumPy: nothing of it on a device."""
        return replace(
            self,
            solution=to_host(self.solution),
            triangle=None if self.triangle is None else to_host(self.triangle),
            moment=None if self.moment is None else self.moment.parked(),
        )

    def coef(self, V: Array | None = None) -> Array:
        """Return the coefficients C (a, p) of x ↦ k_x(x, anchors) C, in the directions V (r, p); in all without V."""
        rotated = asarray(self.solution) if V is None else asarray(self.solution) @ V
        return rotated if self.triangle is None else solve_transposed(self.triangle, rotated)

    def attributes(self, V: Array | None) -> dict[str, Any]:
        """Return the kernel, the anchors and their coefficients (a, p)."""
        coef = to_host(self.coef(V)).astype(working_dtype(), copy=False)
        return {"input_kernel_": self.kernel, "X_fit_": self.anchors, "dual_coef_": coef}


@dataclass(frozen=True)
class KernelPredictor:
    """x ↦ k_x(x, anchors) C."""

    kernel: Kernel  # k_x
    anchors: Samples  # a inputs
    coef: Array  # (a, p)  C

    def check(self, X: Samples) -> Samples:
        """Let the kernel judge the inputs."""
        return checked(self.kernel, X, "X", allow_1d=False)

    def predictions(self, X: Samples) -> Iterator[tuple[slice, Array]]:
        """Yield rows and z(x); kernel values are never whole."""
        anchors, coef = resident(self.kernel, self.anchors), asarray(self.coef, working_dtype())

        def work(some: Samples) -> Array:
            if not len(coef):  # every landmark has length zero
                return zeros((n_samples(some), coef.shape[1]))
            return block(self.kernel, some, anchors, "input_kernel") @ coef

        per_row = 3 * working_dtype().itemsize * len(coef) + moved_bytes(X)
        blocks = list(computing_blocks(n_samples(X), per_row))
        parts = cut(X, track(blocks, "embedding of inputs", len(blocks)))
        yield from stream(parts, work, self.kernel._on_device)
