"""Kernels on finite sets, given as 0/1 rows: fingerprints, tags, labels. Dense or CSR."""

import numpy as np
from scipy import sparse

from psilearn.kernels.base import Array, RowKernel, inner_products, paired_inner_products, same_length
from psilearn.samples import Samples


class _SetKernel(RowKernel):
    """A similarity of sets that depends on |A∩B|, |A| and |B| only. The empty set is like itself alone: k(∅, ∅) = 1."""

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of similarities."""
        rows, others = self._row_pair(A, B)
        return self._similarity(inner_products(rows, others), _sizes(rows)[:, None], _sizes(others)[None, :])

    def diag(self, A: Samples) -> Array:
        """Return ones: every set is most like itself."""
        return np.ones(len(_sizes(self._rows(A))))

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the similarity of each pair of rows."""
        same_length(A, B)
        rows, others = self._row_pair(A, B)
        return self._similarity(paired_inner_products(rows, others), _sizes(rows), _sizes(others))

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = False) -> Samples:
        """Demand rows of zeros and ones."""
        A = super().check(A, name, allow_1d=False)
        if sparse.issparse(A) and not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        values = A.data if sparse.issparse(A) else A
        odd = values[(values != 0) & (values != 1)]
        if odd.size:
            raise ValueError(
                f"{type(self).__name__} works on 0/1 rows, but {name} ({A.shape[0]} rows) holds {odd.flat[0]!r}. "
                f"Binarise it, or use a kernel on numbers such as Gaussian."
            )
        return A

    def _similarity(self, common: Array, size: Array, other_size: Array) -> Array:
        raise NotImplementedError


class Tanimoto(_SetKernel):
    """k(A, B) = |A∩B| / |A∪B|, also called Jaccard or MinMax; k(∅, ∅) = 1.

    References
    ----------
    Gower, *A general coefficient of similarity and some of its properties*, 1971 (positive semi-definite);
    Ralaivola et al., *Graph kernels for chemical informatics*, 2005.

    Examples
    --------
    >>> from psilearn.kernels import Tanimoto
    >>> Tanimoto()([[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0]]).round(4)
    array([[0.3333, 0.    ],
           [0.    , 1.    ]])
    """

    def _similarity(self, common: Array, size: Array, other_size: Array) -> Array:
        return _ratio(common, size + other_size - common)


class Dice(_SetKernel):
    """k(A, B) = 2|A∩B| / (|A| + |B|); k(∅, ∅) = 1.

    It is the example-based F1 score itself, so the squared distance of its space, 2 − 2·F1, is the F1 loss: the output
    kernel to choose when F1 is the metric.

    References
    ----------
    Gower and Legendre, *Metric and Euclidean properties of dissimilarity coefficients*, 1986 (positive semi-definite).

    Examples
    --------
    >>> from psilearn.kernels import Dice
    >>> Dice()([[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0]])
    array([[0.5, 0. ],
           [0. , 1. ]])
    """

    def _similarity(self, common: Array, size: Array, other_size: Array) -> Array:
        return _ratio(2 * common, size + other_size)


def _sizes(rows: Array) -> Array:
    return np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()


def _ratio(part: Array, whole: Array) -> Array:
    """Return part / whole, and 1 where both sets are empty."""
    return np.divide(part, whole, out=np.ones_like(part), where=whole > 0)
