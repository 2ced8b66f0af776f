"""Kernels on anything: a precomputed matrix with objects as indices, and a plain function of two objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psilearn._backend import working_dtype
from psilearn._utils.samples import Index, Samples, n_samples
from psilearn.kernels.inner_products import strips
from psilearn.kernels.kernel import Array, Kernel, same_length


class Precomputed(Kernel):
    """k(i, j) = matrix[i, j]: objects are integers, row numbers of a matrix that is already known.

    Because objects are indices, a collection can be split, shuffled and cross-validated like any other, and a copy of
    the model shares the matrix.

    Parameters
    ----------
    matrix : array (N, N)
        the kernel among all objects that will ever be used, test objects and candidates included.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Precomputed
    >>> Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))([1], [0, 1])
    array([[1., 3.]])
    """

    _makes_blocks = True

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return matrix[A, B]."""
        rows = self._index(A)
        columns = rows if B is None else self._index(B, "B")
        block = np.empty((len(rows), len(columns)), working_dtype())
        for part in strips(len(rows), 8 * len(columns)):  # no block in the dtype of the matrix
            block[part] = self.matrix[np.ix_(rows[part], columns)]
        return block

    def diag(self, A: Samples) -> Array:
        """Return matrix[a, a]."""
        return self.paired(A, A)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return matrix[aᵢ, bᵢ]."""
        same_length(A, B)
        return np.asarray(self.matrix[self._index(A), self._index(B, "B")], dtype=np.float64)

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand row numbers of the matrix: integers, one an object."""
        A = np.asarray(super().check(A, name))
        self._index(A, name)
        return A

    def _index(self, A: Samples, name: str = "A") -> Index:
        matrix = self.matrix
        if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            shape = f" of shape {matrix.shape}" if hasattr(matrix, "shape") else ""
            raise ValueError(f"matrix must be a square NumPy array; got {type(matrix).__name__}{shape}.")
        A = np.asarray(A)
        if A.ndim == 2 and A.shape[1] == 1:
            A = A[:, 0]
        if A.ndim != 1 or not np.issubdtype(A.dtype, np.number) or np.any(np.floor(A) != A):
            raise ValueError(
                f"With a Precomputed kernel {name} must hold one integer an object, the row number in the matrix; got "
                f"shape {A.shape}, dtype {A.dtype}."
            )
        if A.size and not 0 <= A.min() <= A.max() < len(matrix):
            raise ValueError(
                f"{name} holds row numbers from {A.min()} to {A.max()}; the matrix has {len(matrix)} rows."
            )
        return A.astype(np.intp)

    def __sklearn_clone__(self) -> Precomputed:
        return type(self)(self.matrix)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"Precomputed(matrix of shape {getattr(self.matrix, 'shape', None)})"


class Pairwise(Kernel):
    """k(a, b) from a Python function of two objects: strings, graphs, whatever the function understands.

    One call a pair; in a symmetric block each pair is evaluated once. For speed write a :class:`Kernel` that returns
    whole blocks.

    Examples
    --------
    >>> from psilearn.kernels import Pairwise
    >>> Pairwise(lambda a, b: float(a[0] == b[0]))(["cat", "cow"], ["cup", "dog"])
    array([[1., 0.],
           [1., 0.]])
    """

    _makes_blocks = True

    def __init__(self, function: Callable[[Any, Any], float]) -> None:
        self.function = function

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of function values."""
        K = np.empty((n_samples(A), n_samples(A if B is None else B)), working_dtype())
        if B is not None:
            for i, a in enumerate(A):
                K[i] = [self.function(a, b) for b in B]
            return K
        for i, a in enumerate(A):
            for j in range(i + 1):
                K[i, j] = K[j, i] = self.function(a, A[j])
        return K

    def diag(self, A: Samples) -> Array:
        """Return function(a, a) for each object."""
        return self.paired(A, A)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return function(aᵢ, bᵢ) for each i."""
        same_length(A, B)
        return np.array([self.function(a, b) for a, b in zip(A, B, strict=True)], dtype=np.float64)
