"""The factorisations of torch that arrays have from LAPACK, and one that torch lacks: Cholesky with pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

PROPOSED = 256  # rows that are looked at together for pivots
ACCEPTED = 0.1  # part of the largest pivot that an accepted one has at least


def cholesky(K: Any, shift: float, overwrite: bool = False) -> Any:
    """Return L with LLᵀ = K + shift·I, or None where there is none; K may get the shift."""
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
    """Factor K = FFᵀ with pivots above the tolerance; return F (n, r), the pivots, and how far the rest is from Gram's.

    The rows with the largest diagonals are proposed together and factored with pivots on the host, down to a tenth of
    the largest; those accepted are taken out of K by one product. So every pivot is at least a tenth of the largest
    that there was, and a device hears of the host once in many pivots. n²r flops as products of matrices. K is the
    workspace and comes back to rounding as it was; memory: n² numbers for F beside it, half of that more where the rank
    is below n/2.
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
        torch.mul(solve_triangle(L, K[chosen]).T, free[:, None], out=F)  # what is a pivot already stays zero
        F[chosen] = L
        free[chosen] = False
        K.addmm_(F, F.T, alpha=-1)
        pivots[found : found + rank] = chosen
        found += rank
    factor = factor[:, :found].clone() if 2 * found < n else factor[:, :found]
    K.addmm_(factor, factor.T)
    # K − FFᵀ is itself a Gram matrix when K is: no negative diagonal, nothing beside a zero diagonal.
    remainder = diagonal - torch.linalg.vector_norm(factor, dim=1) ** 2
    beside = (image - factor @ (factor.T @ probe)).abs() / np.sqrt(n)
    order = pivots[:found].cpu().numpy().astype(np.intp)
    return factor, order, max(-float(remainder.min()), float(beside.max()))
