"""Triangular systems by split products: substitution in panels, with the inverses of the diagonal blocks."""

from __future__ import annotations

from typing import Any

from psilearn._linalg.panel_solutions import invert_triangles
from psilearn._linalg.split_products import MAX_SCALE_EXPONENT, SplitMatrix, fused_products, scale_of

PANEL = 1024  # rows of a triangle that are computed at a time


class SplitTriangle:
    """L⁻¹ B for a lower triangle L (r, r) and B (r, b) by substitution in panels of rows.

    r² multiplications per column. With the inverses of the diagonal blocks all of it are split products,

        Xᵢ = Lᵢᵢ⁻¹ (Bᵢ − Σ_{j<i} Lᵢⱼ Xⱼ),

    and X is split as soon as it is known, because the next panels and the products that follow need it so. The
    triangle takes 4 bytes per entry.
    """

    def __init__(self, L: Any) -> None:
        import torch

        self.panels = [slice(start, min(start + PANEL, len(L))) for start in range(0, len(L), PANEL)]
        inverses = invert_triangles([L[rows, rows] for rows in self.panels])
        longest_row = torch.linalg.vector_norm(L, dim=1).max()
        sizes = [longest_row, *(torch.linalg.vector_norm(inverse, torch.inf) for inverse in inverses)]
        self.length, *largest = torch.stack(sizes).tolist()  # waits for the device once
        self.inverses = [SplitMatrix.of(*pair) for pair in zip(inverses, largest, strict=True)]
        self.triangle = SplitMatrix.empty(tuple(L.shape), scale_of(self.length), L.device)  # below the diagonal blocks
        for rows in self.panels[1:]:
            self.triangle[rows, : rows.start].fill(L[rows, : rows.start].to(torch.float32, copy=True), 1.0)

    def solve(self, B: Any, longest: float) -> SplitMatrix:
        """Return L⁻¹ B for a float32 tensor, if no column of the solution is longer than ``longest``.

        Then no entry of B, or of what is left of it, exceeds ``longest`` times the longest row of L. If columns
        are much longer, entries overflow and the solution is not finite.
        """
        places = min(scale_of(longest), 2.0**MAX_SCALE_EXPONENT / self.triangle.scale)  # float32 has their product
        X = SplitMatrix.empty(tuple(B.shape), places, B.device)
        fused = fused_products(self.triangle, X)
        for rows, inverse in zip(self.panels, self.inverses, strict=True):
            rest = SplitMatrix.empty((rows.stop - rows.start, B.shape[1]), scale_of(longest * self.length), B.device)
            known, coefficients = X[: rows.start], self.triangle[rows, : rows.start]
            if not rows.start:
                rest.fill(B[rows].clone(), 1.0)
            elif fused is not None:
                fused.split_rest(B[rows].contiguous(), coefficients, known, rest)
            else:
                scale = self.triangle.scale * places
                rest.fill(coefficients.scaled_product(known, scale * B[rows], -1), 1 / scale)
            if fused is not None:
                fused.split_product(inverse, rest, X[rows])
            else:
                X[rows].fill(inverse.scaled_product(rest), 1 / (inverse.scale * rest.scale))
        return X
