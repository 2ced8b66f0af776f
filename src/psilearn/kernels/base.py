"""What every kernel is, and what makes one out of what a user gives."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array

from psilearn.backend import require_memory
from psilearn.linalg import Array
from psilearn.samples import Samples, describe, n_samples, take


class Kernel(BaseEstimator):
    """A positive semi-definite similarity k(a, b) = ⟨ψ(a), ψ(b)⟩ of two objects.

    A subclass stores its parameters in ``__init__`` and defines ``__call__`` and ``diag``; everything else has a
    default. ``check`` is the only place where the library looks whether an object suits.

    Examples
    --------
    A kernel on strings, by the letters that they share:

    >>> import numpy as np
    >>> class Letters(Kernel):
    ...     def __call__(self, A, B=None):
    ...         B = A if B is None else B
    ...         return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)
    ...     def diag(self, A):
    ...         return np.array([len(set(a)) for a in A], dtype=float)
    >>> Letters()(["tea", "cat"], ["eat", "dog"])
    array([[3., 0.],
           [2., 0.]])
    """

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block k(A, B) of shape (len(A), len(B)); k(A, A) without B."""
        raise TypeError(
            f"{type(self).__name__} defines no __call__(A, B=None): a kernel must return the block k(A, B)."
        )

    def diag(self, A: Samples) -> Array:
        """Return k(a, a) for each object, shape (len(A),), without the block."""
        raise TypeError(f"{type(self).__name__} defines no diag(A): a kernel must return k(a, a) for each object.")

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return k(aᵢ, bᵢ) for each i, shape (len(A),).

        This default evaluates 64×64 blocks and keeps their diagonals; kernels that can do better override it.
        """
        same_length(A, B)
        steps = [slice(i, i + 64) for i in range(0, n_samples(A), 64)]
        return np.concatenate([np.diagonal(self(take(A, step), take(B, step))) for step in steps])

    def squared_distances(self, A: Samples, B: Samples | None = None) -> Array:
        """Return |ψ(a) − ψ(b)|² = k(a,a) + k(b,b) − 2k(a,b) as a block."""
        distances = -2.0 * self(A, B)  # a new array: what a kernel returns is its own
        diagonal = self.diag(A)
        distances += diagonal[:, None]
        distances += diagonal if B is None else self.diag(B)
        np.maximum(distances, 0, out=distances)
        if B is None:
            np.fill_diagonal(distances, 0)
        return distances

    def paired_squared_distances(self, A: Samples, B: Samples) -> Array:
        """Return |ψ(aᵢ) − ψ(bᵢ)|² for each i."""
        return np.maximum(self.diag(A) + self.diag(B) - 2 * self.paired(A, B), 0)

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Return the collection if this kernel can work on it; else raise an error that calls it ``name``.

        Values are not changed: predictions are drawn from what this returns. The default accepts any sequence or
        array with at least one object; kernels on rows demand two dimensions unless ``allow_1d``.
        """
        _refuse_empty(A, name)
        if sparse.issparse(A):
            return A.tocsr()
        return A.to_numpy() if hasattr(A, "iloc") else A

    def fit(self, A: Samples) -> Self:
        """Set what this kernel takes from data, such as a median width, and return the kernel."""
        for part in self.get_params(deep=False).values():
            if isinstance(part, Kernel):
                part.fit(A)
        return self

    def normalized(self) -> Kernel:
        """Return k(a,b) / √(k(a,a) k(b,b))."""
        from psilearn.kernels.combine import Normalized

        return Normalized(self)

    def __add__(self, other: Kernel) -> Kernel:
        from psilearn.kernels.combine import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __mul__(self, other: Kernel | float) -> Kernel:
        from psilearn.kernels.combine import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, int | float) else NotImplemented

    __rmul__ = __mul__


