"""The factorisations of torch that arrays have from LAPACK, and one that torch lacks: Cholesky with pivots."""

from __future__ import annotations

from typing import Any

import numpy as np

PANEL = 64  # pivots between two updates of the whole matrix


def cholesky(K: Any, shift: float) -> Any:
    """Return L with LLᵀ = K + shift·I, or None where there is none; K is overwritten by the shift."""
    import torch

    K.diagonal().add_(shift)
    L, failed = torch.linalg.cholesky_ex(K)
    return None if int(failed) else L


def cholesky_solve(L: Any, B: Any) -> Any:
    """Return (LLᵀ)⁻¹ B."""
    import torch

    return torch.cholesky_solve(B, L)


def solve_triangle(L: Any, B: Any, transposed: bool = False) -> Any:
    """Return L⁻¹ B, or L⁻ᵀ B, for a lower triangle L."""
    import torch

    return torch.linalg.solve_triangular(L.T if transposed else L, B, upper=transposed)


def pivoted_cholesky(K: Any, tolerance: float) -> tuple[Any, Any, float]:
    """Factor K = FFᵀ with pivots above the tolerance; return F (n, r), the pivots, and how far the rest is from Gram's.

    Panels of 64 pivots, each found on the device without a word to the host, then one product that takes the panel out
    of K: n²r flops as products of matrices. K is the workspace and comes back to rounding as it was; memory: F beside
    it.
    """
    import torch

    n = len(K)
    diagonal = K.diagonal().clone()
    probe = torch.from_numpy(np.random.default_rng(0).standard_normal(n)).to(K)
    image = K @ probe
    rest, alive = diagonal.clone(), torch.ones_like(diagonal)  # what is left of k(a, a); whether a is no pivot yet
    panels, pivots = [], []
    found = 0
    while found < n:
        width = min(PANEL, n - found)
        F = torch.zeros((n, width), dtype=K.dtype, device=K.device)
        chosen = torch.zeros(width, dtype=torch.int64, device=K.device)
        sizes = torch.zeros(width, dtype=K.dtype, device=K.device)
        for j in range(width):
            pivot = torch.argmax(rest).reshape(1)
            size = rest[pivot]
            column = K[pivot][0] - F[:, :j] @ F[pivot, :j][0]
            # what is no pivot any more stays zero above the diagonal; after the last pivot all is zero
            column *= alive * torch.where(size > tolerance, size.clamp(min=tolerance).rsqrt(), torch.zeros_like(size))
            F[:, j] = column
            chosen[j], sizes[j] = pivot[0], size[0]
            rest -= column**2
            rest[pivot] = -torch.inf
            alive[pivot] = 0
        small = (sizes <= tolerance).nonzero()
        taken = int(small[0]) if len(small) else width
        F = F[:, :taken]
        panels.append(F)
        pivots.append(chosen[:taken])
        found += taken
        K.addmm_(F, F.T, alpha=-1)
        if taken < width:
            break
    factor = torch.cat(panels, 1) if panels else K[:, :0]
    K.addmm_(factor, factor.T)
    # K − FFᵀ is itself a Gram matrix when K is: no negative diagonal, nothing beside a zero diagonal.
    remainder = diagonal - (factor**2).sum(1)
    beside = (image - factor @ (factor.T @ probe)).abs() / np.sqrt(n)
    order = torch.cat(pivots).cpu().numpy().astype(np.intp) if pivots else np.empty(0, dtype=np.intp)
    return factor, order, max(-float(remainder.min()), float(beside.max()))
