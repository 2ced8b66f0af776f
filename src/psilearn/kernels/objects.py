"""Kernels on any objects: a precomputed matrix, with row numbers as objects, and a function of two objects."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from psilearn._backend import Compute
from psilearn._utils.samples import Index, Samples, check_not_masked, n_samples
from psilearn.kernels.inner_products import strips
from psilearn.kernels.kernel import Kernel

MAX_SWAPPED_PAIRS = 16  # pairs of a symmetric block on which a function is called in both orders


class Precomputed(Kernel):
    """The kernel k(i, j) = matrix[i, j]: objects are row numbers of a matrix that is already known.

    Because objects are indices, a collection can be split, shuffled and cross-validated like any other. A clone of the
    kernel shares the matrix.

    Parameters
    ----------
    matrix : ndarray of shape (N, N)
        The kernel among all objects that will be used, test objects and candidates included.

    See Also
    --------
    Pairwise : A kernel from a function of two objects.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Precomputed
    >>> Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))([1], [0, 1])
    array([[1., 3.]])
    """

    _returns_new_block = True
    _is_stored = True

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = np.empty((len(A), len(B)), compute.dtype)
        for part in strips(len(A), 8 * len(B)):  # no temporary block in the dtype of the matrix
            block[part] = self.matrix[np.ix_(A[part], B)]
        return block

    def _diag(self, A: Any) -> Any:
        return self.matrix[A, A]

    def _paired(self, A: Any, B: Any) -> Any:
        return self.matrix[A, B]

    def _place(self, A: Samples, compute: Compute) -> Any:
        return self._index(A, "A")

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        try:
            A = np.asarray(super()._check(A, name, allow_1d))
        except ValueError as error:  # lists of unequal lengths
            raise ValueError(f"{name} must hold one row number of the matrix per object: {error}") from error
        self._index(A, name)
        return A

    def _index(self, A: Samples, name: str) -> Index:
        matrix = self.matrix

        if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            shape = f" of shape {matrix.shape}" if hasattr(matrix, "shape") else ""
            raise ValueError(f"matrix must be a square NumPy array; got {type(matrix).__name__}{shape}.")
        check_not_masked(matrix, "matrix")
        if matrix.dtype.kind not in "bifu":
            raise ValueError(f"matrix of Precomputed must hold real numbers; got dtype {matrix.dtype}.")
        if A.ndim == 2 and A.shape[1] == 1:
            A = A[:, 0]
        if A.ndim != 1 or A.dtype.kind not in "iuf" or np.any(np.floor(A) != A):
            raise ValueError(
                f"With a Precomputed kernel {name} must hold one integer per object, its row number in the matrix; got "
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
    """A kernel k(a, b) from a Python function of two objects, such as strings or graphs.

    The function is called once per pair, and once per unordered pair in a symmetric block, where a few pairs are also
    called in the other order to check the symmetry. It is slow: a :class:`Kernel` that computes whole blocks is
    preferable.

    Parameters
    ----------
    function : callable
        Takes two objects and returns their similarity, a float. It must be symmetric and positive semi-definite.

    See Also
    --------
    Kernel : How to write a kernel that computes blocks.

    Examples
    --------
    >>> from psilearn.kernels import Pairwise
    >>> Pairwise(lambda a, b: float(a[0] == b[0]))(["cat", "cow"], ["cup", "dog"])
    array([[1., 0.],
           [1., 0.]])
    """

    _returns_new_block = True

    def __init__(self, function: Callable[[Any, Any], float]) -> None:
        self.function = function

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        if not callable(self.function) or isinstance(self.function, type):
            raise TypeError(f"function of Pairwise must be a function k(a, b); got {self.function!r:.80}.")
        return super()._check(A, name, allow_1d)

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        K = np.empty((n_samples(A), n_samples(B)), compute.dtype)
        if B is not A:
            for i, a in enumerate(A):
                K[i] = self._numbers([self.function(a, b) for b in B])
            return K
        for i, a in enumerate(A):
            K[i, : i + 1] = self._numbers([self.function(a, A[j]) for j in range(i + 1)])
            K[: i + 1, i] = K[i, : i + 1]
        self._check_symmetry(A, K)
        return K

    def _diag(self, A: Any) -> Any:
        return self._paired(A, A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self._numbers([self.function(a, b) for a, b in zip(A, B, strict=True)])

    def _check_symmetry(self, A: Any, K: Any) -> None:
        """Raise if the function returns another value for b and a than for a and b, on a few pairs."""
        rows = np.unique(np.linspace(1, len(K) - 1, min(len(K) - 1, MAX_SWAPPED_PAIRS)).astype(np.intp))
        columns = 3 * rows // 7
        swapped = self._numbers([self.function(A[j], A[i]) for i, j in zip(rows, columns, strict=True)])
        gap = np.abs(swapped - K[rows, columns])
        if len(rows) and gap.max() > 1e-6 * np.abs(K).max():
            worst = gap.argmax()
            i, j = rows[worst], columns[worst]
            raise ValueError(
                f"The kernel function {self._name()} is not symmetric: it returns {K[i, j]:.6g} for objects {i} and "
                f"{j}, but {swapped[worst]:.6g} for {j} and {i}."
            )

    def _numbers(self, values: list[Any]) -> Any:
        """Return what the function returned as a float64 array; raise if one of the values is not a real number."""
        try:
            array = np.asarray(values)
            if array.ndim == 1 and array.dtype.kind in "bifu":
                return array.astype(np.float64, copy=False)
        except (TypeError, ValueError):  # arrays of unequal shapes
            pass
        for value in values:
            if not isinstance(value, Real) and not (np.ndim(value) == 0 and np.asarray(value).dtype.kind in "bifu"):
                raise TypeError(
                    f"The kernel function {self._name()} must return one real number for two objects; got "
                    f"{type(value).__name__} {reprlib.repr(value)}."
                )
        return np.array([float(value) for value in values])

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)
