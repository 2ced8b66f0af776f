"""Kernels made of kernels: what ``+``, ``*`` and ``normalized()`` return, and sums with equal or aligned weights."""

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
from scipy.optimize import nnls

from psilearn._backend import asarray, is_tensor, to_host
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels.blocks import gram, new_block, suited
from psilearn.kernels.inner_products import in_strips, like
from psilearn.kernels.kernel import Array, Kernel


class _Both(Kernel):
    """A kernel made of two kernels on the same objects."""

    _makes_blocks = True

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    @property
    def _on_device(self) -> bool:  # type: ignore[override]
        return self.left._on_device and self.right._on_device

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand what both kernels demand."""
        return self.right.check(self.left.check(A, name, allow_1d=allow_1d), name, allow_1d=allow_1d)

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse what either kernel refuses to compare."""
        self.left.check_alike(A, name, B, other)
        self.right.check_alike(A, name, B, other)


def _matching(kernel: Kernel, A: Samples, B: Samples | None, block: Array) -> Array:
    """Return k(A, B) where another block is."""
    K = kernel(suited(kernel, A), suited(kernel, B))
    return like(K, block) if is_tensor(block) else asarray(K)


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
        block += _matching(self.right, A, B, block)
        return block

    def diag(self, A: Samples) -> Array:
        """Return the sum of both diagonals."""
        return to_host(self.left.diag(A)) + to_host(self.right.diag(A))

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
        block *= _matching(self.right, A, B, block)
        return block

    def diag(self, A: Samples) -> Array:
        """Return the product of both diagonals."""
        return to_host(self.left.diag(A)) * to_host(self.right.diag(A))

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
        scale = validation.check_positive(self.scale, "scale")
        block = new_block(self.kernel, A, B)
        block *= scale
        return block

    def diag(self, A: Samples) -> Array:
        """Return the scaled diagonal."""
        return validation.check_positive(self.scale, "scale") * to_host(self.kernel.diag(A))

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the scaled paired values."""
        return validation.check_positive(self.scale, "scale") * self.kernel.paired(A, B)

    @property
    def _on_device(self) -> bool:  # type: ignore[override]
        return self.kernel._on_device

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
        column, row = like(scales, block)[:, None], like(scales if B is None else self._inverse_lengths(B), block)

        def change(strip: Array, part: slice) -> None:
            strip *= column[part]
            strip *= row

        return in_strips(block, change)

    def diag(self, A: Samples) -> Array:
        """Return 1, or 0 for an object of length zero."""
        return (to_host(self.kernel.diag(A)) > 0).astype(np.float64)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the cosine of each pair."""
        return self.kernel.paired(A, B) * self._inverse_lengths(A) * self._inverse_lengths(B)

    @property
    def _on_device(self) -> bool:  # type: ignore[override]
        return self.kernel._on_device

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand what the kernel demands."""
        return self.kernel.check(A, name, allow_1d=allow_1d)

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse what the kernel refuses to compare."""
        self.kernel.check_alike(A, name, B, other)

    def _inverse_lengths(self, A: Samples) -> Array:
        diagonal = to_host(self.kernel.diag(A))
        return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0.0)


def uniform(kernels: Sequence[Kernel]) -> Kernel:
    """Return the mean of several kernels.

    Examples
    --------
    >>> from psilearn.kernels import Linear, Tanimoto, uniform
    >>> uniform([Linear(), Tanimoto()])([[1, 1]], [[1, 0]])
    array([[0.75]])
    """
    return weighted(kernels, np.full(len(kernels), 1 / max(1, len(kernels))))


def weighted(kernels: Sequence[Kernel], weights: Sequence[float] | Array) -> Kernel:
    """Return Σ wₗ kₗ; kernels of weight 0 are left out."""
    if not len(kernels) or len(kernels) != len(weights):
        raise ValueError(f"One weight a kernel is needed, and one kernel at least; got {len(kernels)} kernels.")
    if not np.isfinite(weights).all() or min(weights) < 0 or max(weights) <= 0:
        raise ValueError(f"Weights must be ≥ 0, and one of them > 0; got {list(map(float, weights))}.")
    return reduce(add, [Scaled(kernel, float(w)) for w, kernel in zip(weights, kernels, strict=True) if w > 0])


