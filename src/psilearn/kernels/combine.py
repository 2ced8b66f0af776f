"""Sums of several kernels, with equal weights, given weights, or weights that align them with an output kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from psilearn._backend import Compute, to_numpy
from psilearn._distributed import ChunkedRows
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, check_collection
from psilearn.kernels.kernel import Kernel, Scaled


def uniform(kernels: Sequence[Kernel]) -> Kernel:
    """Return the mean of several kernels.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels, at least one.

    Returns
    -------
    Kernel
        The mean.

    See Also
    --------
    weighted : A sum with given weights.
    alignf : A sum with weights that are learned.

    Examples
    --------
    >>> from psilearn.kernels import Linear, Tanimoto, uniform
    >>> uniform([Linear(), Tanimoto()])([[1, 1]], [[1, 0]])
    array([[0.75]])
    """
    listed = check_kernels(kernels)
    return weighted(listed, np.full(len(listed), 1 / len(listed)))


def weighted(kernels: Sequence[Kernel], weights: Sequence[float] | Array) -> Kernel:
    """Return the weighted sum Σ wₗ kₗ; kernels of weight 0 are left out.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels, at least one.
    weights : sequence of float
        One weight per kernel, at least 0, and at least one of them greater than 0.

    Returns
    -------
    Kernel
        The sum.

    See Also
    --------
    uniform : The mean of several kernels.

    Examples
    --------
    >>> from psilearn.kernels import Linear, Tanimoto, weighted
    >>> weighted([Linear(), Tanimoto()], [2.0, 0.0])
    Scaled(kernel=Linear(), scale=2.0)
    """
    listed, numbers = (
        check_kernels(kernels),
        validation.check_array_of_numbers(weights, "weights", ndim=1, allow_nan=True),
    )
    if len(listed) != len(numbers):
        raise ValueError(
            f"One weight per kernel is required; got {len(listed)} in kernels and {len(numbers)} in weights."
        )
    if not (numbers.min() >= 0 and numbers.max() > 0):
        raise ValueError(f"weights must be ≥ 0, and one of them > 0; got {numbers.tolist()}.")
    return reduce(add, [Scaled(kernel, float(w)) for w, kernel in zip(numbers, listed, strict=True) if w > 0])


class Aligned(Kernel):
    """The kernel Σ wₗ kₗ with the weights that align it best with an output kernel (ALIGNF).

    ``fit(A, y)`` learns weights w ≥ 0 that maximize the centered alignment ⟨Σ wₗ Kₗ, K_y⟩ / |Σ wₗ Kₗ| on the examples,
    where K is centered in feature space, and that sum to one. It uses the outputs: fit it on training data only. Cost:
    each kernel matrix once, and l²n² flops for l kernels. Memory: l + 2 matrices of n² numbers.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels. Normalize them first if their scales differ: ``kernel.normalized()``.
    output_kernel : Kernel
        The kernel on the outputs.

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        The learned weights.

    See Also
    --------
    alignf : The fitted sum as a plain kernel.
    uniform : The mean of several kernels.

    References
    ----------
    Cortes, Mohri and Rostamizadeh, *Algorithms for learning kernels based on centered alignment*, JMLR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Aligned, Gaussian, Linear
    >>> X = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    >>> Aligned([Linear(), Gaussian(50.0)], Linear()).fit(X, X[:, :1]).weights_
    array([1., 0.])
    """

    _returns_new_block = True

    def __init__(self, kernels: Sequence[Kernel], output_kernel: Kernel) -> None:
        self.kernels = kernels
        self.output_kernel = output_kernel

    @property
    def supports_torch(self) -> bool:  # type: ignore[override]
        """Whether all kernels support torch."""
        return all(kernel.supports_torch for kernel in self.kernels)

    def fit(self, A: Samples, y: Samples | None = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The training inputs.
        y : array, CSR matrix or sequence of n outputs, default=None
            The training outputs. They are required.

        Returns
        -------
        Aligned
            The kernel itself.

        See Also
        --------
        alignf : The fitted sum as a plain kernel.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Aligned, Linear
        >>> X = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0]])
        >>> Aligned([Linear()], Linear()).fit(X, X).weights_
        array([1.])
        """
        if y is None:
            raise ValueError("Aligned learns its weights from inputs and outputs: call fit(A, y).")
        check_collection(A, "A")
        if isinstance(A, ChunkedRows):
            raise ValueError(
                "Aligned learns its weights from the Gram matrix of all inputs, which a Dask collection is too large "
                "for: learn them from a sample, kernel = alignf(kernels, X_sample, y_sample, output_kernel)."
            )
        self.weights_ = _aligned_weights(self.kernels, A, y, self.output_kernel, name="A")
        return self

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        return self._sum()(A, None if B is A else B, compute=compute)

    def _diag(self, A: Any) -> Any:
        return self._sum().diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self._sum().paired(A, B)

    def _prepare(self, A: Samples, name: str, compute: Compute) -> Any:
        return self.check(A, name)

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        for kernel in check_kernels(self.kernels):
            A = kernel.check(A, name, allow_1d=allow_1d)
        return A

    def _sum(self) -> Kernel:
        if not hasattr(self, "weights_"):
            raise ValueError("Aligned is not fitted: call fit(A, y) with training data first.")
        return weighted(self.kernels, self.weights_)


