"""Products of features with targets that may not be known yet."""

from __future__ import annotations

from typing import Any

from psilearn._backend import Compute, unless_memory_ends
from psilearn._linalg import Array, add_product
from psilearn._utils.progress import step
from psilearn.regression.kernel_regression import ComputedTargets, Targets

MAX_WAITING = 2  # blocks of features that wait for their targets


class CrossProducts:
    """ΦᵀV, (q, r) in float64, summed over blocks. Blocks whose targets another thread still computes wait for them."""

    def __init__(self, q: int, targets: Targets, compute: Compute) -> None:
        self.q, self.targets, self.compute = q, targets, compute
        self._total: Any = None
        self._waiting: list[tuple[slice, Any]] = []  # rows, and their features as columns (q, b)

    @classmethod
    def of(cls, total: Array, targets: Targets, compute: Compute) -> CrossProducts:
        """Return a finished sum."""
        products = cls(len(total), targets, compute)
        products._total = total
        return products

    @property
    def is_waiting(self) -> bool:
        """Whether features of any block are kept."""
        return bool(self._waiting)

    def add(self, rows: slice, phi: Any) -> None:
        """Add the product of one block, later if its targets are not ready, and those of blocks that waited."""
        self._waiting.append((rows, phi))
        while len(self._waiting) > MAX_WAITING or (self._waiting and self._is_ready(self._waiting[0][0])):
            self._add_first()

    def release(self) -> None:
        """Add the blocks that wait, whose memory is needed.

        If memory does not suffice for that, the sum is lost: the error is not one after which a block is halved.
        """
        if unless_memory_ends(self.finish) is None:
            raise MemoryError(
                f"{self.compute.device} has no memory left for products of features with their targets. Lower "
                f"input_landmarks or output_landmarks."
            )

    def finish(self) -> Array:
        """Return the sum over all blocks."""
        while self._waiting:
            self._add_first()
        return self._total

    def _is_ready(self, rows: slice) -> bool:
        return not isinstance(self.targets, ComputedTargets) or self.targets.is_ready(rows)

    def _add_first(self) -> None:
        rows, phi = self._waiting.pop(0)
        V, compute = self.targets, self.compute
        targets = V.factor(rows) if isinstance(V, ComputedTargets) else compute.asarray(V[rows], compute.dtype)
        if self._total is None:
            self._total = compute.zeros((self.q, targets.shape[1]))
        with step("cross products with the targets"):
            add_product(self._total, phi, targets)
