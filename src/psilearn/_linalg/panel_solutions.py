"""Solutions with large triangles on a GPU in panels, which are multiplied with the inverses of the diagonal blocks.

A substitution is a chain of short steps that leaves most of a GPU idle. With the inverses nearly all of it are matrix
products. Errors are up to κ(Lᵢᵢ)·ε: for triangles that are far from singular, as those of ridge systems and, by the
tolerance of their pivots, those of landmarks are.
"""

from __future__ import annotations

from typing import Any

PANEL = 1024  # rows that are computed at a time
MIN_ROWS = 4096  # of a triangle from which on panels are faster
SMALLEST_TRIANGLE = 64  # rows of a triangle that is inverted by substitution


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
