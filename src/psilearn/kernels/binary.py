"""Kernels on finite sets, given as 0/1 rows: fingerprints, tags, labels. Dense, CSR or packed bits."""

from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import array_namespace, is_tensor, off_device, on_host, working_dtype
from psilearn._utils.samples import Samples
from psilearn.kernels import device_rows
from psilearn.kernels.device_rows import DeviceRows
from psilearn.kernels.inner_products import dense, gemm_tiles, paired_inner_products, products, strips
from psilearn.kernels.kernel import Array, RowKernel, same_length


class _SetKernel(RowKernel):
    """A similarity of sets that depends on |A∩B|, |A| and |B| only. The empty set is like itself alone: k(∅, ∅) = 1.

    |A∩B| is an integer: a product of 0/1 rows in float32 counts it exactly below 2²⁴ columns, whatever the precision.
    """

    _makes_blocks = True
    _on_device = True

    def __init__(self, packed: bool = False) -> None:
        self.packed = packed

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of similarities."""
        rows, others = self._row_pair(A, B)
        if is_tensor(rows) or isinstance(rows, DeviceRows):
            return self._block_on_device(rows, others)
        sizes = self._sizes(rows)
        other_sizes = sizes if B is None else self._sizes(others)
        block = np.empty((len(sizes), len(other_sizes)), working_dtype())
        sizes, other_sizes = sizes.astype(block.dtype), other_sizes.astype(block.dtype)

        def finish(common: Array, i: slice, j: slice) -> None:
            for part in strips(len(common), block.itemsize * common.shape[1]):
                at = slice(i.start + part.start, i.start + part.stop)
                self._similarity(common[part], sizes[at, None], other_sizes[j], block[at, j])

        counts = self._count_dtype(rows)
        if sparse.issparse(rows) or sparse.issparse(others):
            products(rows, others, counts, finish)
        else:
            left, right = lambda i: self._bits(rows, i, counts), lambda j: self._bits(others, j, counts)
            gemm_tiles(left, right, block.shape, self._n_bits(rows), finish)
        block[np.ix_(sizes == 0, other_sizes == 0)] = 1
        return block

    def _block_on_device(self, rows: Any, others: Any) -> Any:
        """Return the block of similarities as a tensor: counts of common members, then their share."""
        tiles: list[list[Any]] = []

        def finish(common: Any, i: slice, j: slice, sizes: Any, other_sizes: Any) -> None:
            xp = array_namespace(common)
            common, sizes, other_sizes = (
                xp.astype(part, getattr(xp, working_dtype().name)) for part in (common, sizes[:, None], other_sizes)
            )
            common /= self._whole(common, sizes, other_sizes)
            common[(sizes == 0) & (other_sizes == 0)] = 1
            if i.start == 0:
                tiles.append([])
            tiles[-1].append(common)

        device_rows.counts(rows, others, self.packed, self._count_dtype(rows), finish)
        xp = array_namespace(tiles[0][0])
        columns = [tile[0] if len(tile) == 1 else xp.concat(tile) for tile in tiles]
        return columns[0] if len(columns) == 1 else xp.concat(columns, axis=1)

    def diag(self, A: Samples) -> Array:
        """Return ones: every set is most like itself."""
        return np.ones(self.check(A).shape[0])

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the similarity of each pair of rows."""
        same_length(A, B)
        with on_host():
            rows, others = self._row_pair(off_device(A), off_device(B))
        sizes, other_sizes = self._sizes(rows), self._sizes(others)
        common = self._sizes(rows & others) if self.packed else paired_inner_products(rows, others)
        values = self._similarity(common, sizes, other_sizes, np.empty(len(sizes)))
        values[(sizes == 0) & (other_sizes == 0)] = 1
        return values

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = False) -> Samples:
        """Demand rows of zeros and ones, or bytes of eight of them."""
        A = super().check(A, name, allow_1d=False)
        if self.packed:
            if sparse.issparse(A) or str(A.dtype).removeprefix("torch.") != "uint8":
                form = "a CSR matrix" if sparse.issparse(A) else f"dtype {A.dtype}"
                raise ValueError(
                    f"{type(self).__name__}(packed=True) works on dense rows of uint8, as numpy.packbits(bits, axis=1) "
                    f"makes them; {name} is {form}."
                )
            return A
        if sparse.issparse(A) and not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        odd = _odd(A.data if sparse.issparse(A) else A) if not is_tensor(A) else _odd_in_tensor(A)
        if odd is not None:
            raise ValueError(
                f"{type(self).__name__} works on 0/1 rows, but {name} ({A.shape[0]} rows) holds {odd!r}. "
                f"Binarise it, or use a kernel on numbers such as Gaussian."
            )
        return A

    def _n_bits(self, rows: Any) -> int:
        return int(rows.shape[1]) * (8 if self.packed else 1)

    def _count_dtype(self, rows: Any) -> Any:
        return np.float32 if self._n_bits(rows) < 2**24 else np.float64

    def _bits(self, rows: Any, part: slice, dtype: Any) -> Array:
        """Return some sets as dense 0/1 rows."""
        return np.unpackbits(rows[part], axis=1).astype(dtype) if self.packed else dense(rows, part, dtype)

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
        """Put the similarities into ``out``; what comes out for two empty sets does not matter."""
        with np.errstate(invalid="ignore"):  # the caller knows two empty sets by their sizes
            return np.divide(common, self._whole(common, size, other_size), out=out)

    def _whole(self, common: Array, size: Array, other_size: Array) -> Array:
        """Return what |A∩B| is the similarity of two sets in parts of; 0 for two empty ones."""
        raise NotImplementedError


class Tanimoto(_SetKernel):
    """k(A, B) = |A∩B| / |A∪B|, also called Jaccard or MinMax; k(∅, ∅) = 1.

    Parameters
    ----------
    packed : bool
        whether rows are bytes of eight 0/1 entries each, as ``numpy.packbits(bits, axis=1)`` makes them: an eighth of
        the memory, and the same values. A block unpacks a panel of rows at a time.

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

    def _whole(self, common: Array, size: Array, other_size: Array) -> Array:
        union = size + other_size
        union -= common
        return union


class Dice(_SetKernel):
    """k(A, B) = 2|A∩B| / (|A| + |B|); k(∅, ∅) = 1.

    It is the example-based F1 score itself, so the squared distance of its space, 2 − 2·F1, is the F1 loss: the output
    kernel to choose when F1 is the metric.

    Parameters
    ----------
    packed : bool
        whether rows are bytes of eight 0/1 entries each, as ``numpy.packbits(bits, axis=1)`` makes them.

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

    def _whole(self, common: Array, size: Array, other_size: Array) -> Array:
        return size / 2 + other_size / 2


def _odd_in_tensor(values: Any) -> Any:
    """Return a value of a tensor that is neither 0 nor 1, or None."""
    odd = (values != 0) & (values != 1)
    return values[odd][0].item() if bool(odd.any()) else None


def _odd(values: Array) -> Any:
    """Return the first value that is neither 0 nor 1, or None; a few rows at a time."""
    if values.dtype == bool:
        return None
    for part in strips(len(values), values.itemsize * (values.shape[1] if values.ndim == 2 else 1)):
        some = values[part]
        if np.issubdtype(some.dtype, np.integer) and some.min() >= 0 and some.max() <= 1:
            continue
        odd = some[(some != 0) & (some != 1)]
        if odd.size:
            return odd.flat[0]
    return None