class RowKernel(Kernel):
    """A kernel on rows of numbers: dense arrays, CSR matrices, and 1-D arrays as single numbers."""

    _accepts_sparse = True

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand finite numbers; keep the form and the dtype in which they came."""
        _refuse_empty(A, name)
        accept_sparse = "csr" if self._accepts_sparse else False
        try:
            return check_array(A, accept_sparse=accept_sparse, dtype="numeric", ensure_2d=not allow_1d, input_name=name)
        except (TypeError, ValueError) as error:
            if re.search(rf"\b{re.escape(name)}\b", str(error)):
                raise
            raise type(error)(
                f"{name} does not suit {type(self).__name__}, a kernel on rows of numbers: {error} For other objects "
                f"give a kernel that understands them, or a function k(a, b)."
            ) from error

    def _rows(self, A: Samples, name: str = "A") -> Any:
        """Return float64 rows, shape (len(A), d)."""
        A = self.check(A, name)
        return A.reshape(-1, 1).astype(np.float64) if A.ndim == 1 else A.astype(np.float64, copy=False)

    def _row_pair(self, A: Samples, B: Samples | None) -> tuple[Any, Any]:
        rows = self._rows(A)
        if B is None:
            return rows, rows
        others = self._rows(B, "B")
        if rows.shape[1] != others.shape[1]:
            raise ValueError(
                f"{type(self).__name__} compares rows of one width: A has {rows.shape[1]} columns (shape "
                f"{rows.shape}), B has {others.shape[1]} (shape {others.shape})."
            )
        return rows, others


def _refuse_empty(A: Samples, name: str) -> None:
    try:
        size = n_samples(A)
    except (TypeError, IndexError):
        size = -1
    if size < 0 or (isinstance(A, str | bytes | dict | set | frozenset) and not hasattr(A, "shape")):
        raise TypeError(f"{name} must be an array or a sequence of objects; got {type(A).__name__}.")
    if size == 0:
        raise ValueError(f"{name} is empty: at least one object is needed.")


def same_length(A: Samples, B: Samples) -> None:
    """Refuse to pair collections of different lengths."""
    if n_samples(A) != n_samples(B):
        raise ValueError(f"Pairs need collections of one length; A has {n_samples(A)} objects, B has {n_samples(B)}.")


def inner_products(A: Any, B: Any) -> Array:
    """Return A Bᵀ as a dense (len(A), len(B)) block, for dense or CSR rows."""
    product = A @ B.T
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def paired_inner_products(A: Any, B: Any) -> Array:
    """Return ⟨aᵢ, bᵢ⟩ for each i, for dense or CSR rows."""
    if sparse.issparse(A):
        return np.asarray(A.multiply(B).sum(axis=1), dtype=np.float64).ravel()
    if sparse.issparse(B):
        return paired_inner_products(B, A)
    return np.einsum("ij,ij->i", A, B)


def as_kernel(kernel: Any, name: str) -> Kernel:
    """Return an own copy of what the user gave for a kernel parameter.

    A :class:`Kernel` is cloned, a plain function k(a, b) becomes :class:`~psilearn.kernels.Pairwise`, and None becomes
    a Gaussian kernel with the median width.
    """
    from psilearn.kernels.objects import Pairwise
    from psilearn.kernels.vector import Gaussian

    if kernel is None:
        return Gaussian()
    if isinstance(kernel, Kernel):
        return clone(kernel)
    if callable(kernel) and not isinstance(kernel, type):
        return Pairwise(kernel)
    hint = f"{kernel.__name__}(...)" if isinstance(kernel, type) else "Gaussian(gamma=0.1)"
    raise TypeError(
        f"{name} must be a kernel of psilearn.kernels such as {hint}, a function k(a, b) or None; got {kernel!r}."
    )


def gram(kernel: Kernel, A: Samples, name: str, remedy: str) -> Array:
    """Return k(A, A), known to be a finite symmetric matrix of the right shape; n² numbers.

    ``name`` is the parameter that the kernel came from; ``remedy`` says what to change when memory does not suffice.
    """
    n = n_samples(A)
    require_memory((2, n, n), f"The Gram matrix of {name} over {n} objects, with its factor,", remedy)
    K = block(kernel, A, None, name)
    step = max(1, 2**20 // n)  # rows of K and columns of Kᵀ that stay in the cache together
    gap = max(float(np.abs(K[i : i + step] - K[:, i : i + step].T).max()) for i in range(0, n, step))
    scale = max(float(K.max()), -float(K.min()), float(np.finfo(float).tiny))
    if gap > 1e-6 * scale:
        raise ValueError(f"{name} = {kernel!r} is not symmetric: k(a, b) and k(b, a) differ by up to {gap:.3g}.")
    off = float(np.abs(diagonal(kernel, A, name) - np.diagonal(K)).max())
    if off > 1e-6 * scale:
        raise ValueError(f"{name} = {kernel!r} contradicts itself: diag(A) and k(A, A) differ by up to {off:.3g}.")
    return K


def block(kernel: Kernel, A: Samples, B: Samples | None, name: str) -> Array:
    """Return k(A, B), known to be finite and of the right shape; ``name`` is the parameter the kernel came from."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is named below
        K = np.asarray(kernel(A, B), dtype=np.float64)
    expected = (n_samples(A), n_samples(A if B is None else B))
    if K.shape != expected:
        raise ValueError(f"{name} = {kernel!r} returned shape {K.shape} for {describe(A)}; expected {expected}.")
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"{name} = {kernel!r} returned {K[i, j]} for objects {i} and {j}; a kernel must be finite.")
    return K


def diagonal(kernel: Kernel, A: Samples, name: str) -> Array:
    """Return k(a, a) for each object, known to be finite and of the right shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(kernel.diag(A), dtype=np.float64)
    if values.shape != (n_samples(A),) or not np.isfinite(values).all():
        raise ValueError(
            f"{name} = {kernel!r}: diag must give one finite number an object; got shape {values.shape} with "
            f"{int(np.sum(~np.isfinite(values)))} not finite, for {describe(A)}."
        )
    return values
