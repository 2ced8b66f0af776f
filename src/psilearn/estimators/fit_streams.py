"""The input side and the output side of a fit with landmarks at the same time, in streams of a GPU.

The output side chooses its landmarks in many short rounds between which the host decides, while the input side is a few
long products: together they take little longer than the input side alone. The regression needs the targets only after
the Gram matrix of its first block.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Integral
from typing import Any

from psilearn._backend import Compute, side_streams, unless_memory_ends
from psilearn._distributed import ChunkedRows
from psilearn._linalg import use_in_current_stream
from psilearn._utils.progress import is_watched
from psilearn._utils.samples import Samples, n_samples
from psilearn.embedding import OutputStream
from psilearn.embedding.output_sides import LandmarkOutputs, OutputSide
from psilearn.estimators.fit_plan import FitPlan
from psilearn.kernels import Kernel
from psilearn.landmarks.selection import pool_size
from psilearn.regression.kernel_regression import Regression, Targets


def overlaps(
    plan: FitPlan,
    kernels: tuple[Kernel | None, ...],
    data: tuple[Samples, Samples],
    unlabeled: OutputStream | None,
    compute: Compute,
) -> bool:
    """Return whether both sides of a fit are computed at the same time.

    Kernels of torch on one GPU with enough memory for both sides, landmarks from seeds and not from a random state that
    both sides change, data in memory, and nobody who watches the steps.
    """
    landmarks = plan.input_landmarks, plan.output_landmarks
    if not compute.on_gpu or is_watched() or None in landmarks or plan.has_regressor:
        return False
    has_seeds = all(isinstance(side.random_state, Integral) for side in landmarks if side is not None)
    in_memory = not any(isinstance(part, ChunkedRows) for part in data)
    if unlabeled is not None and unlabeled.in_memory is None:
        return False
    on_device = all(kernel is not None and kernel.supports_torch for kernel in kernels)
    return has_seeds and in_memory and on_device and 2 * _bytes(plan, n_samples(data[0])) <= _available(compute)


def _bytes(plan: FitPlan, n: int) -> int:
    """Return the memory of both sides on the device, without blocks: triangles and the Gram matrix of a pool."""
    assert plan.input_landmarks is not None and plan.output_landmarks is not None
    q, r = (min(n, side.n) for side in (plan.input_landmarks, plan.output_landmarks))
    return 40 * q * (q + r) + 40 * r * r + 32 * min(n, pool_size(r)) ** 2


def _available(compute: Compute) -> int:
    return compute.available_bytes() or 0


@dataclass(frozen=True)
class PendingTargets:
    """Targets of an output side that another thread computes, and the targets after it, one block at a time."""

    start: Callable[[], Future[OutputSide]]  # starts the output side when it is called for the first time
    n: int
    max_width: int
    submit: Callable[[Callable[[], Any]], Future[Any]]  # to the only thread that computes targets
    prepared: dict[tuple[int, int], Future[Any]] = field(default_factory=dict)  # by the first row and the end

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""
        return self.n, self.start().result().rank

    def __getitem__(self, rows: slice) -> Any:
        return self.submit(lambda: self.start().result().labeled[rows]).result()

    @property
    def is_concurrent(self) -> bool:
        """Whether another thread computes the targets."""
        return True

    def prepare(self, rows: slice) -> None:
        """Start to compute the factor of a block of rows."""
        self.start()
        compute_ahead = partial(unless_memory_ends, partial(self._compute, rows))
        self.prepared[rows.start, rows.stop] = self.submit(compute_ahead)

    def is_ready(self, rows: slice) -> bool:
        """Return whether the factor of a block was computed, or can be computed now."""
        pending = self.prepared.get((rows.start, rows.stop))
        return self.start().done() if pending is None else pending.done()

    def factor(self, rows: slice) -> Any:
        """Return the rows as a factor of products."""
        pending = self.prepared.pop((rows.start, rows.stop), None)
        self._forget(rows)
        factor = None if pending is None else pending.result()
        if factor is None:
            factor = self.submit(partial(self._compute, rows)).result()
        return use_in_current_stream(factor)

    def _forget(self, rows: slice) -> None:
        """Drop the factor of a whole block of which these rows are a part."""
        for start, stop in [key for key in self.prepared if key[0] < rows.stop and rows.start < key[1]]:
            self.prepared.pop((start, stop)).cancel()

    def _compute(self, rows: slice) -> Any:
        return self.start().result().labeled.factor(rows)


def compute_overlapped(
    plan: FitPlan,
    output_side: Callable[[], OutputSide],
    regress: Callable[[Targets, Callable[[], object]], Regression],
    n: int,
    compute: Compute,
) -> tuple[OutputSide, LandmarkOutputs | None, Regression]:
    """Return the output side, what ``partial_fit`` continues from, and the regression onto n targets.

    ``regress`` takes the targets and a function that starts the output side. It calls the function when it has computed
    the kernel of the input landmarks: before, both sides would only share the time of the host.
    """
    assert plan.output_landmarks is not None
    with side_streams(compute.device) as submit, side_streams(compute.device) as submit_copies:

        @cache
        def start() -> tuple[Future[OutputSide], Future[LandmarkOutputs | None]]:
            side = submit(output_side)
            return side, submit_copies(lambda: side.result().for_partial_fit())

        targets = PendingTargets(lambda: start()[0], n, plan.output_landmarks.n, submit)
        regression = regress(targets, start)
        side, kept = start()
    return side.result(), kept.result(), regression
