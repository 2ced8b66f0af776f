"""Kernels on rankings: row i holds the rank of each of K items, 1 = preferred."""

from typing import Any

import numpy as np

from psilearn.backend import working_dtype
from psilearn.kernels.base import Array, RowKernel
from psilearn.kernels.products import gemm_tiles, strips
from psilearn.samples import Samples


class Kemeny(RowKernel):
    """k(σ, τ) = mean over item pairs i<j of sign(σⱼ − σᵢ)·sign(τⱼ − τᵢ): Kendall's τ of two rankings.

    Tied items count zero. For rankings without ties |ψ(σ) − ψ(τ)|² = 2 − 2·τ(σ, τ).

    References
    ----------
    Jiao and Vert, *The Kendall and Mallows kernels for permutations*, 2015; Korba, Garcia and d'Alché-Buc, *A
    structured prediction approach for label ranking*, 2018.

    Examples
    --------
    >>> from psilearn.kernels import Kemeny
    >>> Kemeny()([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[ 1.    ,  0.3333, -1.    ]])
    """

    _accepts_sparse = False
    _makes_blocks = True

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of Kendall's τ; sums of signs are integers, exact in float32."""
        rows, others = self._row_pair(A, B)
        pairs = _n_pairs(rows)
        block = np.empty((len(rows), len(others)), working_dtype())

        def finish(sums: Array, i: slice, j: slice) -> None:
            np.divide(sums, pairs, out=block[i, j], dtype=block.dtype)

        gemm_tiles(lambda i: _signs(rows[i]), lambda j: _signs(others[j]), block.shape, pairs, finish)
        return block

    def diag(self, A: Samples) -> Array:
        """Return the share of item pairs that are not tied."""
        rows = self._rows(A)
        values = np.empty(len(rows))
        for part in strips(len(rows), 4 * _n_pairs(rows)):
            values[part] = np.count_nonzero(_signs(rows[part]), axis=1) / _n_pairs(rows)
        return values

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = False) -> Samples:
        """Demand dense rows of at least two ranks."""
        A = super().check(A, name, allow_1d=False)
        if A.shape[1] < 2:
            raise ValueError(f"{name} must rank at least 2 items a row; got shape {A.shape}.")
        return A


def pair_signs(ranks: Array) -> Array:
    """Return sign(rⱼ − rᵢ) for the item pairs i<j, shape (n, K(K−1)/2)."""
    i, j = np.triu_indices(ranks.shape[1], 1)
    return np.sign(ranks[:, j] - ranks[:, i])


def _n_pairs(ranks: Array) -> int:
    return ranks.shape[1] * (ranks.shape[1] - 1) // 2


def _signs(ranks: Any) -> Array:
    """Return :func:`pair_signs` of ranks of any dtype, unsigned ones too, in float32."""
    i, j = np.triu_indices(ranks.shape[1], 1)
    left, right = ranks[:, i], ranks[:, j]
    return np.subtract(right > left, right < left, dtype=np.float32)
