"""Kernels made of kernels: what ``+``, ``*`` and ``normalized()`` return."""

import numpy as np

from psilearn import checks
from psilearn.kernels.base import Array, Kernel, new_block
from psilearn.kernels.products import in_strips
from psilearn.samples import Samples


class _Both(Kernel):
    """A kernel made of two kernels on the same objects."""

    _makes_blocks = True

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand what both kernels demand."""
        return self.right.check(self.left.check(A, name, allow_1d=allow_1d), name, allow_1d=allow_1d)

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse what either kernel refuses to compare."""
        self.left.check_alike(A, name, B, other)
        self.right.check_alike(A, name, B, other)


class Sum(_Both):
    """k(a, b) = left(a, b) + right(a, b); its feature space is the direct sum of theirs.

    Examples
    --------
    >>> from psilearn.kernels import Linear, Tanimoto
    >>> 0.5 * Linear() + Tanimoto()
    Sum(left=Scaled(kernel=Linear(), scale=0.5), right=Tanimoto())
    """

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the sum of both blocks."""
        block = new_block(self.left, A, B)
        block += self.right(A, B)
        return block

    def diag(self, A: Samples) -> Array:
        """Return the sum of both diagonals."""
        return self.left.diag(A) + self.right.diag(A)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the sum of both paired values."""
        return self.left.paired(A, B) + self.right.paired(A, B)


class Product(_Both):
    """k(a, b) = left(a, b) · right(a, b); its feature space is the tensor product of theirs (Schur's theorem).

    Examples
    --------
    >>> from psilearn.kernels import Dice, Tanimoto
    >>> (Dice() * Tanimoto())([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.1667]])
    """

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the product of both blocks."""
        block = new_block(self.left, A, B)
        block *= self.right(A, B)
        return block

    def diag(self, A: Samples) -> Array:
        """Return the product of both diagonals."""
        return self.left.diag(A) * self.right.diag(A)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the product of both paired values."""
        return self.left.paired(A, B) * self.right.paired(A, B)


class Scaled(Kernel):
    """k(a, b) = scale · kernel(a, b), scale > 0.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> (3 * Linear())([[2.0]])
    array([[12.]])
    """

    _makes_blocks = True

    def __init__(self, kernel: Kernel, scale: float) -> None:
        self.kernel = kernel
        self.scale = scale

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the scaled block."""
        scale = checks.positive(self.scale, "scale")
        block = new_block(self.kernel, A, B)
        block *= scale
        return block

    def diag(self, A: Samples) -> Array:
        """Return the scaled diagonal."""
        return checks.positive(self.scale, "scale") * self.kernel.diag(A)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the scaled paired values."""
        return checks.positive(self.scale, "scale") * self.kernel.paired(A, B)

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand what the kernel demands."""
        return self.kernel.check(A, name, allow_1d=allow_1d)

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse what the kernel refuses to compare."""
        self.kernel.check_alike(A, name, B, other)


class Normalized(Kernel):
    """k(a, b) = kernel(a, b) / √(kernel(a, a) · kernel(b, b)): the cosine in the feature space.

    An object of length zero stays at zero: its similarity to everything, itself included, is 0.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0]], [[1.0, 0.0]])
    array([[0.6]])
    """

    _makes_blocks = True

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of cosines."""
        scales = self._inverse_lengths(A)
        block = new_block(self.kernel, A, B)
        column, row = scales.astype(block.dtype)[:, None], scales if B is None else self._inverse_lengths(B)
        row = row.astype(block.dtype)

        def change(strip: Array, part: slice) -> None:
            strip *= column[part]
            strip *= row

        return in_strips(block, change)

    def diag(self, A: Samples) -> Array:
        """Return 1, or 0 for an object of length zero."""
        return (self.kernel.diag(A) > 0).astype(np.float64)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the cosine of each pair."""
        return self.kernel.paired(A, B) * self._inverse_lengths(A) * self._inverse_lengths(B)

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand what the kernel demands."""
        return self.kernel.check(A, name, allow_1d=allow_1d)

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse what the kernel refuses to compare."""
        self.kernel.check_alike(A, name, B, other)

    def _inverse_lengths(self, A: Samples) -> Array:
        diagonal = self.kernel.diag(A)
        return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0.0)
