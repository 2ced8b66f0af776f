"""The class that kernels derive from, and sums, products, multiples and normalizations of kernels."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from psilearn._backend import Compute
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, take
from psilearn.kernels.base_kernel import BaseKernel
from psilearn.kernels.gram_matrix import check_range
from psilearn.kernels.inner_products import in_strips, match_block


class Kernel(BaseKernel):
    """A positive semi-definite similarity k(a, b) = ⟨ψ(a), ψ(b)⟩ of two objects.

    A subclass stores its parameters in ``__init__`` and implements ``_block`` and ``_diag``:

    - ``_block(A, B, compute)`` returns k(A, B), shape (len(A), len(B)). A and B are validated collections, and ``B is
      A`` for a symmetric block. ``compute.dtype`` is the requested precision; any other one is converted.
    - ``_diag(A)`` returns k(a, a), shape (len(A),).

    It may also override ``_paired(A, B)``, which returns k(aᵢ, bᵢ); ``_check(A, name, allow_1d)``, which validates a
    collection; ``_check_same_kind(A, name, B, other)``, which compares two of them; and ``fit``. A kernel that computes
    with torch tensors sets ``supports_torch = True``; any other one receives NumPy arrays, and its blocks are moved to
    the device.

    Attributes
    ----------
    supports_torch : bool
        Whether rows may be torch tensors, in which case blocks are tensors too.

    See Also
    --------
    Pairwise : A kernel from a Python function of two objects.
    Precomputed : A kernel from a matrix.

    Examples
    --------
    A kernel on strings, by the letters that they share:

    >>> import numpy as np
    >>> class Letters(Kernel):
    ...     def _block(self, A, B, compute):
    ...         return np.array([[len(set(a) & set(b)) for b in B] for a in A])
    ...     def _diag(self, A):
    ...         return np.array([len(set(a)) for a in A])
    >>> Letters()(["tea", "cat"], ["eat", "dog"])
    array([[3., 0.],
           [2., 0.]])
    """

    def normalized(self) -> Kernel:
        """Return the cosine k(a, b) / √(k(a, a) k(b, b)) as a kernel.

        Returns
        -------
        Normalized
            The kernel of cosines.

        See Also
        --------
        Normalized : The class of the returned kernel.

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().normalized()([[3.0, 4.0]], [[1.0, 0.0]])
        array([[0.6]])
        """
        return Normalized(self)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the class and the parameters that differ from their defaults; scikit-learn prints whole matrices."""
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name] and not (isinstance(value, int | float | str) and value == defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, int | float) else NotImplemented

    __rmul__ = __mul__


class _Composite(Kernel):
    """A kernel that is computed from the blocks of other kernels, which prepare the objects themselves."""

    _returns_new_block = True

    @property
    def supports_torch(self) -> bool:  # type: ignore[override]
        """Whether all parts support torch."""
        return all(part.supports_torch for part in self._parts())

    def _parts(self) -> tuple[Kernel, ...]:
        named = {name: getattr(self, name) for name in ("left", "right", "kernel") if hasattr(self, name)}
        for name, part in named.items():
            if not isinstance(part, Kernel):
                raise TypeError(
                    f"{name} of {type(self).__name__} must be a kernel of psilearn.kernels; got {part!r:.80}."
                )
        return tuple(named.values())

    def _prepare(self, A: Samples, name: str, compute: Compute) -> Any:
        return self.check(A, name)

    def _underflows(self, A: Samples) -> bool:
        return any(part._underflows(A) for part in self._parts())

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        for part in self._parts():
            A = part.check(A, name, allow_1d=allow_1d)
        return A

    def _check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        for part in self._parts():
            part.check_same_kind(A, name, B, other)


def _part_block(part: Kernel, A: Any, B: Any, compute: Compute) -> Any:
    return part(A, None if B is A else B, compute=compute)


