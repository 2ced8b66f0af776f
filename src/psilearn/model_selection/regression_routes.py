"""Two routes from one training split to z(x) at every λ and c: one eigendecomposition of K_x, or one factor per λ.

An eigendecomposition takes the time of about 14 Cholesky factorizations. It serves any number of λ, and outputs of any
rank; with few λ and outputs that span few dimensions, factors are faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
from threadpoolctl import ThreadpoolController

from psilearn._backend import Compute, array_namespace
from psilearn._linalg import Array, NotPositiveSemidefiniteError, ShiftedCholesky
from psilearn._utils.samples import Samples, n_samples
from psilearn.embedding.subspace_path import MAX_DENSE_ORDER, SubspacePath, mixed_directions
from psilearn.kernels import Kernel
from psilearn.model_selection.grids import PathGrid
from psilearn.model_selection.split_outputs import SplitOutputs
from psilearn.regression import RidgePath

EIGEN_COST = 12  # assumed cost of an eigendecomposition in Cholesky factorizations; measured: about 14

OutputsOf = Callable[[int], SplitOutputs]  # the number of an output path → its outputs on this split
Step = tuple[Array | None, Array]  # directions V (s, p), None for all of them, and z(x) of the held-out inputs (q, p)


class EigenRoute:
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
        self.ridge = RidgePath(kernel, compute).fit(X)
        self.queries = None if held is None else self.ridge.rotated(held)  # (q, n)
        self.outputs_of = outputs_of

    def steps(self, which: int, grid: PathGrid) -> Iterator[Step]:
        """Yield directions and z(x) for each λ and c of one output path; for each λ if every direction is kept."""
        outputs = self.outputs_of(which)
        target = outputs.training_targets()
        path = SubspacePath(outputs.moment, self.ridge, target)
        if grid.sizes is None:
            for alpha in grid.alphas:
                yield None, self._predict(alpha, path.B, target, None)
            return
        for point in path.points(grid.alphas, grid.supervisions, max(grid.sizes)):
            yield point.directions, self._predict(point.alpha, point.labeled, target, point.directions)

    def _predict(self, alpha: float, rotated: Array, target: Array, V: Array | None) -> Array:
        """Return z(x), (q, p), from UᵀΨ(Y)V."""
        if self.queries is None:
            return (target if V is None else target @ V) - self.ridge.leave_one_out_residuals(rotated, alpha)
        return self.queries @ (self.ridge.inverse(alpha)[:, None] * rotated)


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
        for alpha in grid.alphas:
            supervised, predicted = self.solutions[alpha][which]
            if grid.sizes is None:
                yield None, predicted
                continue
            for c in grid.supervisions:
                with controller.limit(limits=1):  # one thread is faster on many small problems
                    V = mixed_directions(sigma, supervised, c, max(grid.sizes), self.compute)[1]
                yield V, predicted @ V


def choose_route(
    kernel: Kernel,
    X: Samples,
    held: Samples | None,
    outputs_of: OutputsOf,
    widths: Sequence[int],
    alphas: Sequence[float],
    compute: Compute,
) -> EigenRoute | CholeskyRoute:
    """Return the route that is expected to be faster, for output paths of these widths; see :class:`EigenRoute`."""
    n = n_samples(X)
    n_factors = len(alphas) * (1 + 6 * sum(widths) / n)  # factorizations of n³/3 flops, and solutions of 2n²S
    if held is not None and max(widths) <= MAX_DENSE_ORDER and n_factors < EIGEN_COST:
        n_kept = len(alphas) * sum(s * (s + n_samples(held)) for s in widths)
        if n_kept <= n * n:  # no more numbers than K_x has
            with suppress(NotPositiveSemidefiniteError):  # because of rounding or truly: the eigenvalues decide
                return CholeskyRoute(kernel, X, held, outputs_of, len(widths), alphas, compute)
    return EigenRoute(kernel, X, held, outputs_of, compute)
