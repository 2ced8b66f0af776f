"""OEL's subspaces for many λ and c at the price of a few: the eigenvectors of M_c along a path.

In coordinates that make the outputs' own moment diagonal, and with K_x = U diag(s) Uᵀ,

    M_c = (1−c) diag(σ) + c/n Bᵀ diag(s/(s+nλ))² B,   B = Uᵀ Ψ(Y)   (n, r),

so λ and c only change weights: nothing is smoothed, stacked or factored again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import ThreadpoolController

from psilearn._backend import array_namespace, asarray, eye
from psilearn._linalg import Array, add_to_diagonal, dense_top_eigh, non_negative
from psilearn.regression import RidgePath

RESIDUAL = 1e-6  # |Mv − μv| / μ₁ at which an eigenpair of the path counts as found
SMALL = 1500  # up to this order every eigenproblem is solved densely
AXES = 8  # leading axes of the outputs' moment, for each eigenvector wanted, that a smaller space keeps
POWERS = 3  # steps of the subspace iteration that finds them
LEAK = 1e-5  # |Mv − μv| / μ₁ outside a smaller space at which it is refused


@dataclass(frozen=True)
class DiagonalMoment:
    """Output coordinates turned so that Σ frequencies ψψᵀ = diag(σ), σ descending: all r of them, or s ≤ r."""

    values: Array  # (d, s)  coordinates of the known outputs
    sigma: Array  # (s,)
    rotation: Array  # (r, s)  from the coordinates they were made of

    @classmethod
    def of(cls, values: Array, frequencies: Array) -> DiagonalMoment:
        """Turn the coordinates ``values`` (d, r); one full eigendecomposition of order r."""
        weighted = values * asarray(np.sqrt(frequencies))[:, None]
        sigma, rotation = dense_top_eigh(weighted.T @ weighted, values.shape[1])
        return cls(values @ rotation, non_negative(sigma), rotation)

    @classmethod
    def leading(cls, values: Array, frequencies: Array, n_labeled: int, k: int) -> DiagonalMoment:
        """Turn the coordinates and keep those that the k leading eigenvectors of every M_c need.

        An eigenvector v of M_c = (1−c)Σ + c/n Bᵀ W² B is v = (μ − (1−c)Σ)⁻¹ Bᵀw for some w: on the axes of Σ with σ ≪ μ
        it is nearly a combination of labeled outputs. So the space of the first ``n_labeled`` outputs, which B needs
        exactly, and of about 8k leading axes, found by subspace iteration, takes the place of all r coordinates. What
        Σ leads out of it is measured at c = 0 and at c = ½ without a ridge, where the labeled outputs weigh most. Where
        that is above 1e-5·μ₁, or the space would be larger than half of everything, all coordinates are kept.

        Cost for a space of s dimensions: r²(d + 48k + 2s) + 6rs² + 9s³ flops instead of r²(3d + 9r).
        """
        r, n_axes = values.shape[1], AXES * k
        if r <= SMALL or 2 * (n_axes + n_labeled) > r:
            return cls.of(values, frequencies)
        xp = array_namespace(values)
        weighted = values * asarray(np.sqrt(frequencies))[:, None]
        M = weighted.T @ weighted  # (r, r)  Σ
        block = asarray(np.random.default_rng(0).standard_normal((r, n_axes)))
        for _ in range(POWERS):
            block = M @ block
            block /= xp.linalg.matrix_norm(block)
        labeled = values[:n_labeled]
        Q = xp.linalg.qr(xp.concat([labeled.T, block], axis=1))[0]  # (r, s)
        image = M @ Q
        sigma, S = dense_top_eigh(Q.T @ image, Q.shape[1])
        rotation = Q @ S
        B = labeled @ rotation
        mixed = dense_top_eigh(add_to_diagonal(B.T @ B / n_labeled, sigma) / 2, k)[1]
        for c, V in ((0.0, eye(len(sigma), k)), (0.5, mixed)):
            leak = (1 - c) * xp.linalg.vector_norm(image @ (S @ V) - rotation @ (sigma[:, None] * V), axis=0)
            if leak.max() > LEAK * sigma[0]:
                return cls.of(values, frequencies)
        return cls(values @ rotation, non_negative(sigma), rotation)


@dataclass(frozen=True)
class PathPoint:
    """The leading subspace at one (λ, c)."""

    alpha: float
    supervision: float
    eigenvalues: Array  # (k',)  descending, k' ≤ k: at most the rank
    directions: Array  # (r, k')
    labeled: Array  # (n, k')  B @ directions = UᵀΨ(Y) V


class SubspacePath:
    """The leading subspaces of M_c for every λ and c, for one training set and one input kernel.

    Parameters
    ----------
    moment : DiagonalMoment
        of the outputs that count as unlabeled.
    ridge : RidgePath
        fitted on the n training inputs.
    labeled : array (n, r)
        coordinates of the training outputs, in the moment's coordinates.
    """

    def __init__(self, moment: DiagonalMoment, ridge: RidgePath, labeled: Array) -> None:
        self.sigma = moment.sigma
        self.ridge = ridge
        self.B = ridge.vectors_.T @ labeled  # (n, r)

    @cached_property
    def _outer(self) -> Array:
        """Return B Bᵀ (n, n)."""
        return self.B @ self.B.T

    def points(self, alphas: Sequence[float], supervisions: Sequence[float], k: int) -> Iterator[PathPoint]:
        """Yield the k leading eigenvectors at every λ and c, λ in the outer loop.

        c = 0 is the first k axes. c = 1 is solved on the smaller side of B, densely. Between them the space of both
        and of what was found before is searched, and widened until the residual is below 1e-6·μ₁: see
        :class:`RitzSpace`.
        """
        r = len(self.sigma)
        k = min(k, r)  # 0 where all outputs have length zero
        iterate = r > max(SMALL, 10 * k)
        # Many problems of a few hundred dimensions: one BLAS thread is faster than several, but for large dense ones.
        n_threads = 1 if iterate or r <= SMALL else None
        controller, points = ThreadpoolController(), self._points(alphas, supervisions, k, iterate)
        for _ in range(len(alphas) * len(supervisions)):
            with controller.limit(limits=n_threads):
                point = next(points)
            yield point

    def _points(
        self, alphas: Sequence[float], supervisions: Sequence[float], k: int, iterate: bool
    ) -> Iterator[PathPoint]:
        n = len(self.B)
        for alpha in alphas:
            weights = self.ridge.shrinkage(alpha) ** 2 / n
            if max(supervisions) > 0:
                supervised = self._supervised(weights, k)
            moment = None
            if any(0 < c < 1 for c in supervisions):
                if iterate:
                    space = RitzSpace(self.sigma, self.B, 2 * k, supervised[1])
                else:
                    moment = (self.B.T * weights) @ self.B
            for c in supervisions:
                if c == 1:
                    values, V = _within_rank(*supervised)
                elif c > 0 and iterate:
                    values, V = _within_rank(*space.top_eigh(1 - c, c * weights, k))
                else:
                    values, V = mixed_directions(self.sigma, moment, c, k)
                yield PathPoint(alpha, c, values, V, self.B @ V)

    def _supervised(self, weights: Array, k: int) -> tuple[Array, Array]:
        """Return the leading eigenvectors of Bᵀ diag(weights) B, from the smaller side of B."""
        n, r = self.B.shape
        if n >= r:
            return dense_top_eigh((self.B.T * weights) @ self.B, k)
        xp = array_namespace(weights)
        root = weights**0.5
        values, U = dense_top_eigh(root[:, None] * self._outer * root, min(k, len(root)))
        # Bᵀ√w u has the length √μ; QR keeps the directions orthonormal where μ is all rounding.
        V, R = xp.linalg.qr(self.B.T @ (root[:, None] * U))
        return non_negative(values), V * (1.0 - 2.0 * (xp.linalg.diagonal(R) < 0))


def mixed_directions(sigma: Array, supervised: Array | None, c: float, k: int) -> tuple[Array, Array]:
    """Return the k leading eigenvalues and eigenvectors of (1−c) diag(σ) + c M, at most the rank, solved densely.

    ``supervised`` is M (r, r); it plays no part where c = 0.
    """
    r = len(sigma)
    k = min(k, r)
    if c == 0 or supervised is None:
        return _within_rank(sigma[:k], eye(r, k))
    return _within_rank(*dense_top_eigh(add_to_diagonal(c * supervised, (1 - c) * sigma), k))


def _within_rank(values: Array, V: Array) -> tuple[Array, Array]:
    """Drop eigenvalues, descending, that are rounding errors of the largest."""
    rank = int((values > len(V) * np.finfo(float).eps * values[0]).sum()) if len(values) else 0
    return values[:rank], V[:, :rank]


class RitzSpace:
    """A space that holds the leading eigenvectors of a·diag(σ) + Bᵀ diag(w) B for neighbouring a and w.

    Block Davidson iteration: take the Ritz pairs of the space, and where the residual ρ of a pair (μ, v) is too large
    add ρ/(μ − aσ), which would be the whole correction if B were small outside the space. Since σ decays, one or two
    such blocks suffice. The space stays when a and w change, so that the next problem starts close to its answer.

    References
    ----------
    Davidson, *The iterative calculation of a few of the lowest eigenvalues…*, 1975.
    """

    def __init__(self, sigma: Array, B: Array, n_axes: int, directions: Array) -> None:
        # The basis is W = [first axes | T], T zero on the axes, so that products with the axes cost nothing.
        self.sigma = sigma
        self.B = B
        self.n_axes = n_axes
        self.T = directions[:, :0]  # (r, t) orthonormal
        self.BW = B[:, :n_axes]  # (n, K), K = n_axes + t
        self.TsT = directions[:0, :0]  # (t, t)  Tᵀ diag(σ) T
        self._widen(directions)

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
            missed = xp.linalg.vector_norm(residual, axis=0) > RESIDUAL * values[0]
            if not missed.any():
                return values, V
            if len(projected) + missed.sum() > len(d):  # the space would be everything: no point in searching it
                return dense_top_eigh(add_to_diagonal((self.B.T * weights) @ self.B, d), k)
            gap = xp.maximum(values[missed] - d[:, None], 0.1 * values[missed])
            before = self.T.shape[1]
            self._widen(residual[:, missed] / gap)
            if self.T.shape[1] == before:  # nothing new: the residual is rounding
                return values, V

    def _widen(self, E: Array) -> None:
        """Add the directions of E that the basis does not hold yet."""
        xp = array_namespace(E)
        for _ in range(2):
            E = 1.0 * E
            E[: self.n_axes] = 0
            E -= self.T @ (self.T.T @ E)
            lengths = xp.linalg.vector_norm(E, axis=0)
            E = E[:, lengths > 0] / lengths[lengths > 0]
            if not E.shape[1]:
                return
            # From EᵀE, so that directions which add nothing new are dropped: QR would make them up.
            squares, S = xp.linalg.eigh(E.T @ E)
            kept = squares > 1e-12 * squares[-1]
            E = E @ (S[:, kept] / squares[kept] ** 0.5)
        cross, own = self.T.T @ (self.sigma[:, None] * E), E.T @ (self.sigma[:, None] * E)
        above, below = xp.concat([self.TsT, cross], axis=1), xp.concat([cross.T, own], axis=1)
        self.TsT = xp.concat([above, below])
        self.T = xp.concat([self.T, E], axis=1)
        self.BW = xp.concat([self.BW, self.B @ E], axis=1)
