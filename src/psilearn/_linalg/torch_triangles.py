"""Cholesky factors of torch tensors, also with pivots, and solutions with large triangles in panels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from psilearn._linalg.split_products import MAX_SCALE_EXPONENT, SplitMatrix, scale_of

PROPOSED = 256  # rows that are considered together as pivots
ACCEPTED = 0.1  # smallest accepted pivot, relative to the largest one
PANEL = 1024  # rows of a float64 solution that are computed at a time
MIN_ROWS = 4096  # of a triangle from which on panels are faster
SMALLEST_TRIANGLE = 64  # rows of a triangle that is inverted by substitution
SPLIT_PANEL = 2048  # rows of a split solution that are computed at a time
SPLIT_ROWS = 4096  # rows of a triangle that are split at a time


def cholesky(K: Any, shift: float, overwrite: bool = False) -> Any:
    """Return L with LLᵀ = K + shift·I, or None if K + shift·I is not positive definite.

    With ``overwrite``, the shift is added to K itself.
    """
    import torch

    if shift:
        K = K if overwrite else K.clone()
        K.diagonal().add_(shift)
    L, failed = torch.linalg.cholesky_ex(K)
    return None if int(failed) else L


def cholesky_solve(L: Any, B: Any) -> Any:
    """Return (LLᵀ)⁻¹ B for a block or a single vector."""
    import torch

    return torch.cholesky_solve(B, L) if B.ndim == 2 else torch.cholesky_solve(B[:, None], L)[:, 0]


def solve_triangle(L: Any, B: Any, transposed: bool = False) -> Any:
    """Return L⁻¹ B, or L⁻ᵀ B, for a lower triangle L."""
    import torch

    return torch.linalg.solve_triangular(L.T if transposed else L, B, upper=transposed)


def pivoted_cholesky(K: Any, tolerance: float) -> tuple[Any, Any, float]:
    """Factor K = FFᵀ with pivots above the tolerance; return F (n, r), the pivots and an error.

    The error is the size of the part of K − FFᵀ that no Gram matrix has. In each round, the 256 rows with the largest
    remaining diagonal entries are factored with pivots on the host. Rows whose pivot is at least a tenth of the largest
    one are accepted, and subtracted from K by one matrix product. Data is therefore exchanged with the host once per
    round and not once per pivot.

    n²r flops, as matrix products. K is the workspace and is restored at the end up to rounding. Memory in addition to
    K: n² numbers for F, and up to half as many again if the rank is below n/2.
    """
    import torch

    n = len(K)
    diagonal = K.diagonal().clone()
    probe = torch.from_numpy(np.random.default_rng(0).standard_normal(n)).to(K)
    image = K @ probe
    free = torch.ones(n, dtype=torch.bool, device=K.device)  # no pivots yet
    factor, pivots, found = torch.empty_like(K), torch.empty(n, dtype=torch.int64, device=K.device), 0
    while found < n:
        rest = torch.where(free, K.diagonal(), -torch.inf)
        sizes, proposed = rest.topk(min(PROPOSED, n - found))
        largest = float(sizes[0])
        if not largest > tolerance:
            break
        small = K[proposed][:, proposed].cpu().numpy()
        packed, order, rank, _ = dpstrf(small, tol=max(tolerance, ACCEPTED * largest), lower=1)
        if not rank:
            break
        L = torch.from_numpy(np.tril(packed[:rank, :rank])).to(K)
        chosen = proposed[torch.from_numpy(order[:rank].astype(np.int64) - 1).to(K.device)]  # LAPACK counts from one
        F = factor[:, found : found + rank]
        torch.mul(solve_triangle(L, K[chosen]).T, free[:, None], out=F)  # rows that are pivots already stay zero
        F[chosen] = L
        free[chosen] = False
        K.addmm_(F, F.T, alpha=-1)
        pivots[found : found + rank] = chosen
        found += rank
    factor = factor[:, :found].clone() if 2 * found < n else factor[:, :found]
    K.addmm_(factor, factor.T)
    # If K is a Gram matrix, so is K − FFᵀ: no diagonal entry is negative, and a row with diagonal entry 0 is zero.
    remainder = diagonal - torch.linalg.vector_norm(factor, dim=1) ** 2
    beside = (image - factor @ (factor.T @ probe)).abs() / np.sqrt(n)
    order = pivots[:found].cpu().numpy().astype(np.intp)
    return factor, order, max(-float(remainder.min()), float(beside.max()))


# Solutions with large triangles on a GPU in panels, which are multiplied with the inverses of the diagonal blocks.
#
# A substitution is a chain of short steps that leaves most of a GPU idle. With the inverses nearly all of it are
# matrix products. Errors are up to κ(Lᵢᵢ)·ε: for triangles that are far from singular, as those of ridge systems and,
# by the tolerance of their pivots, those of landmarks are.
def uses_panels(L: Any) -> bool:
    """Return whether solutions with a tensor are computed in panels."""
    return L.device.type == "cuda" and len(L) >= MIN_ROWS


def solve_twice(L: Any, B: Any) -> tuple[Any, Any]:
    """Return L⁻¹B and L⁻ᵀL⁻¹B for a lower triangle L (n, n) and B (n, b); 2n² flops per column."""
    panels = _panels(L)
    half = B.clone()
    for rows, inverse in panels:
        half[rows] = inverse @ half[rows]
        half[rows.stop :].addmm_(L[rows.stop :, rows], half[rows], alpha=-1)
    return half, _substitute_backward(L, half, panels)


def solve_transposed(L: Any, B: Any) -> Any:
    """Return L⁻ᵀB for a lower triangle L (n, n) and B (n, b); n² flops per column."""
    return _substitute_backward(L, B, _panels(L))


def _substitute_backward(L: Any, B: Any, panels: list[tuple[slice, Any]]) -> Any:
    """Return L⁻ᵀB, from the last panel to the first one."""
    X = B.clone()
    for rows, inverse in reversed(panels):
        X[rows] = inverse.T @ X[rows]
        X[: rows.start].addmm_(L[rows, : rows.start].T, X[rows], alpha=-1)
    return X


def _panels(L: Any) -> list[tuple[slice, Any]]:
    """Return the rows of each panel and the inverse of its diagonal block."""
    panels = [slice(start, min(start + PANEL, len(L))) for start in range(0, len(L), PANEL)]
    inverses = invert_diagonal_blocks(L, PANEL)
    return [(rows, inverse[: len(L[rows]), : len(L[rows])]) for rows, inverse in zip(panels, inverses, strict=True)]


def invert_diagonal_blocks(L: Any, size: int) -> Any:
    """Return the inverses of the diagonal blocks of a lower triangle, (b, s, s), padded with zeros.

    All at once: a GPU is slow with one at a time, and each step takes time of the host.
    """
    import torch

    size = min(size, len(L))
    padded = SMALLEST_TRIANGLE  # times a power of two
    while padded < size:
        padded *= 2
    n_whole, rest = divmod(len(L), size)
    batch = torch.eye(padded, dtype=L.dtype, device=L.device).repeat(n_whole + bool(rest), 1, 1)
    end = n_whole * size
    if n_whole:
        blocks = L[:end, :end].unflatten(1, (n_whole, size)).unflatten(0, (n_whole, size))
        batch[:n_whole, :size, :size] = blocks.diagonal(dim1=0, dim2=2).permute(2, 0, 1)
    if rest:
        batch[-1, :rest, :rest] = L[end:, end:]
    inverses = _invert_batch(batch)
    inverses[:, size:] = 0
    if rest:
        inverses[-1, rest:] = 0
    return inverses


def _invert_batch(L: Any) -> Any:
    """Return the inverses of lower triangles (b, s, s): of both diagonal blocks A, C of each in one batch, and −CBA."""
    import torch

    b, size, _ = L.shape
    if size <= SMALLEST_TRIANGLE:
        return torch.linalg.solve_triangular(
            L, torch.eye(size, dtype=L.dtype, device=L.device).expand_as(L), upper=False
        )
    half = size // 2
    A, C = _invert_batch(torch.cat([L[:, :half, :half], L[:, half:, half:]])).split(b)
    inverse = torch.zeros_like(L)
    inverse[:, :half, :half], inverse[:, half:, half:] = A, C
    torch.bmm(-C, L[:, half:, :half] @ A, out=inverse[:, half:, :half])
    return inverse


class SplitTriangle:
    """L⁻¹ B for a lower triangle L (r, r) and B (r, b) by substitution in panels of rows.

    r² multiplications per column. With the inverses of the diagonal blocks all of it are split products,

        Xᵢ = Lᵢᵢ⁻¹ (Bᵢ − Σ_{j<i} Lᵢⱼ Xⱼ),

    and X is split as soon as it is known, because the next panels and the products that follow need it so. The
    triangle takes 4 bytes per entry.
    """

    def __init__(self, L: Any) -> None:
        import torch

        self.panels = [slice(start, min(start + SPLIT_PANEL, len(L))) for start in range(0, len(L), SPLIT_PANEL)]
        inverses = invert_diagonal_blocks(L, SPLIT_PANEL)
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