def alignf(kernels: Sequence[Kernel], X: Samples, y: Samples, output_kernel: Kernel) -> Kernel:
    """Return the sum of kernels with the weights that align it best with an output kernel (ALIGNF).

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels. Normalize them first if their scales differ: ``kernel.normalized()``.
    X : array, CSR matrix or sequence of n objects
        The training inputs.
    y : array, CSR matrix or sequence of n outputs
        The training outputs.
    output_kernel : Kernel
        The kernel on the outputs.

    Returns
    -------
    Kernel
        The weighted sum. Kernels of weight 0 are left out.

    See Also
    --------
    Aligned : The same as a kernel that learns its weights in ``fit``.

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
    return weighted(kernels, _aligned_weights(kernels, X, y, output_kernel))


def _aligned_weights(
    kernels: Sequence[Kernel], X: Samples, y: Samples, output_kernel: Kernel, name: str = "X"
) -> Array:
    kernels = check_kernels(kernels)
    if not isinstance(output_kernel, Kernel):
        raise ValueError(f"output_kernel must be an output kernel of psilearn.kernels; got {output_kernel!r:.80}.")
    n_inputs, n_outputs = check_collection(X, name), check_collection(y, "y")
    if n_inputs != n_outputs:
        raise ValueError(f"{name} and y must have one row per example: {name} has {n_inputs}, y has {n_outputs}.")
    remedy = "Align on fewer examples."
    outputs = clone(output_kernel).fit(y)
    target = centered(to_numpy(outputs.gram(outputs.check(y, "y"), remedy=remedy)))
    matrices = [centered(to_numpy(kernel.fit(X, y).gram(kernel.check(X, name), remedy=remedy))) for kernel in kernels]
    return alignf_weights(matrices, target)


def alignf_weights(matrices: Sequence[Array], target: Array) -> Array:
    """Return ALIGNF's weights, which sum to one, of centered kernel matrices (n, n) against a centered target (n, n).

    With M = ⟨Kₗ, Kₘ⟩ and a = ⟨Kₗ, K_y⟩ they are proportional to argmin_{v≥0} vᵀMv − 2vᵀa. A kernel that is constant
    on the examples has the weight 0.
    """
    lengths = np.array([np.linalg.norm(K) for K in matrices])
    varies = lengths > 0
    if not varies.any():
        raise ValueError("All kernels are constant on the examples: none can be aligned with the output kernel.")
    weights = np.zeros(len(matrices))
    weights[varies] = _weights_of_varying(
        [K for K, used in zip(matrices, varies, strict=True) if used], lengths[varies], target
    )
    return weights


def _weights_of_varying(matrices: Sequence[Array], lengths: Array, target: Array) -> Array:
    """Return ALIGNF's weights of centered kernel matrices with positive Frobenius norms."""
    products = np.array([[np.vdot(K, L) for L in matrices] for K in matrices]) / np.outer(lengths, lengths)
    alignments = np.array([np.vdot(K, target) for K in matrices]) / lengths
    if alignments.max() <= 0:
        raise ValueError("No kernel is aligned with the output kernel: all alignments are ≤ 0.")
    values, S = np.linalg.eigh(products)
    root = S * np.sqrt(np.maximum(values, 0))  # M = RRᵀ; R has the range of M, in which a lies
    inverse = np.where(values > 1e-12 * values[-1], 1 / np.sqrt(np.maximum(values, 1e-300)), 0.0)
    v = nnls(root.T, inverse * (S.T @ alignments))[0] / lengths
    return v / v.sum()


def centered_alignment(K: Array, L: Array) -> float:
    """Compute the correlation ⟨K, L⟩ / |K||L| of two kernel matrices that are centered in feature space.

    Parameters
    ----------
    K : array of shape (n, n)
        A kernel matrix.
    L : array of shape (n, n)
        Another kernel matrix on the same objects.

    Returns
    -------
    float
        The alignment, at most 1.

    See Also
    --------
    alignf : Weights that maximize the alignment.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import centered_alignment
    >>> round(centered_alignment(np.eye(3), 2 * np.eye(3)), 12)
    1.0
    """
    K, L = (validation.check_array_of_numbers(matrix, name, ndim=2) for matrix, name in ((K, "K"), (L, "L")))
    if K.shape != L.shape or len(K) != K.shape[1]:
        raise ValueError(f"K and L must be square matrices of the same size; got {K.shape} and {L.shape}.")
    K, L = (centered(matrix / max(np.abs(matrix).max(), 1e-300)) for matrix in (K, L))  # a scale has no influence
    if not (K.any() and L.any()):
        raise ValueError(f"{'L' if K.any() else 'K'} is zero after centering: it has no alignment.")
    return float(np.vdot(K, L) / (np.linalg.norm(K) * np.linalg.norm(L)))


def check_kernels(kernels: Any, name: str = "kernels") -> list[Kernel]:
    """Return kernels as a list of at least one; raise an error about ``name`` for anything else."""
    listed = list(kernels) if isinstance(kernels, list | tuple) else []
    if not listed or not all(isinstance(kernel, Kernel) for kernel in listed):
        raise ValueError(f"{name} must be a list of at least one kernel of psilearn.kernels; got {kernels!r:.80}.")
    return listed


def centered(K: Array) -> Array:
    """Subtract the mean in feature space from a kernel matrix (n, n), in place."""
    rows = K.mean(axis=0)
    K -= rows
    K -= rows[:, None] - rows.mean()
    return K
