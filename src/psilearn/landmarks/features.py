"""Coordinates on the span of landmarks: a finite feature map of any kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from psilearn._backend import array_namespace, asarray, is_tensor, to_host, working_dtype, zeros
from psilearn._linalg import SINGLE, Array, NotPositiveSemidefiniteError, solve_lower, spanning_cholesky
from psilearn._utils.progress import stage
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels.blocks import block, gram, resident
from psilearn.kernels.kernel import Kernel


@dataclass(frozen=True)
class LandmarkFeatures:
    """φ(a) = L⁻¹ k(S, a) ∈ Rʳ with LLᵀ = k(S, S): the coordinates of ψ(a), projected on the span of the landmarks S.

    ⟨φ(a), φ(b)⟩ = k(a, S) k(S, S)⁻¹ k(S, b), Nyström's approximation of k(a, b); exact where ψ(a) lies in the span.
    """

    kernel: Kernel
    landmarks: Samples  # r linearly independent objects
    triangle: Array  # (r, r)  L

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Samples, name: str) -> LandmarkFeatures:
        """Factor k(S, S) in float64, q³/3 flops and q² numbers; landmarks that others span are dropped.

        The tolerance of that is q·ε·max k(s, s), or 2√q·ε₃₂·max k(s, s) where features will be computed in float32: it
        bounds how much the solution with L amplifies what the precision of a block loses.
        """
        side = name.removesuffix("_kernel")
        with stage(f"kernel of {n_samples(landmarks):,} {side} landmarks"):
            K = gram(kernel, landmarks, name, f"Lower {side}_landmarks.", working_dtype())
        scale = float(array_namespace(K).linalg.diagonal(K).max())
        single = working_dtype() == np.float32
        rounding = 2 * np.sqrt(len(K)) * SINGLE if single else len(K) * float(np.finfo(np.float64).eps)
        try:
            with stage(f"Cholesky factor of {len(K):,} {side} landmarks"):
                kept, triangle = spanning_cholesky(K, rounding * scale)
        except NotPositiveSemidefiniteError as error:
            raise NotPositiveSemidefiniteError(
                f"{name} = {kernel!r} is not positive semi-definite on the landmarks: {error}."
            ) from error
        return cls(kernel, take(landmarks, kept) if len(kept) < len(K) else landmarks, triangle)

    @property
    def rank(self) -> int:
        """r, the dimension of the span."""
        return len(self.triangle)

    def columns(self, A: Samples, name: str) -> Any:
        """Return φ(a) as columns, (r, len(A)) in the working precision; len(A)·r² flops. Arrays in Fortran order."""
        if not self.rank:
            return zeros((n_samples(A), 0), working_dtype()).T
        K = block(self.kernel, A, self.landmarks, name)
        if not is_tensor(K):
            K = np.ascontiguousarray(K)
            if not self.kernel._makes_blocks:
                K = K.copy()  # it is overwritten, and may be the kernel's own
        return solve_lower(self._working_triangle, K.T)

    def placed(self) -> LandmarkFeatures:
        """Return the same features with the triangle and dense landmarks where the work is done."""
        return replace(self, landmarks=resident(self.kernel, self.landmarks), triangle=asarray(self.triangle))

    def parked(self) -> LandmarkFeatures:
        """Return the same features with the triangle in NumPy: nothing of them on a device."""
        return replace(self, triangle=np.asfortranarray(to_host(self.triangle)))

    @property
    def _working_triangle(self) -> Any:
        return self._single_triangle if working_dtype() == np.float32 else self.triangle

    @cached_property
    def _single_triangle(self) -> Any:
        xp = array_namespace(self.triangle)
        return xp.astype(self.triangle, xp.float32)
