"""Three routes from one training split to z(x) at every λ and c.

One eigendecomposition of K_x takes the time of about 14 Cholesky factorizations. It serves any number of λ, and outputs
of any rank; with few λ and outputs that span fewer dimensions, one factor per λ is faster. With input landmarks one
eigendecomposition of order q serves every λ, and nothing is as large as the number of examples squared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby

import numpy as np
from threadpoolctl import ThreadpoolController

from psilearn._backend import Compute, array_namespace
from psilearn._linalg import Array, NotPositiveSemidefiniteError, ShiftedCholesky
from psilearn._utils.samples import Samples, n_samples
from psilearn.embedding.subspace_path import MAX_DENSE_ORDER, SubspacePath, mixed_directions
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks
from psilearn.model_selection.grids import PathGrid
from psilearn.model_selection.split_outputs import SplitOutputs
from psilearn.regression import NystromPath, RidgePath

EIGEN_COST = 12  # assumed cost of an eigendecomposition in Cholesky factorizations; measured: about 14

OutputsOf = Callable[[int], SplitOutputs]  # the number of an output path → its outputs on this split
Step = tuple[Array | None, Array]  # directions V (s, p), None for all of them, and z(x) of the held-out inputs (q, p)


class DecomposedRoute(ABC):
    """z(x) = queries · diag(1/(s + nλ)) · B from one decomposition, for every λ; a subclass makes the parts."""

    ridge: RidgePath | NystromPath
    queries: Array  # (q, n)  rotated kernel values of the held-out inputs
    leaves_one_out: bool  # the training examples are held out, one at a time, in closed form
    outputs_of: OutputsOf

    @abstractmethod
    def _rotated_targets(self, which: int) -> Array:
        """Return B, the rotated coordinates of the training outputs of one output path, (n, s)."""

    def steps(self, which: int, grid: PathGrid) -> Iterator[Step]:
        """Yield directions and z(x) for each λ and c of one output path; for each λ if every direction is kept.

        z(x) is computed for all s coordinates once per λ, unless few directions are needed.
        """
        outputs, B = self.outputs_of(which), self._rotated_targets(which)
        target = outputs.training_targets() if self.leaves_one_out else None
        if grid.sizes is None:
            for alpha in grid.alphas:
                yield None, self._predict(alpha, B, target)
            return
        (n, s), q = B.shape, len(self.queries)
        size = min(max(grid.sizes), s)
        shares = len(grid.supervisions) * size * (n * s + q * n) >= q * n * s  # flops
        points = SubspacePath(outputs.moment.sigma, self.ridge, B).points(grid.alphas, grid.supervisions, size)
        for alpha, group in groupby(points, lambda point: point.alpha):
            predicted = self._predict(alpha, B, target) if shares else None
            for point in group:
                if predicted is not None:
                    yield point.directions, point.coordinates(predicted)
                else:
                    along = None if target is None else point.coordinates(target)
                    yield point.directions, self._predict(alpha, point.coordinates(B), along)

    def _predict(self, alpha: float, rotated: Array, target: Array | None) -> Array:
        """Return z(x), (q, p), from BV; the target is Ψ(Y)V if one example is left out at a time."""
        if target is not None:
            return target - self._left_out_residuals(alpha, rotated, target)
        predicted: Array = self.queries @ (self.ridge.inverse(alpha)[:, None] * rotated)
        return predicted

    @abstractmethod
    def _left_out_residuals(self, alpha: float, rotated: Array, target: Array) -> Array:
        """Return vᵢ − ĥ₋ᵢ(xᵢ) for targets V (n, p), whose rotated coordinates are given too."""


class EigenRoute(DecomposedRoute):
    """K_x = U diag(s) Uᵀ once; leave-one-out in closed form if no inputs are held out.

    Parameters
    ----------
    kernel : Kernel
        The fitted input kernel.
    X : n training inputs
    held : q inputs held out, or None to leave out one training input at a time
    outputs_of : function
        The outputs of the split, computed on request.
    """

    def __init__(
        self, kernel: Kernel, X: Samples, held: Samples | None, outputs_of: OutputsOf, compute: Compute
    ) -> None:
        self.ridge: RidgePath = RidgePath(kernel, compute).fit(X)
        self.leaves_one_out = held is None
        self.queries = self.ridge.vectors_ if held is None else self.ridge.rotated(held)
        self.outputs_of = outputs_of

    def _rotated_targets(self, which: int) -> Array:
        rotated: Array = self.ridge.vectors_.T @ self.outputs_of(which).training_targets()
        return rotated

    def _left_out_residuals(self, alpha: float, rotated: Array, target: Array) -> Array:
        return self.ridge.leave_one_out_residuals(rotated, alpha)


class NystromRoute(DecomposedRoute):
    """Regression in the span of input landmarks: ΦᵀΦ = U diag(s) Uᵀ once, for all output paths in one pass over X.

    Parameters as in :class:`EigenRoute`, for ``n_paths`` output paths; ``alpha`` is used by leverage scores only.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Samples,
        held: Samples | None,
        outputs_of: OutputsOf,
        n_paths: int,
        landmarks: Landmarks,
        alpha: float,
        compute: Compute,
    ) -> None:
        targets = [outputs_of(which).training_rows() for which in range(n_paths)]
        self.ridge: NystromPath = NystromPath(kernel, landmarks, alpha, compute).fit(X, targets)
        self.leaves_one_out = held is None
        self.queries = self.ridge.rotated(X if held is None else held)
        self.outputs_of = outputs_of

    def _rotated_targets(self, which: int) -> Array:
        return self.ridge.targets_[which]

    def _left_out_residuals(self, alpha: float, rotated: Array, target: Array) -> Array:
        """With the hat matrix H = Φ(ΦᵀΦ + nλI)⁻¹Φᵀ they are (V − HV)ᵢ / (1 − Hᵢᵢ)."""
        inverse = self.ridge.inverse(alpha)
        residuals = target - self.queries @ (inverse[:, None] * rotated)
        return residuals / (1 - self.queries**2 @ inverse)[:, None]


