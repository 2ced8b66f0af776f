"""Finite coordinates of ψ on the span of given outputs, and the distinct outputs among repeated ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psilearn._backend import Compute, array_namespace, current_compute, to_device, to_numpy
from psilearn._linalg import Array, NotPositiveSemidefiniteError, pivoted_cholesky, solve_transposed
from psilearn._utils.progress import stage
from psilearn._utils.samples import Index, Samples, concat, distinct, n_samples, take
from psilearn.embedding.embedding import Embedding
from psilearn.kernels import Kernel
from psilearn.kernels.gram_matrix import check_range
from psilearn.landmarks.features import LandmarkFeatures


@dataclass(frozen=True)
class KnownOutputs:
    """The distinct outputs among the labeled and the unlabeled ones, labeled ones first.

    Structured outputs repeat: the output side works on the distinct ones, with indices and frequencies, and gives the
    same results as with all of them.

    Parameters
    ----------
    outputs : array, CSR matrix or sequence of d outputs
        The distinct outputs.
    labeled : ndarray of shape (n,)
        The index of each labeled output yᵢ among them.
    n_labeled : int
        The first ``n_labeled`` distinct outputs occur in Y.
    frequencies : ndarray of shape (d,)
        The share of each among the m unlabeled outputs, or among the labeled ones if m = 0.

    See Also
    --------
    OutputCoordinates : Coordinates of the distinct outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.embedding import KnownOutputs
    >>> KnownOutputs.of(np.array([[1], [2], [1]]), None).labeled
    array([0, 1, 0])
    """

    outputs: Samples
    labeled: Index
    n_labeled: int
    frequencies: Array

    @classmethod
    def of(cls, Y: Samples, unlabeled: Samples | None) -> KnownOutputs:
        """Find the distinct outputs.

        Parameters
        ----------
        Y : array, CSR matrix or sequence of n outputs
            The labeled outputs.
        unlabeled : array, CSR matrix or sequence of m outputs, or None
            The unlabeled outputs.

        Returns
        -------
        KnownOutputs
            The distinct outputs.

        See Also
        --------
        KnownOutputs : The fields of the result.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import KnownOutputs
        >>> KnownOutputs.of(np.array([[1], [2]]), np.array([[3], [3], [2]])).frequencies.round(2)
        array([0.  , 0.33, 0.67])
        """
        n = n_samples(Y)
        everything = Y if unlabeled is None else concat([Y, unlabeled])
        first, inverse = distinct(everything)
        counted = inverse if unlabeled is None else inverse[n:]
        return cls(
            outputs=take(everything, first),
            labeled=inverse[:n],
            n_labeled=int(inverse[:n].max()) + 1,
            frequencies=np.bincount(counted, minlength=len(first)) / len(counted),
        )


class OutputCoordinates:
    """Coordinates in which the inner product of ψ is the ordinary one: k(y, y') = Σ_l Ψ_l(y) Ψ_l(y').

    A pivoted Cholesky factorization k(D, D) = ΨΨᵀ of the given outputs D finds r landmarks S among them that span all
    others. On the span ψ(y) has the coordinates L⁻¹ k(S, y), where LLᵀ = k(S, S); outside of it they are those of its
    projection. Cost: d² kernel values, d²r flops, d² + dr numbers.

    Parameters
    ----------
    kernel : Kernel
        The output kernel, fitted.
    outputs : array, CSR matrix or sequence of d outputs
        The outputs D.
    compute : Compute, default=None
        The device. Coordinates are always float64. By default as set by :func:`psilearn.computing`.

    Attributes
    ----------
    values : array of shape (d, r)
        The coordinates Ψ of the given outputs, on the device.
    features : LandmarkFeatures
        The coordinates of any other output.

    See Also
    --------
    Embedding : A subspace of the coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.embedding import OutputCoordinates
    >>> from psilearn.kernels import Linear
    >>> psi = OutputCoordinates(Linear(), np.array([[3.0, 4.0], [6.0, 8.0]]))
    >>> psi.rank, psi.values @ psi.values.T
    (1, array([[ 25.,  50.],
           [ 50., 100.]]))
    """

    def __init__(self, kernel: Kernel, outputs: Samples, compute: Compute | None = None) -> None:
        requested = current_compute() if compute is None else compute
        K = output_gram(kernel, outputs, requested)
        try:
            with stage(f"coordinates of {len(K):,} outputs"):
                cholesky = pivoted_cholesky(K, overwrite=True)
        except NotPositiveSemidefiniteError as error:
            raise NotPositiveSemidefiniteError(
                f"output_kernel = {kernel!r} is not positive semi-definite on the outputs: {error}."
            ) from error
        del K  # d² numbers, before the triangle is copied
        self.values = cholesky.factor
        self.features = LandmarkFeatures(kernel, take(outputs, cholesky.pivots), cholesky.triangle)

    @property
    def landmarks(self) -> Samples:
        """The r outputs S that span all given ones."""
        return self.features.landmarks

    @property
    def rank(self) -> int:
        """The dimension r of the span of the given outputs."""
        return self.values.shape[1]

    def embedding(self, V: Array | None = None) -> Embedding:
        """Return the embedding y ↦ Vᵀ L⁻¹ k(S, y).

        Parameters
        ----------
        V : array of shape (r, p), default=None
            Orthonormal directions. None stands for the identity.

        Returns
        -------
        Embedding
            The embedding, with NumPy arrays.

        See Also
        --------
        Embedding : The returned object.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import OutputCoordinates
        >>> from psilearn.kernels import Linear
        >>> OutputCoordinates(Linear(), np.eye(2)).embedding().n_components
        2
        """
        return embedding_in(self.features, V)


def output_gram(kernel: Kernel, outputs: Samples, compute: Compute) -> Array:
    """Return k(D, D) in float64 on the device, with values in the range of the requested precision."""
    with stage(f"kernel of {n_samples(outputs):,} outputs"):
        remedy = "Set output_landmarks, or give fewer distinct outputs."
        K = kernel.gram(outputs, compute=compute.with_dtype(np.float64), remedy=remedy)
    largest = float(array_namespace(K).linalg.diagonal(K).max())
    check_range(largest, compute.dtype, kernel)  # embeddings will be computed in that precision
    return K


def embedding_in(features: LandmarkFeatures, V: Array | None) -> Embedding:
    """Return y ↦ Vᵀφ(y) for orthonormal directions V (r, p) in landmark coordinates; φ itself if V is None."""
    directions = np.eye(features.rank) if V is None else V
    if isinstance(directions, np.ndarray):
        triangle = features.triangle
        triangle = triangle if isinstance(triangle, np.ndarray) else to_numpy(triangle)
        return Embedding(features.kernel, features.landmarks, solve_transposed(triangle, directions))  # L⁻ᵀ V
    basis = solve_transposed(to_device(features.triangle, directions.device), directions)
    return Embedding(features.kernel, features.landmarks, to_numpy(basis))
