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
from typing import Any, NamedTuple, Self

import numpy as np

from psilearn._backend import Compute
from psilearn._linalg.array_ops import row_products

CHUNK = 1024  # terms that the matrix units add up without rounding
VECTOR = 8  # half-precision numbers in 16 bytes, which the matrix units want to load at a time
ALIGNMENT = 64  # half-precision numbers in a line of the cache, to which rows are aligned
TOP_EXPONENT = 14  # of the largest scaled entry; half precision ends at 2¹⁶
MAX_SCALE_EXPONENT = 126
PANEL = 2048  # rows or columns of a Gram matrix that are computed at a time
FLOAT64_PANEL = 512  # the same in float64, whose products are fast for smaller matrices: less above the diagonal
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


def multiply_halves(A: Any, B: Any, total: Any = None, sign: int = 1) -> Any:
    """Return ±A B for half-precision tensors (a, k) and (k, b) in float32; added to ``total``, in place, if given."""
    import torch

    if A.device.type != "cuda":  # the same numbers, without matrix units
        product = sign * (A.float() @ B.float())
        return product if total is None else total.add_(product)
    if total is None:
        product = torch.mm(A, B, out_dtype=torch.float32)
        return product if sign == 1 else product.neg_()
    return torch.addmm(total, A, B, out_dtype=torch.float32, alpha=sign, out=total)


@dataclass(frozen=True)
class SplitMatrix:
    """A matrix (a, b) as the sum of two half-precision matrices, divided by a scale."""

    high: Any  # (a, b)  float16
    low: Any  # (a, b)  float16
    scale: Any  # a power of two: a number, or a 0-dimensional tensor in float64

    @classmethod
    def of(cls, A: Any, largest: float | None = None) -> SplitMatrix:
        """Split a float32 or float64 tensor; besides A, 4 bytes per entry and often a copy of A are in memory.

        ``largest`` is a bound on the size of the entries. Without it the device finds the largest entry.
        """
        import torch

        if A.T.is_contiguous() and not A.is_contiguous():
            return cls.of(A.T, largest).T
        if not A.numel():
            return cls(A.half(), A.half(), torch.ones((), dtype=torch.float64, device=A.device))
        split = cls.empty(tuple(A.shape), _measured_scale(A) if largest is None else scale_of(largest), A.device)
        split.fill(A)
        return split

    @classmethod
    def empty(cls, shape: tuple[int, int], scale: Any, device: Any) -> SplitMatrix:
        """Return a matrix whose entries are not set yet."""
        high, low = (_empty_halves(shape, device) for _ in range(2))
        return cls(high, low, scale)

    def fill(self, A: Any, factor: float = 1.0) -> None:
        """Set the entries to a float32 or float64 tensor times ``factor``, a power of two."""
        rest = A * (factor * self.scale)
        self.high.copy_(rest)
        rest -= self.high
        self.low.copy_(rest)

    def is_finite(self) -> bool:
        """Return whether no entry was too large for the scale; waits for the device."""
        import torch

        return bool(torch.linalg.vector_norm(self.high, torch.inf).isfinite())

    def to_tensor(self) -> Any:
        """Return the matrix as a float32 tensor."""
        return (self.high.float() + self.low) / self.scale

    def __len__(self) -> int:
        return len(self.high)

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

    def multiply(self, other: SplitMatrix) -> Any:
        """Return the product with another split matrix in float32, (a, c)."""
        total = self.scaled_product(other)
        total /= self.scale * other.scale
        return total

    def scaled_product(self, other: SplitMatrix, total: Any = None, sign: int = 1) -> Any:
        """Return ± the product with another split matrix times both scales, (a, c); added to ``total`` if given."""
        total = multiply_halves(self.high, other.low, total, sign)
        multiply_halves(self.low, other.high, total, sign)
        for start in range(0, self.shape[1], CHUNK):
            terms = slice(start, start + CHUNK)
            multiply_halves(self.high[:, terms], other.high[terms], total, sign)
        return total


