"""Matrix products on the half-precision units of a GPU: exact for small integers, nearly as accurate as float32 else.

A float32 matrix A is scaled by a power of two, so that its largest entry is below 2¹⁴, and divided into two matrices of
half-precision numbers, A = H + L, up to 2⁻²²|a| + 2⁻³⁸ max|a| per entry. With B = H' + L' as well,

    AB ≈ HL' + LH' + HH',

three products whose terms are exact, so that the factors contribute an error of at most

    2⁻²⁰ Σ|a||b| + k·2⁻³⁷ max|a| max|b|      (k terms)

to an entry. The units add the terms in float32. They are assumed to truncate, each time by up to 2⁻²³ of the sum.
The large part HH' is therefore added in chunks of 1024 terms, which are rounded: the sums contribute at most
(min(k, 1024)·2⁻²³ + k/1024·2⁻²⁴) Σ|a||b|. On an H200 the error was 5e-7 Σ|a||b| where signs are mixed and 5e-6 Σ|a||b|
where all terms are positive; a float32 product of 8192 terms has 7e-8 and 1e-6.

Ootomo and Yokota, *Recovering single precision accuracy from Tensor Cores…*, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import frexp
from typing import Any, Self

import numpy as np

from psilearn._backend import Compute

CHUNK = 1024  # terms that the matrix units add up without rounding
ALIGNMENT = 8  # half-precision numbers in 16 bytes, to which the matrix units want rows aligned
TOP_EXPONENT = 14  # of the largest scaled entry; half precision ends at 2¹⁶
MAX_SCALE_EXPONENT = 126
PANEL = 2048  # rows or columns of a triangle that are computed at a time
MIN_SIZE = 512  # rows and columns from which on splitting a matrix pays off
SPLIT_ERROR = 2.0**-20  # of two split factors, relative to Σ|a||b|
HALF_ERROR = 2.0**-11 + 2.0**-20  # of a split factor and one in half precision
SPLIT_UNDERFLOW = 2.0**-37  # of the factors, relative to max|a| max|b|, per term


def has_half_units(device: Any) -> bool:
    """Return whether a torch device multiplies half-precision matrices with sums and results in float32."""
    return device is not None and device.type == "cuda" and _multiplies_to_float32(device.index or 0)


@cache
def _multiplies_to_float32(index: int) -> bool:
    import torch

    if torch.cuda.get_device_capability(index) < (7, 0):
        return False
    probe = torch.ones((ALIGNMENT, ALIGNMENT), dtype=torch.float16, device=f"cuda:{index}")
    try:
        return torch.mm(probe, probe, out_dtype=torch.float32).dtype == torch.float32
    except torch.cuda.OutOfMemoryError:
        raise
    except (TypeError, RuntimeError):  # before torch 2.8
        return False


def multiply_halves(A: Any, B: Any, total: Any = None) -> Any:
    """Return A B for half-precision tensors (a, k) and (k, b) in float32; added to ``total``, in place, if given."""
    import torch

    if A.device.type != "cuda":  # the same numbers, without matrix units
        product = A.float() @ B.float()
        return product if total is None else total.add_(product)
    if total is None:
        return torch.mm(A, B, out_dtype=torch.float32)
    return torch.addmm(total, A, B, out_dtype=torch.float32, out=total)


@dataclass(frozen=True)
class SplitMatrix:
    """A matrix (a, b) as the sum of two half-precision matrices, divided by a scale."""

    high: Any  # (a, b)  float16
    low: Any  # (a, b)  float16
    scale: Any  # 0-dimensional, float64, a power of two

    @classmethod
    def of(cls, A: Any) -> SplitMatrix:
        """Split a float32 or float64 tensor; besides A, 4 bytes per entry and a copy of A are in memory at a time."""
        import torch

        if A.T.is_contiguous() and not A.is_contiguous():
            return cls.of(A.T).T
        if not A.numel():
            return cls(A.half(), A.half(), torch.ones((), dtype=torch.float64, device=A.device))
        _, exponent = torch.frexp(torch.linalg.vector_norm(A, torch.inf))
        places = (TOP_EXPONENT - exponent).clamp(max=MAX_SCALE_EXPONENT)
        scale = torch.ldexp(torch.ones((), dtype=A.dtype, device=A.device), places)
        high, low = (_empty_halves(A.shape, A.device) for _ in range(2))
        rest = A * scale
        high.copy_(rest)
        rest -= high
        low.copy_(rest)
        return cls(high, low, scale.double())  # products of scales may be out of the range of float32

    @property
    def shape(self) -> tuple[int, int]:
        """(a, b)."""
        return tuple(self.high.shape)

    @property
    def T(self) -> SplitMatrix:
        """The transposed matrix."""
        return SplitMatrix(self.high.T, self.low.T, self.scale)

    def __getitem__(self, part: Any) -> Self:
        return type(self)(self.high[part], self.low[part], self.scale)

    def times_rows(self, rows: HalfMatrix) -> Any:
        """Return the product with the rows of another matrix, (a, c), in float32: two products, each one long sum."""
        total = multiply_halves(self.low, rows.values.T)
        multiply_halves(self.high, rows.values.T, total)
        total /= self.scale * rows.scale
        return total

    def __matmul__(self, other: Any) -> Any:
        """Return the product with another matrix, split or a float32 tensor, in float32, (a, c)."""
        return self.multiply(other if isinstance(other, SplitMatrix) else SplitMatrix.of(other))

    def multiply(self, other: SplitMatrix, out: Any = None) -> Any:
        """Return the product with another split matrix in float32, (a, c), written into ``out`` unless that is None."""
        import torch

        total = multiply_halves(self.high, other.low)
        multiply_halves(self.low, other.high, total)
        for start in range(0, self.shape[1], CHUNK):
            terms = slice(start, start + CHUNK)
            multiply_halves(self.high[:, terms], other.high[terms], total)
        return torch.div(total, self.scale * other.scale, out=total if out is None else out)


def _empty_halves(shape: tuple[int, int], device: Any) -> Any:
    """Return an uninitialized half-precision tensor with aligned rows."""
    import torch

    padded = -(-shape[1] // ALIGNMENT) * ALIGNMENT
    return torch.empty((shape[0], padded), dtype=torch.float16, device=device)[:, : shape[1]]


@dataclass(frozen=True)
class HalfMatrix:
    """A matrix (a, b) rounded to half precision, an error of 2⁻¹¹ of each entry, times a scale."""

    values: Any  # (a, b)  float16
    scale: float  # a power of two

    @classmethod
    def empty(cls, shape: tuple[int, int], largest: float, device: Any) -> HalfMatrix:
        """Return a matrix whose entries are not set yet, for entries of at most the size ``largest`` > 0."""
        return cls(_empty_halves(shape, device), 2.0 ** (TOP_EXPONENT - frexp(largest)[1]))

    def fill(self, columns: slice | int, A: Any, factor: float) -> None:
        """Set some columns to a tensor times a factor."""
        import torch

        torch.mul(A, factor * self.scale, out=self.values[:, columns])

    def __getitem__(self, rows: slice) -> HalfMatrix:
        return HalfMatrix(self.values[rows], self.scale)


class SplitInverse:
    """L⁻¹ B for a lower triangle L (r, r), by products with the inverse of L, r²/2 multiplications per column of B.

    Relative to |L⁻¹||B| the error is that of a product. A substitution has the same error up to a small factor: both
    are bounded by the condition number of L.
    """

    def __init__(self, L: Any) -> None:
        self.inverse = SplitMatrix.of(invert_triangle(L))

    def solve(self, B: Any) -> Any:
        """Return L⁻¹ B in float32, (r, b), for a float32 tensor."""
        import torch

        right = SplitMatrix.of(B)
        solution = torch.empty(B.shape, dtype=torch.float32, device=B.device)
        for start in range(0, len(B), PANEL):
            rows, before = slice(start, start + PANEL), slice(0, start + PANEL)
            self.inverse[rows, before].multiply(right[before], out=solution[rows])
        return solution


def invert_triangle(L: Any) -> Any:
    """Return the inverse of a lower triangle in its own precision: r³/3 flops, as matrix products."""
    import torch

    if len(L) <= PANEL:
        return torch.linalg.solve_triangular(L, torch.eye(len(L), dtype=L.dtype, device=L.device), upper=False)
    middle = len(L) // 2 // ALIGNMENT * ALIGNMENT
    inverse = torch.zeros_like(L)
    upper = inverse[:middle, :middle] = invert_triangle(L[:middle, :middle])
    lower = inverse[middle:, middle:] = invert_triangle(L[middle:, middle:])
    corner = torch.empty_like(L[middle:, :middle])
    for start in range(0, middle, PANEL):  # both factors are triangles: their zeros are left out
        columns = slice(start, start + PANEL)
        corner[:, columns] = L[middle:, start:middle] @ upper[start:, columns]
    for start in range(0, len(lower), PANEL):
        rows = slice(start, start + PANEL)
        inverse[middle:, :middle][rows] = -(lower[rows, : rows.stop] @ corner[: rows.stop])
    return inverse


def is_split_faster(shape: tuple[int, ...], compute: Compute) -> bool:
    """Return whether products with a float32 matrix of this shape are faster in split precision."""
    return compute.dtype == np.float32 and min(shape) >= MIN_SIZE and has_half_units(compute.device)


def block_copies(compute: Compute) -> int:
    """Return how many blocks of the size of the features are in memory while one block is processed."""
    return 6 if compute.dtype == np.float32 and has_half_units(compute.device) else 3


def row_inner_products(A: Any, B: Any, compute: Compute) -> Any:
    """Return A Bᵀ for float32 tensors (a, d) and (b, d), in split precision where that is faster."""
    from torch.nn.functional import pad

    if not all(is_split_faster(rows.shape, compute) for rows in (A, B)):
        return A @ B.T
    missing = -A.shape[1] % ALIGNMENT
    left, right = (SplitMatrix.of(pad(rows, (0, missing)) if missing else rows) for rows in (A, B))
    return left @ right.T


def split_if_faster(A: Any, compute: Compute) -> Any:
    """Return an array as a :class:`SplitMatrix` where its products are faster, else the array itself."""
    return SplitMatrix.of(A) if is_split_faster(A.shape, compute) else A


def add_lower_gram(total: Any, F: Any) -> None:
    """Add F Fᵀ to the lower triangle of a float64 tensor (r, r), in panels: about half of the flops of a product.

    F (r, b) is a tensor or a :class:`SplitMatrix`. What is above the diagonal blocks of the panels stays as it is.
    """
    for start in range(0, len(total), PANEL):
        below, columns = slice(start, None), slice(start, start + PANEL)
        part = total[below, columns]
        if getattr(F, "dtype", None) == total.dtype:
            part.addmm_(F[below], F[columns].T)
        else:
            part += F[below] @ F[columns].T
