"""Cholesky factorizations of torch tensors, including one that torch does not have: with pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

PROPOSED = 256  # rows that are considered together as pivots
ACCEPTED = 0.1  # smallest accepted pivot, relative to the largest one


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
