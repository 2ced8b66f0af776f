"""OEL's subspaces for many λ and c: the eigenvectors of M_c along a path.

In coordinates in which the moment of the outputs is diagonal, and with K_x = U diag(s) Uᵀ,

    M_c = (1−c) diag(σ) + c/n Bᵀ diag(s/(s+nλ))² B,   B = Uᵀ Ψ(Y)   (n, r),

so that λ and c only change weights: U, B and σ are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from threadpoolctl import ThreadpoolController

from psilearn._backend import Compute, array_namespace, is_tensor
from psilearn._linalg import (
    Array,
    add_to_diagonal,
    clip_negative,
    dense_top_eigh,
    mixing_weights,
    shifted_factor,
    solve_lower,
)

RESIDUAL = 1e-6  # |Mv − μv| / μ₁ at which an eigenpair of the path has converged
MAX_DENSE_ORDER = 1500  # up to this order every eigenproblem is solved densely
AXES_PER_VECTOR = 8  # leading axes of the moment of the outputs that a smaller space keeps per eigenvector
POWER_STEPS = 3  # steps of the subspace iteration that finds these axes
WELL_CONDITIONED = 1e-2  # smallest pivot of directions of length 1 that need no eigenvectors
MAX_LEAK = 1e-5  # |Mv − μv| / μ₁ outside of a smaller space, above which all coordinates are kept


@dataclass(frozen=True)
class DiagonalMoment:
    """Output coordinates, s ≤ r of them, rotated so that Σ frequencies ψψᵀ = diag(σ) with σ descending."""

    values: Array  # (d, s)  coordinates of the known outputs
    sigma: Array  # (s,)
    rotation: Array  # (r, s)  from the original coordinates

    @classmethod
    def of(cls, values: Array, frequencies: Array, compute: Compute) -> DiagonalMoment:
        """Rotate the coordinates ``values`` (d, r); one full eigendecomposition of order r."""
        weighted = values * compute.asarray(np.sqrt(frequencies))[:, None]
        return cls.of_matrix(values, weighted.T @ weighted)

    @classmethod
    def of_matrix(cls, values: Array, moment: Array) -> DiagonalMoment:
        """Rotate the coordinates ``values`` (d, r) so that a moment (r, r) becomes diagonal."""
        sigma, rotation = dense_top_eigh(moment, values.shape[1])
        return cls(values @ rotation, clip_negative(sigma), rotation)

    def without_null_space(self) -> DiagonalMoment:
        """Return the coordinates with σ > 0 up to rounding, at least one.

        In the others every output with a positive frequency is zero. If the labeled outputs are those, nothing is lost:
        M_c and the regression are zero there.
        """
        size = max(1, int((self.sigma > len(self.sigma) * np.finfo(float).eps * self.sigma[:1]).sum()))
        return DiagonalMoment(self.values[:, :size], self.sigma[:size], self.rotation[:, :size])

    @classmethod
    def leading(cls, values: Array, frequencies: Array, n_labeled: int, k: int, compute: Compute) -> DiagonalMoment:
        """Rotate the coordinates and keep those that the k leading eigenvectors of every M_c need.

        An eigenvector v of M_c = (1−c)Σ + c/n Bᵀ W² B is v = (μ − (1−c)Σ)⁻¹ Bᵀw for some w: on the axes of Σ with σ ≪ μ
        it is nearly a combination of labeled outputs. All r coordinates are therefore replaced by a smaller space: the
        span of the first ``n_labeled`` outputs, in which B is exact, and of about 8k leading axes of Σ, found by
        subspace iteration. The part of Σv outside of this space is measured at c = 0 and at c = ½ without a ridge,
        where the labeled outputs have the largest weight. If it exceeds 1e-5·μ₁, or if the space would be larger than
        r/2, all coordinates are kept.

        Cost for a space of s dimensions: r²(d + 48k + 2s) + 6rs² + 9s³ flops instead of r²(3d + 9r).
        """
        r, n_axes = values.shape[1], AXES_PER_VECTOR * k
        if r > MAX_DENSE_ORDER and 2 * (n_axes + n_labeled) <= r:
            found = cls._smaller_space(values, frequencies, n_labeled, k, compute)
            if found is not None:
                return found
        needed = 8 * values.shape[0] * r + 32 * r * r
        compute.require_bytes(needed, f"The rotation of {r:,} output coordinates", "Set output_landmarks.")
        return cls.of(values, frequencies, compute)

    @classmethod
    def _smaller_space(
        cls, values: Array, frequencies: Array, n_labeled: int, k: int, compute: Compute
    ) -> DiagonalMoment | None:
        """Return the coordinates of :meth:`leading`, or None if the eigenvectors leave their span."""
        r, n_axes = values.shape[1], AXES_PER_VECTOR * k
        xp = array_namespace(values)
        weighted = values * compute.asarray(np.sqrt(frequencies))[:, None]
        M = weighted.T @ weighted  # (r, r)  Σ
        block = compute.asarray(np.random.default_rng(0).standard_normal((r, n_axes)))
        for _ in range(POWER_STEPS):
            block = M @ block
            block /= xp.linalg.matrix_norm(block)
        labeled = values[:n_labeled]
        Q = xp.linalg.qr(xp.concat([labeled.T, block], axis=1))[0]  # (r, s)
        image = M @ Q
        sigma, S = dense_top_eigh(Q.T @ image, Q.shape[1])
        rotation = Q @ S
        B = labeled @ rotation
        mixed = dense_top_eigh(add_to_diagonal(B.T @ B / n_labeled, sigma) / 2, k)[1]
        for c, V in ((0.0, compute.eye(len(sigma), k)), (0.5, mixed)):
            leak = (1 - c) * xp.linalg.vector_norm(image @ (S @ V) - rotation @ (sigma[:, None] * V), axis=0)
            if leak.max() > MAX_LEAK * sigma[0]:
                return None
        return cls(values @ rotation, clip_negative(sigma), rotation)


class RidgeOfPath(Protocol):
    """A regression for every λ in the coordinates of one decomposition."""

    @property
    def compute(self) -> Compute:
        """Precision and device."""

    def moment_weights(self, alpha: float) -> Array:
        """Return the weights w of 1/n Σ ĥĥᵀ = Bᵀ diag(w) B."""


@dataclass(frozen=True)
class PathPoint:
    """The leading subspace at one (λ, c)."""

    alpha: float
    supervision: float
    eigenvalues: Array  # (k',)  descending, k' ≤ k: at most the rank
    directions: Array  # (r, k')

    def coordinates(self, A: Array) -> Array:
        """Return A @ directions, (m, k'), for A (m, r); for c = 0 these are the first columns of A."""
        if self.supervision == 0:
            return A[:, : self.directions.shape[1]]
        return A @ self.directions


class SubspacePath:
    """The leading subspaces of M_c for every λ and c, for one training set and one input kernel.

    Parameters
    ----------
    sigma : array of shape (r,)
        The diagonal moment of the unlabeled outputs, or of the labeled ones if there are none.
    ridge : RidgeOfPath
        Fitted on the n training inputs.
    B : array of shape (n, r)
        The training outputs in coordinates in which the moment is diagonal, rotated by the decomposition of the ridge:
        UᵀΨ(Y). With q landmarks it has q rows.
    """

    def __init__(self, sigma: Array, ridge: RidgeOfPath, B: Array) -> None:
        self.compute = ridge.compute
        self.sigma = sigma
        self.ridge = ridge
        self.B = B

    @cached_property
    def _outer(self) -> Array:
        """Return B Bᵀ (n, n)."""
        return self.B @ self.B.T

    def points(self, alphas: Sequence[float], supervisions: Sequence[float], k: int) -> Iterator[PathPoint]:
        """Yield the k leading eigenvectors at every λ and c, λ in the outer loop.

        For c = 0 they are the first k axes. For c = 1 they are computed densely from BBᵀ or BᵀB, whichever is smaller.
        For values in between, :class:`RitzSpace` searches the span of these eigenvectors and of the previous solutions,
        and extends it until the residual is below 1e-6·μ₁.
        """
        r = len(self.sigma)
        k = min(k, r)  # 0 if ψ(y) = 0 for all outputs
        iterate = r > max(MAX_DENSE_ORDER, 10 * k)
        # One BLAS thread is faster on many problems of a few hundred dimensions, several on large dense ones.
        n_threads = 1 if self.compute.device is None and (iterate or r <= MAX_DENSE_ORDER) else None
        controller, points = ThreadpoolController(), self._points(alphas, supervisions, k, iterate)
        for _ in range(len(alphas) * len(supervisions)):
            with controller.limit(limits=n_threads):
                point = next(points)
            yield point

    def _points(
        self, alphas: Sequence[float], supervisions: Sequence[float], k: int, iterate: bool
    ) -> Iterator[PathPoint]:
        mixes = any(0 < c < 1 for c in supervisions)
        for alpha in alphas:
            weights = self.ridge.moment_weights(alpha)
            moment = self._weighted_gram(weights) if mixes and not iterate else None
            if max(supervisions) == 1 or (mixes and iterate):
                supervised = self._supervised(weights, k, moment)
            if mixes and iterate:
                space = RitzSpace(self.sigma, self.B, 2 * k, supervised[1])
            for c in supervisions:
                if c == 1:
                    values, V = _within_rank(*supervised)
                elif c > 0 and iterate:
                    weight, other_weight = mixing_weights(c)
                    values, V = _within_rank(*space.top_eigh(other_weight, weight * weights, k))
                else:
                    values, V = mixed_directions(self.sigma, moment, c, k, self.compute)
                yield PathPoint(alpha, c, values, V)

    def _weighted_gram(self, weights: Array) -> Array:
        """Return Bᵀ diag(weights) B, (r, r), with half of the flops of a product."""
        weighted = weights[:, None] ** 0.5 * self.B
        return weighted.T @ weighted

    def _supervised(self, weights: Array, k: int, moment: Array | None = None) -> tuple[Array, Array]:
        """Return the leading eigenvectors of Bᵀ diag(weights) B, computed from the smaller of BBᵀ and BᵀB.

        ``moment`` is this matrix, if it is known.
        """
        n, r = self.B.shape
        if n >= r:
            return dense_top_eigh(self._weighted_gram(weights) if moment is None else moment, k)
        xp = array_namespace(weights)
        root = weights**0.5
        values, U = dense_top_eigh(root[:, None] * self._outer * root, min(k, len(root)))
        # Bᵀ√w u has the length √μ; QR keeps the directions orthonormal if μ is dominated by rounding.
        V, R = xp.linalg.qr(self.B.T @ (root[:, None] * U))
        return clip_negative(values), V * (1.0 - 2.0 * (xp.linalg.diagonal(R) < 0))


def mixed_directions(
    sigma: Array, supervised: Array | None, supervision: float, k: int, compute: Compute
) -> tuple[Array, Array]:
    """Return the k leading eigenvalues and eigenvectors of (1−c) diag(σ) + c·M, at most the rank, solved densely.

    ``supervised`` is M (r, r); it is not used if c = 0.
    """
    r = len(sigma)
    k = min(k, r)
    weight, other_weight = mixing_weights(supervision)
    if weight == 0 or supervised is None:
        return _within_rank(sigma[:k], compute.eye(r, k))
    return _within_rank(*dense_top_eigh(add_to_diagonal(weight * supervised, other_weight * sigma), k))


def _within_rank(values: Array, V: Array) -> tuple[Array, Array]:
    """Drop eigenvalues that are zero up to rounding; they are given in descending order."""
    rank = int((values > len(V) * np.finfo(float).eps * values[0]).sum()) if len(values) else 0
    return values[:rank], V[:, :rank]


class RitzSpace:
    """A space that contains the leading eigenvectors of a·diag(σ) + Bᵀ diag(w) B for neighboring a and w.

    Block Davidson iteration: compute the Ritz pairs of the space. If the residual ρ of a pair (μ, v) is too large,
    extend the space by ρ/(μ − aσ), which would be the exact correction if B were zero outside of the space. Since σ
    decays, one or two extensions suffice. The space is kept when a and w change, so that the next iteration starts
    close to its solution.

    References
    ----------
    Davidson, *The iterative calculation of a few of the lowest eigenvalues…*, 1975.
    """

    def __init__(self, sigma: Array, B: Array, n_axes: int, directions: Array) -> None:
        # The basis is W = [first axes | T] with T zero on these axes, so that products with the axes cost nothing.
        self.sigma = sigma
        self.B = B
        self.n_axes = n_axes
        self.T = directions[:, :0]  # (r, t) orthonormal
        self.BW = B[:, :n_axes]  # (n, K), K = n_axes + t
        self.TsT = directions[:0, :0]  # (t, t)  Tᵀ diag(σ) T
        self._extend(directions)

    def top_eigh(self, a: float, weights: Array, k: int) -> tuple[Array, Array]:
        """Return the k largest eigenvalues and eigenvectors of a·diag(σ) + Bᵀ diag(weights) B."""
        d, xp = a * self.sigma, array_namespace(self.sigma)
        while True:
            projected = (self.BW.T * weights) @ self.BW  # (K, K)  Wᵀ M W
            add_to_diagonal(projected[: self.n_axes, : self.n_axes], d[: self.n_axes])
            projected[self.n_axes :, self.n_axes :] += a * self.TsT
            values, S = dense_top_eigh(projected, k)
            V = self.T @ S[self.n_axes :]
            V[: self.n_axes] += S[: self.n_axes]
            residual = d[:, None] * V + self.B.T @ (weights[:, None] * (self.BW @ S)) - V * values
            unconverged = xp.linalg.vector_norm(residual, axis=0) > RESIDUAL * values[0]
            if not unconverged.any():
                return values, V
            if len(projected) + unconverged.sum() > len(d):  # the space would be the whole space
                return dense_top_eigh(add_to_diagonal((self.B.T * weights) @ self.B, d), k)
            gap = xp.maximum(values[unconverged] - d[:, None], 0.1 * values[unconverged])
            before = self.T.shape[1]
            self._extend(residual[:, unconverged] / gap)
            if self.T.shape[1] == before:  # no new direction: the residual is rounding
                return values, V

    def _extend(self, E: Array) -> None:
        """Add the directions of E that the basis does not contain yet."""
        xp = array_namespace(E)
        for _ in range(2):
            E = 1.0 * E
            E[: self.n_axes] = 0
            E -= self.T @ (self.T.T @ E)
            lengths = xp.linalg.vector_norm(E, axis=0)
            E = E[:, lengths > 0] / lengths[lengths > 0]
            if not E.shape[1]:
                return
            E = _orthonormal(E)
        cross, inner = self.T.T @ (self.sigma[:, None] * E), E.T @ (self.sigma[:, None] * E)
        above, below = xp.concat([self.TsT, cross], axis=1), xp.concat([cross.T, inner], axis=1)
        self.TsT = xp.concat([above, below])
        self.T = xp.concat([self.T, E], axis=1)
        self.BW = xp.concat([self.BW, self.B @ E], axis=1)


def _orthonormal(E: Array) -> Array:
    """Return an orthonormal basis of the span of columns of length 1, without directions that are rounding.

    A Cholesky factor of EᵀE is enough where it is well-conditioned; on a GPU it takes a tenth of the time of the
    eigenvectors. These show which directions are dependent, while QR would replace them by arbitrary ones.
    """
    inner = E.T @ E
    if is_tensor(E):
        L = shifted_factor(1.0 * inner, 0.0)
        if L is not None and float(L.diagonal().min()) > WELL_CONDITIONED:
            return solve_lower(L, E.T).T
    squares, S = array_namespace(E).linalg.eigh(inner)
    kept = squares > 1e-12 * squares[-1]
    return E @ (S[:, kept] / squares[kept] ** 0.5)
