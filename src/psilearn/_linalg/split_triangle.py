"""Triangular systems by split products: substitution in panels, with the inverses of the diagonal blocks."""

from __future__ import annotations

from typing import Any

from psilearn._linalg.panel_solutions import invert_diagonal_blocks
from psilearn._linalg.split_products import MAX_SCALE_EXPONENT, SplitMatrix, scale_of

PANEL = 2048  # rows of a triangle that are computed at a time
SPLIT_ROWS = 4096  # rows of a triangle that are split at a time


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
        inverses = invert_diagonal_blocks(L, PANEL)
        longest_row = torch.linalg.vector_norm(L, dim=1).max()
        largest = torch.linalg.vector_norm(inverses, torch.inf)
        self.length, bound = torch.stack([longest_row, largest]).tolist()  # waits for the device once
        split, size = SplitMatrix.of(inverses.flatten(0, 1), bound), inverses.shape[1]
        self.inverses = [
            split[i * size :][: rows.stop - rows.start, : rows.stop - rows.start] for i, rows in enumerate(self.panels)
        ]
        self.triangle = SplitMatrix.empty(tuple(L.shape), scale_of(self.length), L.device)  # with zeros above
        for start in range(0, len(L), SPLIT_ROWS):
            rows, columns = slice(start, start + SPLIT_ROWS), slice(0, start + SPLIT_ROWS)
            self.triangle[rows, columns].fill(L[rows, columns])

    def solve(self, B: Any, longest: float) -> SplitMatrix:
        """Return L⁻¹ B for a float32 tensor, if no column of the solution is longer than ``longest``.

        Then no entry of B, or of what is left of it, exceeds ``longest`` times the longest row of L. If columns
        are much longer, entries overflow and the solution is not finite.
        """
        places = min(scale_of(longest), 2.0**MAX_SCALE_EXPONENT / self.triangle.scale)  # float32 has their product
        X = SplitMatrix.empty(tuple(B.shape), places, B.device)
        for rows, inverse in zip(self.panels, self.inverses, strict=True):
            rest = SplitMatrix.empty((rows.stop - rows.start, B.shape[1]), scale_of(longest * self.length), B.device)
            known, coefficients = X[: rows.start], self.triangle[rows, : rows.start]
            if not rows.start:
                rest.fill(B[rows])
            else:
                scale = self.triangle.scale * places
                rest.fill(coefficients.scaled_product(known, scale * B[rows], -1), 1 / scale)
            X[rows].fill(inverse.scaled_product(rest), 1 / (inverse.scale * rest.scale))
        return X
