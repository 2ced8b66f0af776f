"""Coordinates on the span of landmarks: a finite feature map of any kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, array_namespace, is_tensor, to_fortran
from psilearn._linalg import (
    SINGLE,
    Array,
    NotPositiveSemidefiniteError,
    SplitMatrix,
    SplitTriangle,
    is_split_faster,
    solve_lower,
    spanning_cholesky,
)
from psilearn._utils.progress import stage, step
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels import Kernel
from psilearn.kernels.gram_matrix import SymmetryCheck

PLACED_SHARE = 16  # CSR rows take at most one part in this many of the free memory of a GPU


def place_small(kernel: Kernel, A: Samples, compute: Compute) -> Samples:
    """Return validated CSR rows as a dense tensor of a GPU if that takes little of its memory; else unchanged."""
    if not compute.on_gpu or not sparse.issparse(A):
        return A
    dense_bytes = 8 * A.shape[0] * A.shape[1]
    is_small = dense_bytes * PLACED_SHARE <= (compute.available_bytes() or 0)
    return kernel.to_device(A, compute) if is_small else A


@dataclass(frozen=True)
class LandmarkFeatures:
    """The map φ(a) = L⁻¹ k(S, a) ∈ Rʳ with LLᵀ = k(S, S): coordinates of ψ(a), projected on the span of landmarks S.

    ⟨φ(a), φ(b)⟩ = k(a, S) k(S, S)⁻¹ k(S, b) is Nyström's approximation of k(a, b), and exact if ψ(a) lies in the span.
    """

    kernel: Kernel
    landmarks: Samples  # r linearly independent objects
    triangle: Array  # (r, r)  L
    placed: Samples | None = None  # the landmarks as tensors, during a fit on a device

    _has_checked_block = False  # whether the symmetry of a block was checked: that of the first one is

    @classmethod
    def of(
        cls, kernel: Kernel, landmarks: Samples, side: str, compute: Compute, *, is_checked: bool = False
    ) -> LandmarkFeatures:
        """Factor k(S, S) in float64 for landmarks, validated unless ``is_checked``; those that others span are dropped.

        r²/2 kernel values and r³/3 flops. The tolerance is r·ε·max k(s, s), or 2√r·ε₃₂·max k(s, s) if features are
        computed in float32: it bounds how much the solution with L amplifies the rounding errors of a block. ``side``
        is "input" or "output", for messages.
        """
        landmarks = landmarks if is_checked else kernel.check(landmarks, f"{side} landmarks")
        placed = kernel.to_device(landmarks, compute)
        with stage(f"kernel of {n_samples(landmarks):,} {side} landmarks"):
            K = kernel.gram(placed, compute=compute, remedy=f"Lower {side}_landmarks.")
        scale = float(array_namespace(K).linalg.diagonal(K).max())
        is_single = compute.dtype == np.float32
        rounding = 2 * np.sqrt(len(K)) * SINGLE if is_single else len(K) * float(np.finfo(np.float64).eps)
        try:
            with stage(f"Cholesky factor of {len(K):,} {side} landmarks"):
                kept, triangle = spanning_cholesky(K, rounding * scale)
        except NotPositiveSemidefiniteError as error:
            raise NotPositiveSemidefiniteError(
                f"{side}_kernel = {kernel!r} is not positive semi-definite on the landmarks: {error}."
            ) from error
        if len(kept) < len(K):
            landmarks, placed = take(landmarks, kept), take(placed, kept)
        return cls(kernel, landmarks, triangle, placed)

    @property
    def rank(self) -> int:
        """r, the dimension of the span."""
        return len(self.triangle)

    def columns(self, A: Samples, compute: Compute) -> Any:
        """Return φ(a) as columns, (r, len(A)), arrays in Fortran order; len(A)·r² flops."""
        phi, _ = self.factor_and_lengths(A, compute)
        return phi.to_tensor() if isinstance(phi, SplitMatrix) else phi

    def factor_and_lengths(self, A: Samples, compute: Compute, is_checked: bool = False) -> tuple[Any, Array]:
        """Return φ(a) as columns, (r, len(A)), for products, and k(a, a), (len(A),).

        The columns are an array in Fortran order, a tensor, or a :class:`SplitMatrix` if that has faster products.
        Objects are validated unless ``is_checked``: validation on a GPU waits for all work before it.
        """
        A = A if is_checked else self.kernel.check(A)
        lengths = self.kernel.diag_of_checked(A)
        if not self.rank:
            return compute.zeros((n_samples(A), 0), compute.dtype).T, lengths
        with step("kernel values with landmarks"):
            K = self.kernel.block_of_checked(A, self.landmarks, compute)
            is_due = self.kernel.looks_up_values or not self._has_checked_block
            check = SymmetryCheck(K, self.kernel, A) if is_due else None
        with step("solution with the landmarks' triangle"):
            block = K.T if is_tensor(K) else np.ascontiguousarray(K).T
            return self._solve(block, float(np.sqrt(max(lengths.max(), 0.0))), check, compute), lengths

    def _solve(self, block: Any, longest: float, check: SymmetryCheck | None, compute: Compute) -> Any:
        """Return L⁻¹ · block for a block (r, b) that may be overwritten; |φ(a)| ≤ √k(a, a) is at most ``longest``.

        A kernel that is not positive semi-definite may exceed this bound, which split precision needs.
        """
        is_single = compute.dtype == np.float32
        is_split = is_single and is_split_faster(block.shape, compute)
        phi = self._split_triangle.solve(block, longest) if is_split else None
        if check is not None:  # a GPU has work until then
            self.__dict__["_has_checked_block"] = check.run(self.landmarks, compute)
        if phi is not None and phi.is_finite():
            return phi
        return solve_lower(self._single_triangle if is_single else self.triangle, block)

    def to_device(self, compute: Compute) -> LandmarkFeatures:
        """Return the same features with the triangle and dense landmarks on the device."""
        if compute.device is None or (is_tensor(self.triangle) and is_tensor(self.landmarks)):
            return self
        landmarks = self.kernel.to_device(self.landmarks, compute) if self.placed is None else self.placed
        return replace(self, landmarks=landmarks, triangle=compute.asarray(self.triangle), placed=None)

    def to_numpy(self) -> LandmarkFeatures:
        """Return the same features with the triangle as a NumPy array."""
        return replace(self, triangle=to_fortran(self.triangle), placed=None)

    @cached_property
    def _split_triangle(self) -> SplitTriangle:
        return SplitTriangle(self.triangle)

    @cached_property
    def _single_triangle(self) -> Any:
        xp = array_namespace(self.triangle)
        return xp.astype(self.triangle, xp.float32)