def alignf(kernels: Sequence[Kernel], X: Samples, y: Samples, output_kernel: Kernel) -> Kernel:
    """Return Σ wₗ kₗ with the weights that align it best with an output kernel (ALIGNF).

    w ≥ 0 maximises the centred alignment ⟨Σ wₗ Kₗ, K_y⟩ / |Σ wₗ Kₗ| on the examples, where K is centred in feature
    space, and sums to one. It looks at the outputs: give it training data only. Cost: each kernel matrix once, and
    l²n² flops; memory: l + 2 matrices of n² numbers.

    Parameters
    ----------
    kernels : list of l kernels
        normalise them first where their scales differ: ``kernel.normalized()``.
    X, y : n training examples
    output_kernel : Kernel

    References
    ----------
    Cortes, Mohri and Rostamizadeh, *Algorithms for learning kernels based on centered alignment*, JMLR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Gaussian, Linear, alignf
    >>> X = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    >>> alignf([Linear(), Gaussian(50.0)], X, X[:, :1], Linear())
    Scaled(kernel=Linear(), scale=1.0)
    """
    if not isinstance(output_kernel, Kernel) or not len(kernels):
        raise ValueError("alignf takes a list of kernels, at least one, and an output kernel of psilearn.kernels.")
    if n_samples(X) != n_samples(y):
        raise ValueError(f"X and y must have one row an example: X has {n_samples(X)}, y has {n_samples(y)}.")
    remedy = "Align on fewer examples."
    target = centred(gram(output_kernel.fit(y), output_kernel.check(y, "y"), "output_kernel", remedy))
    matrices = [centred(gram(kernel.fit(X), kernel.check(X, "X"), "kernels", remedy)) for kernel in kernels]
    return weighted(kernels, alignf_weights(matrices, target))


def alignf_weights(matrices: Sequence[Array], target: Array) -> Array:
    """Return ALIGNF's weights, which sum to one, of centred kernel matrices (n, n) against a centred target (n, n).

    With M = ⟨Kₗ, Kₘ⟩ and a = ⟨Kₗ, K_y⟩ they are proportional to argmin_{v≥0} vᵀMv − 2vᵀa.
    """
    lengths = np.array([np.linalg.norm(K) for K in matrices])
    if not (lengths > 0).all():
        raise ValueError(f"Kernel {int(np.argmin(lengths))} is constant on the examples: it cannot be aligned.")
    products = np.array([[np.vdot(K, L) for L in matrices] for K in matrices]) / np.outer(lengths, lengths)
    alignments = np.array([np.vdot(K, target) for K in matrices]) / lengths
    if alignments.max() <= 0:
        raise ValueError("No kernel is aligned with the output kernel: all alignments are ≤ 0.")
    values, S = np.linalg.eigh(products)
    root = S * np.sqrt(np.maximum(values, 0))  # M = RRᵀ; R has the range of M, in which a lies
    inverse = np.where(values > 1e-12 * values[-1], 1 / np.sqrt(np.maximum(values, 1e-300)), 0.0)
    v = nnls(root.T, inverse * (S.T @ alignments))[0] / lengths
    return v / v.sum()


def centred_alignment(K: Array, L: Array) -> float:
    """Return ⟨K, L⟩ / |K||L| of kernel matrices (n, n), centred in feature space: their correlation."""
    K, L = centred(np.array(K, dtype=np.float64)), centred(np.array(L, dtype=np.float64))
    return float(np.vdot(K, L) / (np.linalg.norm(K) * np.linalg.norm(L)))


def centred(K: Array) -> Array:
    """Subtract the mean in feature space, in place."""
    rows = K.mean(axis=0)
    K -= rows
    K -= rows[:, None] - rows.mean()
    return K
