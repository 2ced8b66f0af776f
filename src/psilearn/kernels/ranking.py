"""Kernels on rankings: row i holds the rank of each of K items, 1 = preferred."""

import numpy as np

from psilearn.kernels.base import Array, RowKernel
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

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of Kendall's τ."""
        rows, others = self._row_pair(A, B)
        signs = pair_signs(rows)  # (a, K(K−1)/2)
        return signs @ (signs if B is None else pair_signs(others)).T / signs.shape[1]

    def diag(self, A: Samples) -> Array:
        """Return the share of item pairs that are not tied."""
        return np.mean(pair_signs(self._rows(A)) ** 2, axis=1)

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