class CholeskyRoute:
    """(K_x + nλI)⁻¹Ψ(Y) from one factor per λ, for all output paths at once.

    The moment of the fitted values and the predictions are kept for each λ, s² + qs numbers per output path, so that c
    and p only cost small eigenproblems. Parameters as in :class:`EigenRoute`, for ``n_paths`` output paths.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Samples,
        held: Samples,
        outputs_of: OutputsOf,
        n_paths: int,
        alphas: Sequence[float],
        compute: Compute,
    ) -> None:
        n = n_samples(X)
        K = kernel.gram(X, compute=compute, remedy="Train on fewer rows of X.")
        across = kernel(held, X, compute=compute)  # (q, n)
        targets = [outputs_of(which).training_targets() for which in range(n_paths)]
        ends = np.cumsum([target.shape[1] for target in targets])
        stacked = array_namespace(*targets).concat(targets, axis=1)  # (n, S)
        self.outputs_of = outputs_of
        self.compute = compute
        self.solutions: dict[float, list[tuple[Array, Array]]] = {}  # λ → 1/n Σ ĥĥᵀ and z(x) of each output path
        for alpha in alphas:
            coefficients = ShiftedCholesky(K, n * alpha).solve(stacked)
            fitted, predicted = stacked - n * alpha * coefficients, across @ coefficients
            self.solutions[alpha] = [
                (fitted[:, start:end].T @ fitted[:, start:end] / n, predicted[:, start:end])
                for start, end in zip([0, *ends[:-1]], ends, strict=True)
            ]

    def steps(self, which: int, grid: PathGrid) -> Iterator[Step]:
        """Yield directions and z(x) as :meth:`EigenRoute.steps` does."""
        controller = ThreadpoolController()
        sigma = self.outputs_of(which).moment.sigma
        # One thread is faster on many small problems.
        n_threads = 1 if self.compute.device is None and len(sigma) <= MAX_DENSE_ORDER else None
        for alpha in grid.alphas:
            supervised, predicted = self.solutions[alpha][which]
            if grid.sizes is None:
                yield None, predicted
                continue
            for c in grid.supervisions:
                with controller.limit(limits=n_threads):
                    V = mixed_directions(sigma, supervised, c, max(grid.sizes), self.compute)[1]
                yield V, predicted @ V


def choose_route(
    kernel: Kernel,
    X: Samples,
    held: Samples | None,
    outputs_of: OutputsOf,
    widths: Sequence[int],
    grid: PathGrid,
    landmarks: Landmarks | None,
    compute: Compute,
) -> DecomposedRoute | CholeskyRoute:
    """Return the route with input landmarks, or the exact one that is expected to be faster.

    ``widths`` are those of the output paths; for the other arguments see :class:`EigenRoute`.
    """
    alphas = grid.alphas
    if landmarks is not None:
        alpha = alphas[len(alphas) // 2]
        return NystromRoute(kernel, X, held, outputs_of, len(widths), landmarks, alpha, compute)
    n_problems = 0 if grid.sizes is None else grid.n_steps
    if held is not None and prefers_factors(n_samples(X), n_samples(held), widths, len(alphas), n_problems):
        with suppress(NotPositiveSemidefiniteError):  # because of rounding or truly: the eigenvalues decide
            return CholeskyRoute(kernel, X, held, outputs_of, len(widths), alphas, compute)
    return EigenRoute(kernel, X, held, outputs_of, compute)


def prefers_factors(n: int, n_held: int | None, widths: Sequence[int], n_alphas: int, n_problems: int) -> bool:
    """Return whether one factor per λ is expected to be faster.

    ``n_held`` is None for leave-one-out; ``n_problems`` is the number of pairs (λ, c) whose directions are computed.
    """
    n_factors = n_alphas * (1 + 6 * sum(widths) / n)  # factorizations of n³/3 flops, and solutions of 2n²S
    n_factors += n_problems * EIGEN_COST * sum((s / n) ** 3 for s in widths)
    if n_held is None or n_factors >= EIGEN_COST:
        return False
    n_kept = n_alphas * sum(s * (s + n_held) for s in widths)
    return n_kept <= n * n  # no more numbers than K_x has
