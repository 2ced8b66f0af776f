"""What every kernel is, and what makes one out of what a user gives."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array

from psilearn._backend import (
    array_namespace,
    device_of,
    is_tensor,
    off_device,
    precision,
    to_host,
    working_device,
)
from psilearn._linalg import Array
from psilearn._utils.samples import Samples, describe, n_columns, n_samples, take
from psilearn.kernels.blocks import new_block
from psilearn.kernels.device_rows import on_device
from psilearn.kernels.inner_products import fill_diagonal, slices, squared_distances


class Kernel(BaseEstimator):
    """A positive semi-definite similarity k(a, b) = ⟨ψ(a), ψ(b)⟩ of two objects.

    A subclass stores its parameters in ``__init__`` and defines ``__call__`` and ``diag``; everything else has a
    default. ``check`` is the only place where the library looks whether an object suits, ``check_alike`` whether two
    collections suit each other.

    Blocks come in :func:`psilearn._backend.working_dtype`; ``diag`` and ``paired``, a number an object, in float64 and
    in NumPy. A kernel that says ``_on_device`` takes tensors of torch as rows and computes where they are; any other
    one gets what is in NumPy, and its blocks are moved.

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

    _makes_blocks = False  # whether a block is a new array each time, free to be overwritten
    _on_device = False  # whether rows may be tensors, and blocks are then tensors too

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
        steps = slices(n_samples(A), 64)
        with precision(np.float64):
            return np.concatenate([np.diagonal(to_host(self(take(A, step), take(B, step)))) for step in steps])

    def squared_distances(self, A: Samples, B: Samples | None = None) -> Array:
        """Return |ψ(a) − ψ(b)|² = k(a,a) + k(b,b) − 2k(a,b) as a block."""
        distances = squared_distances(*self._distance_parts(A, B))
        if B is None:
            fill_diagonal(distances, 0)
        return distances

    def _distance_parts(self, A: Samples, B: Samples | None) -> tuple[Array, Array, Array]:
        """Return k(a,b) as a block that may be overwritten, k(a,a) and k(b,b)."""
        diagonal = self.diag(A)
        return new_block(self, A, B), diagonal, diagonal if B is None else self.diag(B)

    def paired_squared_distances(self, A: Samples, B: Samples) -> Array:
        """Return |ψ(aᵢ) − ψ(bᵢ)|² for each i."""
        return np.maximum(self.diag(A) + self.diag(B) - 2 * self.paired(A, B), 0)

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Return the collection if this kernel can work on it; else raise an error that calls it ``name``.

        Values are not changed: predictions are drawn from what this returns. The default accepts any sequence or
        array with at least one object; kernels on rows demand two dimensions unless ``allow_1d``.
        """
        refuse_empty(A, name)
        if sparse.issparse(A):
            return A.tocsr()
        return A.to_numpy() if hasattr(A, "iloc") else A

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse to compare checked collections of different kinds: here, rows of different widths."""
        if n_columns(A) != n_columns(B):
            raise ValueError(
                f"{name} must be of the same width as {other}: {name} has {describe(A)}, {other} has {describe(B)}."
            )

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
    _accepts_nan = False

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand finite numbers; keep the form and the dtype in which they came."""
        return check_rows(
            A,
            name,
            f"does not suit {type(self).__name__}, a kernel on rows of numbers",
            "For other objects give a kernel that understands them, or a function k(a, b).",
            accept_sparse="csr" if self._accepts_sparse else False,
            ensure_2d=not allow_1d,
            ensure_all_finite="allow-nan" if self._accepts_nan else True,
        )

    def _rows(self, A: Samples, name: str = "A") -> Any:
        """Return checked rows in the dtype in which they came, shape (len(A), d)."""
        A = self.check(A, name)
        A = A.reshape(-1, 1) if A.ndim == 1 else A
        if not self._on_device:
            return off_device(A)
        return A if working_device() is None else on_device(A, working_device())

    def _row_pair(self, A: Samples, B: Samples | None) -> tuple[Any, Any]:
        """Return checked rows of one width; the same ones twice without B."""
        rows = self._rows(A)
        if B is None:
            return rows, rows
        others = self._rows(B, "B")
        if rows.shape[1] != others.shape[1]:
            raise ValueError(
                f"{type(self).__name__} compares rows of one width: A has {rows.shape[1]} columns (shape "
                f"{tuple(rows.shape)}), B has {others.shape[1]} (shape {tuple(others.shape)})."
            )
        device = device_of(rows, others) if working_device() is None else None
        if device is not None:
            rows, others = on_device(rows, device), on_device(others, device)
        return rows, others


def check_rows(A: Samples, name: str, complaint: str, advice: str = "", **demands: Any) -> Samples:
    """Return rows of numbers as scikit-learn's check_array with these demands gives them; errors name the argument."""
    refuse_empty(A, name)
    if is_tensor(A):
        return _check_tensor(A, name, **demands)
    try:
        return check_array(A, dtype="numeric", input_name=name, **demands)
    except (TypeError, ValueError) as error:
        if re.search(rf"\b{re.escape(name)}\b", str(error)):
            raise
        raise type(error)(f"{name} {complaint}: {error} {advice}".rstrip()) from error


def _check_tensor(A: Any, name: str, ensure_2d: bool = True, ensure_all_finite: Any = True, **_: Any) -> Any:
    """Demand of a tensor what check_array demands of an array."""
    xp = array_namespace(A)
    if str(A.layout) != "torch.strided":
        raise TypeError(f"{name} is a tensor in the layout {A.layout}; give sparse rows as a CSR matrix of SciPy.")
    if A.ndim != 2 and (ensure_2d or A.ndim != 1):
        raise ValueError(f"{name} must have two dimensions, one row an object; got shape {tuple(A.shape)}.")
    if not xp.isdtype(A.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"{name} must hold real numbers; got {A.dtype}.")
    if ensure_all_finite is True and xp.isdtype(A.dtype, "real floating") and not bool(xp.all(xp.isfinite(A))):
        raise ValueError(f"{name} contains NaN or infinity; shape {tuple(A.shape)}. Remove or replace them.")
    return A.detach()


def refuse_empty(A: Samples, name: str) -> None:
    """Refuse what is no collection of at least one object."""
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
