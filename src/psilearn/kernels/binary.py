"""Kernels on finite sets, given as 0/1 rows: fingerprints, tags, labels. Dense, CSR or packed bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, array_namespace, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.kernels.device_rows import intersection_sizes
from psilearn.kernels.gaussian import Gaussian
from psilearn.kernels.inner_products import (
    gemm_tiles,
    is_on_device,
    paired_inner_products,
    products,
    strips,
)
from psilearn.kernels.row_kernel import RowKernel


class _SetKernel(RowKernel):
    """A similarity of sets that depends on |A∩B|, |A| and |B| only, with k(∅, ∅) = 1.

    |A∩B| is an integer: a product of 0/1 rows in float32 counts it exactly below 2²⁴ columns, whatever the precision.
    """

    supports_torch = True
    _returns_new_block = True
    _is_always_finite = True

    def __init__(self, packed: bool = False) -> None:
        self.packed = packed

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        if is_on_device(A):
            return self._block_on_device(A, B, compute)
        sizes = self._sizes(A)
        other_sizes = sizes if B is A else self._sizes(B)
        block = np.empty((len(sizes), len(other_sizes)), compute.dtype)
        sizes, other_sizes = sizes.astype(block.dtype), other_sizes.astype(block.dtype)

        def finish(common: Array, i: slice, j: slice) -> None:
            for part in strips(len(common), block.itemsize * common.shape[1]):
                rows = slice(i.start + part.start, i.start + part.stop)
                self._similarity(common[part], sizes[rows, None], other_sizes[j], block[rows, j])

        counts = self._count_dtype(A)
        if sparse.issparse(A) or sparse.issparse(B):
            products(A, B, counts, finish)
        else:
            left, right = lambda i: self._bits(A, i, counts), lambda j: self._bits(B, j, counts)
            gemm_tiles(left, right, block.shape, self._n_bits(A), finish)
        block[np.ix_(sizes == 0, other_sizes == 0)] = 1
        return block

    def _block_on_device(self, A: Any, B: Any, compute: Compute) -> Any:
        """Return the block of similarities as a tensor, from exact counts of common members."""
        block = compute.empty((A.shape[0], B.shape[0]), compute.dtype)

        def finish(common: Any, i: slice, j: slice, sizes: Any, other_sizes: Any) -> None:
            sizes, other_sizes = (compute.asarray(part, compute.dtype) for part in (sizes, other_sizes))
            tile = block[i, j]
            array_namespace(tile).divide(common, self._denominator(common, sizes[:, None], other_sizes), out=tile)
            if not (sizes.all() and other_sizes.all()):
                tile[(sizes == 0)[:, None] & (other_sizes == 0)] = 1

        intersection_sizes(A, B, self.packed, compute.with_dtype(self._count_dtype(A)), finish)
        return block

    def _diag(self, A: Any) -> Any:
        return np.ones(A.shape[0])

    def _paired(self, A: Any, B: Any) -> Any:
        if is_on_device(A, B):
            A, B = to_numpy(A), to_numpy(B)
        sizes, other_sizes = self._sizes(A), self._sizes(B)
        common = self._sizes(A & B) if self.packed else paired_inner_products(A, B)
        values = self._similarity(common, sizes, other_sizes, np.empty(len(sizes)))
        values[(sizes == 0) & (other_sizes == 0)] = 1
        return values

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        A = super()._check(A, name, False)
        if validation.check_bool(self.packed, "packed"):
            if sparse.issparse(A) or str(A.dtype).removeprefix("torch.") != "uint8":
                form = "a CSR matrix" if sparse.issparse(A) else f"of dtype {A.dtype}"
                raise ValueError(
                    f"{type(self).__name__}(packed=True) requires dense rows of uint8, as numpy.packbits(bits, axis=1) "
                    f"returns them; {name} is {form}."
                )
            return A
        if sparse.issparse(A) and not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        value = _non_binary_value(A.data if sparse.issparse(A) else A)
        if value is not None:
            raise ValueError(
                f"{type(self).__name__} requires 0/1 rows, but {name} ({A.shape[0]} rows) contains {value!r}. "
                f"Binarize it, or use a kernel on numbers such as Gaussian."
            )
        return A

    def _n_bits(self, rows: Any) -> int:
        return int(rows.shape[1]) * (8 if self.packed else 1)

    def _count_dtype(self, rows: Any) -> Any:
        return np.float32 if self._n_bits(rows) < 2**24 else np.float64

    def _bits(self, rows: Any, part: slice, dtype: Any) -> Array:
        """Return a slice of the sets as dense 0/1 rows."""
        if self.packed:
            return np.unpackbits(rows[part], axis=1).astype(dtype)
        return rows[part].astype(dtype, copy=False)

    def _sizes(self, rows: Any) -> Array:
        """Return the number of members of each set, in float64."""
        if sparse.issparse(rows):
            return np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()
        sizes = np.empty(len(rows))
        for part in strips(len(rows), 4 * self._n_bits(rows)):
            bits = self._bits(rows, part, self._count_dtype(rows))
            sizes[part] = bits @ np.ones(bits.shape[1], bits.dtype)
        return sizes

    def _similarity(self, common: Array, size: Array, other_size: Array, out: Array) -> Array:
        """Write the similarities to ``out``; the value for two empty sets is replaced by the caller."""
        with np.errstate(invalid="ignore"):  # 0/0 for two empty sets
            return np.divide(common, self._denominator(common, size, other_size), out=out)

    def _denominator(self, common: Array, size: Array, other_size: Array) -> Array:
        """Return the number by which |A∩B| is divided; 0 for two empty sets."""
        raise TypeError(f"{type(self).__name__} must implement _denominator(common, size, other_size).")


class Tanimoto(_SetKernel):
    """The Tanimoto similarity k(A, B) = |A∩B| / |A∪B|, also called Jaccard or MinMax; k(∅, ∅) = 1.

    Parameters
    ----------
    packed : bool, default=False
        Whether rows are bytes of eight 0/1 entries each, as ``numpy.packbits(bits, axis=1)`` returns them: the same
        values with an eighth of the memory. A panel of rows is unpacked at a time.

    See Also
    --------
    Dice : 2|A∩B| / (|A| + |B|).
    GaussianTanimoto : The Gaussian over the Tanimoto distance.

    References
    ----------
    Gower, *A general coefficient of similarity and some of its properties*, 1971 (positive semi-definite);
    Ralaivola et al., *Graph kernels for chemical informatics*, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Tanimoto
    >>> A, B = [[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0]]
    >>> Tanimoto()(A, B).round(4)
    array([[0.3333, 0.    ],
           [0.    , 1.    ]])
    >>> Tanimoto(packed=True)(np.packbits(A, axis=1), np.packbits(B, axis=1)).round(4)
    array([[0.3333, 0.    ],
           [0.    , 1.    ]])
    """

    def _denominator(self, common: Array, size: Array, other_size: Array) -> Array:
        union = size + other_size
        union -= common
        return union


class Dice(_SetKernel):
    """The Dice similarity k(A, B) = 2|A∩B| / (|A| + |B|); k(∅, ∅) = 1.

    It equals the example-based F1 score, so the squared distance of its space is 2 − 2·F1: choose it as the output
    kernel if F1 is the metric.

    Parameters
    ----------
    packed : bool, default=False
        Whether rows are bytes of eight 0/1 entries each, as ``numpy.packbits(bits, axis=1)`` returns them.

    See Also
    --------
    Tanimoto : |A∩B| / |A∪B|.

    References
    ----------
    Gower and Legendre, *Metric and Euclidean properties of dissimilarity coefficients*, 1986 (positive semi-definite).

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Dice
    >>> A, B = [[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0]]
    >>> Dice()(A, B)
    array([[0.5, 0. ],
           [0. , 1. ]])
    >>> Dice(packed=True)(np.packbits(A, axis=1), np.packbits(B, axis=1))
    array([[0.5, 0. ],
           [0. , 1. ]])
    """

    def _denominator(self, common: Array, size: Array, other_size: Array) -> Array:
        return size / 2 + other_size / 2


def GaussianTanimoto(gamma: float | str = 0.5, packed: bool = False) -> Gaussian:
    """Return exp(−γ(2 − 2T(a, b))), the Gaussian over the Tanimoto distance; the paper's σ² = 1 is γ = ½.

    Parameters
    ----------
    gamma : float or "median", default=0.5
        The width γ. "median" is 1 / median of 2 − 2T over the data that is passed to ``fit``.
    packed : bool, default=False
        Whether rows are packed bits, see :class:`Tanimoto`.

    Returns
    -------
    Gaussian
        The kernel.

    See Also
    --------
    Gaussian : The Gaussian over the distance of any kernel.
    Tanimoto : The similarity inside.

    Examples
    --------
    >>> from psilearn.kernels import GaussianTanimoto
    >>> GaussianTanimoto()
    Gaussian(base=Tanimoto(), gamma=0.5)
    >>> GaussianTanimoto(packed=True)
    Gaussian(base=Tanimoto(packed=True), gamma=0.5)
    """
    return Gaussian(gamma=gamma, base=Tanimoto(packed=packed))


def _non_binary_value(values: Any) -> Any:
    """Return the first value that is neither 0 nor 1, or None; arrays are read a few rows at a time."""
    if not isinstance(values, np.ndarray):
        other = (values != 0) & (values != 1)
        return values[other][0].item() if bool(other.any()) else None
    is_integer = values.dtype.kind in "iu"
    if values.dtype == bool or not values.size or (is_integer and values.min() >= 0 and values.max() <= 1):
        return None
    for part in strips(len(values), values.itemsize * (values.shape[1] if values.ndim == 2 else 1)):
        rows = values[part]
        other = rows[(rows != 0) & (rows != 1)]
        if other.size:
            return other.flat[0].item()
    return None
