"""Two routes from one training split to z(x) at every λ and c: one eigendecomposition of K_x, or a Cholesky factor a λ.

An eigendecomposition takes the time of about 14 Cholesky factorisations. It serves any number of λ, and outputs of any
rank; where the λ are few and the outputs span few dimensions, factors are sooner there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
from threadpoolctl import ThreadpoolController

from psilearn._backend import array_namespace
from psilearn._linalg import Array, NotPositiveSemidefiniteError, ShiftedCholesky
from psilearn._utils.samples import Samples, n_samples
from psilearn.embedding.subspace_path import SMALL, DiagonalMoment, SubspacePath, mixed_directions
from psilearn.kernels import Kernel
from psilearn.kernels.blocks import block, gram
from psilearn.regression import RidgePath

EIGEN = 12  # Cholesky factorisations that an eigendecomposition is worth, somewhat less than measured

Target = Callable[[int], Array]
Step = tuple[Array | None, Array]  # directions V (r, p), None for all of them, and z(x) of the held-out inputs (q, p)


class EigenRoute:
    """K_x = U diag(s) Uᵀ once; leave-one-out in closed form where no inputs are held out.

    Parameters
    ----------
    kernel : Kernel
        of the inputs, fitted.
    X : n training inputs
    held : q inputs held out, or None: each training input by itself
    target : function
        which output kernel → the coordinates of the training outputs, (n, r), made when they are asked for.
    """

    def __init__(self, kernel: Kernel, X: Samples, held: Samples | None, target: Target) -> None:
        self.ridge = RidgePath(kernel).fit(X)
        self.queries = None if held is None else self.ridge.rotated(held)  # (q, n)
        self.target = target

    def steps(
        self,
        which: int,
        moment: DiagonalMoment,
        alphas: Sequence[float],
        supervisions: Sequence[float],
        sizes: Sequence[int] | None,
    ) -> Iterator[Step]:
        """Yield the directions and z(x) for each λ and c, for the output kernel ``which``; without sizes for each λ."""
        target = self.target(which)
        path = SubspacePath(moment, self.ridge, target)
        if sizes is None:
            for alpha in alphas:
                yield None, self._predicted(alpha, path.B, target, None)
            return
        for point in path.points(alphas, supervisions, max(sizes)):
            yield point.directions, self._predicted(point.alpha, point.labeled, target, point.directions)

    def _predicted(self, alpha: float, rotated: Array, target: Array, V: Array | None) -> Array:
        """Return z(x), (q, p), from UᵀΨ(Y)V."""
        if self.queries is None:
            return (target if V is None else target @ V) - self.ridge.leave_one_out_residuals(rotated, alpha)
        return self.queries @ (self.ridge.inverse(alpha)[:, None] * rotated)


class CholeskyRoute:
    """(K_x + nλI)⁻¹Ψ(Y) from one factor a λ, for all output kernels at once.

    Kept of each λ are the moment of the fitted values and the predictions, r² + qr numbers an output kernel: c and p
    cost small eigenproblems only. Parameters as in :class:`EigenRoute`, with all targets at once.
    """

    def __init__(
        self, kernel: Kernel, X: Samples, held: Samples, targets: Sequence[Array], alphas: Sequence[float]
    ) -> None:
        n = n_samples(X)
        K = gram(kernel, X, "input_kernel", "Train on fewer rows of X.")
        across = block(kernel, held, X, "input_kernel")  # (q, n)
        ends = np.cumsum([target.shape[1] for target in targets])
        together = array_namespace(*targets).concat(targets, axis=1)  # (n, R)
        self.kept: dict[float, list[tuple[Array, Array]]] = {}  # λ → for each output kernel 1/n Σ ĥĥᵀ and z(x)
        for alpha in alphas:
            coef = ShiftedCholesky(K, n * alpha).solve(together)
            fitted, predicted = together - n * alpha * coef, across @ coef
            self.kept[alpha] = [
                (fitted[:, start:end].T @ fitted[:, start:end] / n, predicted[:, start:end])
                for start, end in zip([0, *ends[:-1]], ends, strict=True)
            ]

    def steps(
        self,
        which: int,
        moment: DiagonalMoment,
        alphas: Sequence[float],
        supervisions: Sequence[float],
        sizes: Sequence[int] | None,
    ) -> Iterator[Step]:
        """Yield as :meth:`EigenRoute.steps` does."""
        controller = ThreadpoolController()
        for alpha in alphas:
            supervised, predicted = self.kept[alpha][which]
            if sizes is None:
                yield None, predicted
                continue
            for c in supervisions:
                with controller.limit(limits=1):  # one thread is faster on many small problems
                    V = mixed_directions(moment.sigma, supervised, c, max(sizes))[1]
                yield V, predicted @ V


def route_for(
    kernel: Kernel, X: Samples, held: Samples | None, target: Target, widths: Sequence[int], alphas: Sequence[float]
) -> EigenRoute | CholeskyRoute:
    """Return the route that should be the faster one, for targets of these widths; others as in :class:`EigenRoute`."""
    n = n_samples(X)
    factors = len(alphas) * (1 + 6 * sum(widths) / n)  # factorisations of n³/3 flops, and solutions of 2n²R
    if held is not None and max(widths) <= SMALL and factors < EIGEN:
        kept = len(alphas) * sum(r * (r + n_samples(held)) for r in widths)
        if kept <= n * n:  # numbers: no more than K_x has
            with suppress(NotPositiveSemidefiniteError):  # by rounding, or truly: the eigenvalues tell
                return CholeskyRoute(kernel, X, held, [target(i) for i in range(len(widths))], alphas)
    return EigenRoute(kernel, X, held, target)