class Sum(_Composite):
    """The kernel k(a, b) = left(a, b) + right(a, b), whose feature space is the direct sum of theirs.

    Parameters
    ----------
    left : Kernel
        The first term.
    right : Kernel
        The second term.

    See Also
    --------
    uniform : The mean of several kernels.
    weighted : A weighted sum of several kernels.

    Examples
    --------
    >>> from psilearn.kernels import Linear, Tanimoto
    >>> 0.5 * Linear() + Tanimoto()
    Sum(left=Scaled(kernel=Linear(), scale=0.5), right=Tanimoto())
    """

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.left, A, B, compute)
        block += _part_block(self.right, A, B, compute)
        return block

    def _diag(self, A: Any) -> Any:
        return self.left.diag(A) + self.right.diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self.left.paired(A, B) + self.right.paired(A, B)


class Product(_Composite):
    """The kernel k(a, b) = left(a, b) · right(a, b), whose feature space is the tensor product of theirs.

    Parameters
    ----------
    left : Kernel
        The first factor.
    right : Kernel
        The second factor.

    See Also
    --------
    Sum : The sum of two kernels.

    Examples
    --------
    >>> from psilearn.kernels import Dice, Tanimoto
    >>> (Dice() * Tanimoto())([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.1667]])
    """

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.left, A, B, compute)
        block *= _part_block(self.right, A, B, compute)
        return block

    def _diag(self, A: Any) -> Any:
        return self.left.diag(A) * self.right.diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self.left.paired(A, B) * self.right.paired(A, B)


class Scaled(_Composite):
    """The kernel k(a, b) = scale · kernel(a, b) with scale > 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel that is multiplied.
    scale : float
        The factor, greater than 0.

    See Also
    --------
    Sum : The sum of two kernels.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> (3 * Linear())([[2.0]])
    array([[12.]])
    """

    def __init__(self, kernel: Kernel, scale: float) -> None:
        self.kernel = kernel
        self.scale = scale

    @property
    def _has_pre_image(self) -> bool:  # type: ignore[override]
        return self.kernel._has_pre_image

    def _pre_image(self, A: Any, weights: Array) -> Array:
        return self.kernel._pre_image(A, weights)  # all features have the same factor

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.kernel, A, B, compute)
        block *= validation.check_positive(self.scale, "scale")
        return block

    def _diag(self, A: Any) -> Any:
        return validation.check_positive(self.scale, "scale") * self.kernel.diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return validation.check_positive(self.scale, "scale") * self.kernel.paired(A, B)


class Normalized(_Composite):
    """The kernel k(a, b) = kernel(a, b) / √(kernel(a, a) · kernel(b, b)): the cosine in the feature space.

    An object of length zero stays at zero: its similarity to every object, itself included, is 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel that is normalized.

    See Also
    --------
    Kernel.normalized : Returns this kernel.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0]], [[1.0, 0.0]])
    array([[0.6]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.kernel, A, B, compute)
        column = match_block(self._inverse_lengths(A), block)[:, None]
        row = column[:, 0] if B is A else match_block(self._inverse_lengths(B), block)

        def normalize(strip: Array, part: slice) -> None:
            strip *= column[part]
            strip *= row

        return in_strips(block, normalize)

    def _diag(self, A: Any) -> Any:
        return (self._squared_lengths(A) > 0).astype(np.float64)

    def _paired(self, A: Any, B: Any) -> Any:
        return self.kernel.paired(A, B) * self._inverse_lengths(A) * self._inverse_lengths(B)

    def _inverse_lengths(self, A: Any) -> Array:
        diagonal = self._squared_lengths(A)
        return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0.0)

    def _squared_lengths(self, A: Any) -> Array:
        """Return the kernel's k(a, a); raise if float64 is too coarse for one of them: its cosines would be wrong."""
        diagonal = self.kernel.diag(A)
        is_zero = diagonal == 0
        if is_zero.any():
            self.kernel._check_lengths(take(self.kernel.check(A), np.flatnonzero(is_zero)), diagonal[is_zero])
        check_range(float(diagonal[~is_zero].min(initial=1.0)), diagonal.dtype, self.kernel)
        return diagonal
