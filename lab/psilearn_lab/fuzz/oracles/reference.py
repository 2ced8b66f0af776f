"""IOKR, KDE and OEL by dense formulas in the eigenvectors of one Gram matrix, and the condition of a problem.

Distinct outputs, pivots, triangles, landmarks and blocks do not occur here: the code shares nothing with the library
but the kernels.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._backend import to_numpy
from psilearn.kernels import Kernel
from psilearn_lab.fuzz.oracles.objects import concatenate

Array = NDArray[Any]

RELATIVE_GAP = 1e-3  # of the largest eigenvalue, that makes leading directions well-conditioned
EPSILON = float(np.finfo(np.float64).eps)


def gap_positions(eigenvalues: Array) -> Array:
    """Return the numbers p of leading eigenvalues (descending) that a gap separates from the others."""
    following = np.append(eigenvalues[1:], 0.0)
    return np.flatnonzero(eigenvalues - following > RELATIVE_GAP * eigenvalues[:1]) + 1


def block(kernel: Kernel, A: Any, B: Any = None) -> Array:
    """Return k(A, B) in float64."""
    return to_numpy(kernel(A, B)).astype(np.float64)


class Reference:
    """A model of IOKR (supervision None), KDE (0) or OEL, fitted by dense formulas."""

    def __init__(
        self,
        input_kernel: Kernel,
        output_kernel: Kernel,
        X: Any,
        y: Any,
        unlabeled: Any,
        alpha: float,
        n_components: int | None,
        supervision: float | None,
    ) -> None:
        self.input_kernel, self.output_kernel = input_kernel, output_kernel
        self.X, self.y, self.unlabeled = X, y, unlabeled
        self.n_components, self.supervision = n_components, supervision
        self.outputs = y if unlabeled is None else concatenate(y, unlabeled)
        self.K_x = block(input_kernel, X)
        self.n = len(self.K_x)
        self.ridge = self.n * alpha
        values, vectors = np.linalg.eigh(block(output_kernel, self.outputs))
        kept = values > 4 * len(values) * EPSILON * max(values[-1], 0.0)
        self.to_coordinates = vectors[:, kept] / np.sqrt(values[kept])  # ψ(y) = to_coordinatesᵀ k(outputs, y)
        self.coordinates = vectors[:, kept] * np.sqrt(values[kept])

    def weights(self, X: Any) -> Array:
        """Return α(x), one row per input."""
        return self._solve(block(self.input_kernel, self.X, X)).T

    @cached_property
    def _input_spectrum(self) -> tuple[Array, Array]:
        """The eigenvalues of K_x, ascending and at least 0, and its eigenvectors."""
        values, vectors = np.linalg.eigh(self.K_x)
        return np.maximum(values, 0), vectors

    def _solve(self, B: Array) -> Array:
        """Return (K_x + nλI)⁻¹B."""
        values, vectors = self._input_spectrum
        return vectors @ ((vectors.T @ B) / (values + self.ridge)[:, None])

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        c = 0.0 if self.supervision is None else self.supervision
        fitted = self.weights(self.X) @ self.coordinates[: self.n]
        known = self.coordinates if self.unlabeled is None else self.coordinates[self.n :]
        values, vectors = np.linalg.eigh(c / self.n * fitted.T @ fitted + (1 - c) / len(known) * known.T @ known)
        return values[::-1], vectors[:, ::-1]

    @property
    def eigenvalues(self) -> Array:
        """All eigenvalues of M_c, descending."""
        return self._spectrum[0]

    def directions(self, smallest: float = EPSILON) -> Array:
        """Return the leading eigenvectors of M_c that the embedding keeps, as columns.

        Eigenvalues below ``smallest`` times their number and the largest one count as zero.
        """
        if self.supervision is None:
            return np.eye(self.coordinates.shape[1])
        values, vectors = self._spectrum
        rank = int(np.sum(values > len(values) * smallest * values[0])) if len(values) else 0
        return vectors[:, : rank if self.n_components is None else min(self.n_components, rank)]

    def distances(self, X: Any, candidates: Any, smallest: float = EPSILON) -> Array:
        """Return |G*z(x) − ψ(y)|² for inputs (rows) and candidates (columns)."""
        V = self.directions(smallest)
        Z = self.weights(X) @ self.coordinates[: self.n] @ V
        g = block(self.output_kernel, candidates, self.outputs) @ self.to_coordinates @ V
        return combine(Z, g, self.output_kernel.diag(candidates))

    def scale(self, X: Any, candidates: Any) -> float:
        """Return the largest |ĥ(x)|² + k(y, y), in which errors of distances are measured."""
        lengths = np.sum((self.weights(X) @ self.coordinates[: self.n]) ** 2, axis=1)
        known = self.output_kernel.diag(self.outputs)
        return float(lengths.max() + max(known.max(), self.output_kernel.diag(candidates).max()) + 1e-300)

    def tolerance(self, X: Any, candidates: Any, epsilon: float = EPSILON) -> float:
        """Return the error of distances that rounding can cause, relative to :meth:`scale`.

        Solutions with K_x + nλI lose its condition number, leading directions lose 1/gap. Coordinates of outputs, and
        of inputs with landmarks, are known up to √(N·ε), because pivots below N·ε are dropped, and α(x) sums errors
        of n of them. The effect of directions whose moment may count as zero or not is measured.
        """
        values = self._input_spectrum[0] + self.ridge
        condition = values[-1] / values[0]
        total = 1 + float(np.abs(self.weights(X)).sum(axis=1).max())
        rounding = self.n * epsilon * condition * self._inverse_gap(epsilon) * total
        rank = self.distances(X, candidates, 1000 * epsilon) - self.distances(X, candidates, epsilon / 100)
        undetermined = 10 * float(np.abs(rank).max()) / self.scale(X, candidates)
        return float(rounding + np.sqrt(len(self.coordinates) * epsilon) * total + undetermined)

    @property
    def has_no_factor(self) -> bool:
        """Whether rounding can make K_x + nλI indefinite if inputs repeat, so that an error is the right answer."""
        return bool(self.ridge <= 100 * self.n * EPSILON * self._input_spectrum[0][-1])

    def landmark_tolerance(self, epsilon: float = EPSILON) -> float:
        """Return the additional relative error of predictions with all inputs as landmarks.

        An input that others span up to √(n·ε) is dropped. Its kernel values k(x, xᵢ) then change by √(n·ε), and the
        prediction by as much times its coefficients (K_x + nλI)⁻¹Ψ(Y), which are large for a small λ. Without small
        eigenvalues of K_x, other than those of rounding, no such input exists.
        """
        values = self._input_spectrum[0] / (self.n * epsilon * self._input_spectrum[0][-1] + 1e-300)
        if not np.any((values > 0.1) & (values < 1e5)):
            return 0.0
        targets = self.coordinates[: self.n]
        total = float(np.linalg.norm(self._solve(targets), axis=1).sum() * np.diag(self.K_x).max())
        return float(np.sqrt(self.n * epsilon) * total / (np.linalg.norm(targets, axis=1).max(initial=0.0) + 1e-300))

    def _inverse_gap(self, epsilon: float) -> float:
        """Return μ₁/(μ_p − μ_{p+1}); 1 if every direction is kept, or none exists."""
        p, values = self.n_components, self.eigenvalues
        if self.supervision is None or p is None or not len(values) or p >= len(values):
            return 1.0
        if values[p] <= len(values) * epsilon * values[0]:  # every direction with a moment is kept
            return 1.0
        return float(values[0] / max(values[p - 1] - values[p], 1e-300))


def combine(Z: Array, g: Array, squared_norms: Array) -> Array:
    """Return |z|² − 2⟨z, g(y)⟩ + k(y, y) for rows z of Z and rows g(y) of g."""
    return np.sum(Z**2, axis=1)[:, None] - 2 * Z @ g.T + squared_norms


def model_distances(model: Any, X: Any, candidates: Any) -> Array:
    """Return |G*z(x) − ψ(y)|² of a fitted model for inputs (rows) and candidates (columns), in float64."""
    Z, g = (to_numpy(array).astype(np.float64) for array in (model.embed(X), model.transform_outputs(candidates)))
    return combine(Z, g, model.output_kernel_.diag(candidates))
