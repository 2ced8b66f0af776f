"""Inner products of rows plus offsets of rows and columns, as squared distances and Gaussians need them."""

from __future__ import annotations

from math import frexp
from typing import Any, NamedTuple

from psilearn._backend import Compute
from psilearn._linalg.split_products import VECTOR, SplitMatrix, fused_products, is_split_faster


class Offsets(NamedTuple):
    """Numbers that are added to the rows and to the columns of a block of inner products, and what follows."""

    left: Any  # (a,)
    right: Any  # (b,)
    largest: float  # a bound on their size
    gamma: float | None = None  # if given, sums s are replaced by Gaussians exp(min(2γs, 0))

    def add_to(self, products: Any) -> Any:
        """Return the float32 products (a, b) with the offsets, or their Gaussians, in place."""
        products.add_(self.left.to(products.dtype)[:, None]).add_(self.right.to(products.dtype))
        return self.finish(products)

    def finish(self, sums: Any) -> Any:
        """Return sums of products and offsets, or their Gaussians, in place."""
        return sums if self.gamma is None else sums.mul_(2 * self.gamma).clamp_(max=0).exp_()


def row_inner_products(A: Any, B: Any, offsets: Offsets, compute: Compute) -> Any:
    """Return A Bᵀ + offsets for float32 tensors (a, d) and (b, d), or Gaussians, in split precision if that is faster.

    The offsets u, v are then two more terms of the products, (u/t)·t + t·(v/t), which costs less than two passes over
    the block. With t² near the largest offset none of these entries is large.
    """
    if not all(is_split_faster(rows.shape, compute) for rows in (A, B)):
        return offsets.add_to(A @ B.T)
    rows, columns = _split_with_offsets(A, B, offsets)
    fused = fused_products(columns, rows.T)
    # columns one after the other, as triangular systems read them
    if offsets.gamma is not None and fused is not None:
        return fused.gaussians(columns, rows.T, 2 * offsets.gamma).T
    return offsets.finish(columns @ rows.T).T


def symmetric_gaussians(A: Any, offsets: Offsets, compute: Compute) -> Any:
    """Return the Gaussians of the sums A Aᵀ + offsets for float32 rows (a, d), with the accuracy of float32.

    By the fused kernel, which adds short chunks; None if it is not used.
    """
    if offsets.gamma is None or not is_split_faster(A.shape, compute):
        return None
    rows, columns = _split_with_offsets(A, A, offsets)
    fused = fused_products(columns, rows.T)
    return None if fused is None else fused.symmetric_gaussians(columns, rows.T, 2 * offsets.gamma)


def _split_with_offsets(A: Any, B: Any, offsets: Offsets) -> list[SplitMatrix]:
    """Return the rows of A and of B with two more columns each, (u/t, t) and (t, v/t), for the offsets u, v."""
    import torch

    t = 2.0 ** (frexp(offsets.largest)[1] // 2)
    left, right = (numbers.to(A.dtype)[:, None] for numbers in (offsets.left, offsets.right))
    padding = (-A.shape[1] - 2) % VECTOR
    extended = [
        torch.cat([A, left / t, torch.full_like(left, t), A.new_zeros((len(A), padding))], 1),
        torch.cat([B, torch.full_like(right, t), right / t, B.new_zeros((len(B), padding))], 1),
    ]
    return [SplitMatrix.of(part) for part in extended]
