"""Squared Euclidean distances of rows, dense or CSR, and their Gaussians: matrix products where these keep the digits.

|a|² + |b|² − 2⟨a, b⟩ has an error of about ε(|a|² + |b|²). Dense rows are centered first, at the median of a few of
them, which outliers do not move. This leaves the pairs of two rows that are both far from the center: outliers, a
second cluster, CSR rows with an offset. Their distances are computed again in float64, with a center of their own, and
those that are still small relative to the lengths of the two rows from the differences of their entries.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, array_namespace, is_tensor, iter_blocks, take_rows, to_device, to_numpy
from psilearn._linalg import Array, Offsets, has_half_units, nonzero_pairs, row_products
from psilearn._utils.samples import Index
from psilearn.kernels import device_rows
from psilearn.kernels.device_rows import DeviceRows
from psilearn.kernels.inner_products import (
    cast,
    dense,
    fill_diagonal,
    inner_products,
    paired_inner_products,
    strips,
    to_gaussians,
    to_squared_distances,
)

CENTER_ROWS = 31  # rows whose median is the center
FAR = {
    4: 2.0**8,
    8: 2.0**20,
}  # |a|² of a row that is far, by the bytes of a number: in units of 1/γ or of the median |a|²
SPLIT_RADIUS = 2.0**4  # γ|a|² up to which the error of a split product is below that of float32 at the limit FAR
CLOSE = 1e-6  # d² / (|a|² + |b|²) of a pair whose entries are subtracted
MAX_GAMMA = 2.0**40  # widths beyond this, and below its inverse, are moved to the rows, where float32 has room for them
SMALLEST = 1e-145  # numbers whose squares are in the range of float64


def gaussians(A: Any, B: Any, gamma: float, compute: Compute) -> Any:
    """Return exp(−γ|a − b|²) of prepared rows as a new block, with ones on the diagonal if ``B is A``."""
    scale = 1.0 if 1 / MAX_GAMMA <= gamma <= MAX_GAMMA else 2.0 ** round(log2(gamma) / 2)
    rows = _Rows.of(A, B, compute.dtype, scale)
    width = gamma / scale / scale  # the square of the scale may be out of range
    largest, limit = rows.largest_square(), FAR[compute.dtype.itemsize] / width
    if has_half_units(compute.device) and B is not A and largest * width <= SPLIT_RADIUS:
        block = rows.split_gaussians(largest, width, compute)
    else:
        block = to_gaussians(rows.products(compute), rows.squared_left, rows.squared_right, width)
    if not largest <= limit:  # NaN, where squares overflow, counts as far
        _correct(block, A, B, rows, limit, lambda distances: array_namespace(distances).exp(-gamma * distances))
    if B is A:
        fill_diagonal(block, 1)
    return block


def squared_distances(A: Any, B: Any, compute: Compute) -> Any:
    """Return |a − b|² of prepared rows as a new block, with zeros on the diagonal if ``B is A``."""
    rows = _Rows.of(A, B, compute.dtype)
    block = to_squared_distances(rows.products(compute), rows.squared_left, rows.squared_right)
    limit = 0.0  # rows that are not centered may all be far
    if _is_dense(A) and _is_dense(B):
        limit = FAR[compute.dtype.itemsize] * float(np.median(to_numpy(rows.squared_right)))
    _correct(block, A, B, rows, limit, lambda distances: distances)
    if B is A:
        fill_diagonal(block, 0)
    return block


def distances_without_rounding(A: Any) -> Array:
    """Return |a − b|² of all pairs of rows, arrays or CSR, where equal rows are at distance 0 and only these.

    Rows count as equal if their entries differ by a few units in the last place only.
    """
    with np.errstate(over="ignore"):  # the distance of an outlier may be infinite
        distances = _accurate_distances(A, A)
        rounding = (4 * np.finfo(np.float64).eps) ** 2 * paired_inner_products(A, A)
    i, j = nonzero_pairs(distances <= min(2 * rounding.max(), np.finfo(np.float64).max))  # candidates, usually few
    equal = distances[i, j] <= rounding[i] + rounding[j]
    distances[i[equal], j[equal]] = 0
    if not distances.any():
        _check_squares(A)
    return distances


def paired_squared_distances(A: Any, B: Any) -> Any:
    """Return |aᵢ − bᵢ|² of prepared rows in float64 from differences, so that no digits cancel; few rows at a time."""
    if is_tensor(A) and is_tensor(B):
        difference = A.double() - B.double()
        return row_products(difference, difference)
    A, B = _on_host(A), _on_host(B)
    if sparse.issparse(A) and sparse.issparse(B):
        difference = cast(A, np.float64) - cast(B, np.float64)
        return paired_inner_products(difference, difference)
    values = np.empty(A.shape[0])
    for part in strips(A.shape[0], 8 * A.shape[1]):
        difference = dense(A, part, np.float64) - dense(B, part, np.float64)
        np.einsum("ij,ij->i", difference, difference, out=values[part])
    return values


class _Rows(NamedTuple):
    """Rows as they are multiplied: centered if both sides are dense, in the precision of the product, and scaled."""

    left: Any
    right: Any
    squared_left: Any  # (a,)  |a|² in float64
    squared_right: Any  # (b,)

    @classmethod
    def of(cls, A: Any, B: Any, dtype: Any, scale: float = 1.0) -> _Rows:
        """Return the rows of a block. The center is that of B: other blocks of a change k(a, b) by rounding only."""
        if _is_dense(A) and _is_dense(B):
            center = _center(B)
            right = _subtract(B, center, dtype, scale)
            left = right if A is B else _subtract(A, center, dtype, scale)
        else:
            right = B if scale == 1 else _scaled(B, scale)
            left = right if A is B else A if scale == 1 else _scaled(A, scale)
        squared = paired_inner_products(right, right)
        return cls(left, right, squared if left is right else paired_inner_products(left, left), squared)

    def products(self, compute: Compute) -> Any:
        """Return the inner products of the rows."""
        return inner_products(self.left, self.right, compute)

    def split_gaussians(self, largest: float, gamma: float, compute: Compute) -> Any:
        """Return exp(−γ|a − b|²) for rows on a GPU, possibly from split products; ``largest`` is the largest |a|²."""
        # −|a − b|²/2 = ⟨a, b⟩ − |a|²/2 − |b|²/2
        left, right = (to_device(squared, compute.device) / -2 for squared in (self.squared_left, self.squared_right))
        sums = device_rows.inner_products(self.left, self.right, compute, Offsets(left, right, largest / 2))
        return sums.mul_(2 * gamma).clamp_(max=0).exp_()

    def largest_square(self) -> float:
        """Return the largest |a|²."""
        squares = (self.squared_left, self.squared_right)
        return max((float(squared.max()) for squared in squares if len(squared)), default=0.0)


def _is_dense(rows: Any) -> bool:
    return isinstance(rows, np.ndarray) or is_tensor(rows)


def _center(rows: Any) -> Any:
    """Return the median of a few rows, column by column, in float64, or in float32 for tensors that are."""
    index = np.linspace(0, len(rows) - 1, min(len(rows), CENTER_ROWS)).astype(np.intp)
    sample = take_rows(rows, index)
    xp = array_namespace(sample)
    is_single = is_tensor(rows) and rows.dtype == xp.float32
    return xp.sort(sample if is_single else xp.astype(sample, xp.float64), axis=0)[(len(index) - 1) // 2]


def _subtract(rows: Any, center: Any, dtype: Any, scale: float) -> Any:
    """Return (rows − center)·scale, subtracted in float64 and stored in the given dtype."""
    if not isinstance(rows, np.ndarray):
        xp = array_namespace(rows)
        dtype = getattr(xp, dtype.name)
        if rows.dtype == center.dtype == dtype and scale == 1:
            return rows - center  # rounded once
        return xp.astype((xp.astype(rows, xp.float64) - center) * scale, dtype)
    if scale != 1:
        return ((rows - center) * scale).astype(dtype)
    return np.subtract(rows, center, out=np.empty(rows.shape, dtype), casting="same_kind")


def _scaled(rows: Any, scale: float) -> Any:
    """Return rows, dense or CSR, times a number in float64."""
    if isinstance(rows, DeviceRows):
        return DeviceRows.of(_scaled(rows.host, scale), rows.tensor.device)
    return rows.double() * scale if is_tensor(rows) else rows.astype(np.float64) * scale


def _correct(block: Any, A: Any, B: Any, rows: _Rows, limit: float, finish: Callable[[Any], Any]) -> None:
    """Overwrite the pairs of two rows whose |a|² exceed a limit with ``finish`` of their accurate distances."""
    far_left, far_right = (_indices_above(squared, limit) for squared in (rows.squared_left, rows.squared_right))
    if not len(far_left) or not len(far_right):
        return
    if not (is_tensor(A) and is_tensor(B)):
        A, B = _on_host(A), _on_host(B)
    columns = take_rows(B, far_right)
    for part in iter_blocks(len(far_left), 64 * len(far_right)):
        values = finish(_accurate_distances(take_rows(A, far_left[part]), columns))
        if isinstance(block, np.ndarray):
            block[np.ix_(far_left[part], far_right)] = values
        else:
            i, j = (to_device(index, block.device) for index in (far_left[part], far_right))
            block[i[:, None], j] = to_device(values, block.device).to(block.dtype)


def _indices_above(values: Any, limit: float) -> Index:
    """Return the indices of values that exceed a limit."""
    return np.flatnonzero(to_numpy(values) > limit)


def _on_host(rows: Any) -> Any:
    """Return rows as an array or a CSR matrix."""
    return rows.host if isinstance(rows, DeviceRows) else to_numpy(rows) if is_tensor(rows) else rows


def _accurate_distances(A: Any, B: Any) -> Any:
    """Return |a − b|² in float64 with a relative error of about 1e-9."""
    compute = Compute(device=A.device if is_tensor(A) else None)
    rows = _Rows.of(A, B, compute.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = to_squared_distances(rows.products(compute), rows.squared_left, rows.squared_right)
    lengths = CLOSE * rows.squared_left[:, None] + CLOSE * rows.squared_right
    i, j = nonzero_pairs(~(distances > lengths))  # NaN, where squares overflow, counts as close
    numbers = max(part.nnz // part.shape[0] if sparse.issparse(part) else part.shape[1] for part in (A, B))
    for part in iter_blocks(len(i), 64 * (numbers + 1)):
        distances[i[part], j[part]] = paired_squared_distances(A[i[part]], B[j[part]])
    return distances


def _check_squares(A: Any) -> None:
    """Raise if rows differ, but by so little that all squares underflow."""
    rows = A.data if sparse.issparse(A) else A - A[:1]
    largest = float(np.abs(rows).max(initial=0))
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"The data differ by at most {largest:.3g}, and the squares of such numbers are below the range of "
            f"float64: multiply the data by a constant, such as {1 / largest:.0e}."
        )