def _measured_scale(A: Any) -> Any:
    """Return the scale of a tensor as a tensor: without waiting for the device."""
    import torch

    _, exponent = torch.frexp(torch.linalg.vector_norm(A, torch.inf))
    places = (TOP_EXPONENT - exponent).clamp(max=MAX_SCALE_EXPONENT)
    return torch.ldexp(torch.ones((), dtype=A.dtype, device=A.device), places).double()  # products are in range


def scale_of(largest: float) -> float:
    """Return the power of two by which entries of at most this size are multiplied."""
    return 2.0 ** min(TOP_EXPONENT - frexp(largest)[1], MAX_SCALE_EXPONENT)


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


def is_split_faster(shape: tuple[int, ...], compute: Compute) -> bool:
    """Return whether products with a float32 matrix of this shape are faster in split precision."""
    return compute.dtype == np.float32 and min(shape) >= MIN_SIZE and has_half_units(compute.device)


def block_copies(compute: Compute) -> int:
    """Return how many blocks of the size of the features are in memory while one block is processed."""
    return 4 if compute.dtype == np.float32 and has_half_units(compute.device) else 3


def matmul(A: Any, B: Any) -> Any:
    """Return the product of two float32 matrices, each of them an array, a tensor or a :class:`SplitMatrix`."""
    if isinstance(A, SplitMatrix):
        return A @ B
    return A @ (B.to_tensor() if isinstance(B, SplitMatrix) else B)


def squared_column_norms(A: Any) -> Any:
    """Return Σᵢ aᵢⱼ² of each column in float64, for a matrix as in :func:`matmul`."""
    if not isinstance(A, SplitMatrix):
        return row_products(A.T, A.T)
    import torch

    panels = [A[start : start + PANEL].to_tensor() for start in range(0, len(A), PANEL)]
    norms = torch.stack([torch.linalg.vector_norm(panel, dim=0) for panel in panels])
    return (norms.double() ** 2).sum(0)


def add_lower_gram(total: Any, F: Any, factor: float = 1.0) -> None:
    """Add F Fᵀ·factor to the lower triangle of a float64 tensor (r, r), in panels: half of the flops of a product.

    F (r, b) is a tensor or a :class:`SplitMatrix`. What is above the diagonal blocks of the panels stays as it is.
    """
    in_float64 = getattr(F, "dtype", None) == total.dtype
    step = FLOAT64_PANEL if in_float64 else PANEL
    for start in range(0, len(total), step):
        below, columns = slice(start, None), slice(start, start + step)
        part = total[below, columns]
        if in_float64:
            part.addmm_(F[below], F[columns].T, alpha=factor)
        else:
            part.add_(F[below] @ F[columns].T, alpha=factor)


class Offsets(NamedTuple):
    """Numbers that are added to the rows and to the columns of a block of inner products."""

    left: Any  # (a,)
    right: Any  # (b,)
    largest: float  # a bound on their size

    def add_to(self, products: Any) -> Any:
        """Return the float32 products (a, b) with the offsets, in place."""
        return products.add_(self.left.to(products.dtype)[:, None]).add_(self.right.to(products.dtype))


def row_inner_products(A: Any, B: Any, offsets: Offsets, compute: Compute) -> Any:
    """Return A Bᵀ + offsets for float32 tensors (a, d) and (b, d), in split precision if that is faster.

    The offsets u, v are then two more terms of the products, (u/t)·t + t·(v/t), which costs less than two passes over
    the block. With t² near the largest offset none of these entries is large.
    """
    import torch

    if not all(is_split_faster(rows.shape, compute) for rows in (A, B)):
        return offsets.add_to(A @ B.T)
    t = 2.0 ** (frexp(offsets.largest)[1] // 2)
    left, right = (numbers.to(A.dtype)[:, None] for numbers in (offsets.left, offsets.right))
    padding = (-A.shape[1] - 2) % VECTOR
    rows = torch.cat([A, left / t, torch.full_like(left, t), A.new_zeros((len(A), padding))], 1)
    columns = torch.cat([B, torch.full_like(right, t), right / t, B.new_zeros((len(B), padding))], 1)
    return (SplitMatrix.of(columns) @ SplitMatrix.of(rows).T).T  # column-major, as triangular systems read it
