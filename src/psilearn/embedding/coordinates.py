"""Finite coordinates of ψ on the span of given outputs, and the distinct outputs among repeated ones or chunks."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from psilearn._backend import Compute, array_namespace, current_compute, to_device, to_numpy, working_bytes
from psilearn._distributed import ChunkedRows, reduce_chunks
from psilearn._linalg import Array, NotPositiveSemidefiniteError, pivoted_cholesky, solve_transposed
from psilearn._utils import validation
from psilearn._utils.progress import stage
from psilearn._utils.samples import Index, Samples, collection_bytes, concat, distinct, n_samples, object_keys, take
from psilearn.embedding.embedding import Embedding
from psilearn.kernels import Kernel
from psilearn.kernels.gram_matrix import check_range
from psilearn.landmarks.features import LandmarkFeatures

KEY_BYTES = 250  # of each distinct output while they are searched for: a key, its place in a dictionary, an index


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


def known_outputs_of(Y: ChunkedRows, n_components: int, sample_size: int, random_state: Any) -> KnownOutputs:
    """Return the distinct outputs, or those of a random sample if all of them do not fit into ``working_memory``.

    A fitted model holds the distinct labeled outputs and their embeddings, the default candidates. They are gathered if
    they need at most ``working_memory``; the row of each labeled output among them is not kept.
    """
    limit = working_bytes()
    found = reduce_chunks(_distinct_of_chunk, _merge_distinct, Y, common=(limit, KEY_BYTES + 8 * n_components))
    rows = found.rows
    if not found.is_complete:
        rng = validation.as_random_state(random_state)
        rows = np.sort(rng.choice(len(Y), min(len(Y), sample_size), replace=False))
        warnings.warn(
            f"The distinct outputs y and their embeddings need more than working_memory ({limit:,} bytes): the default "
            f"candidates are those of {len(rows):,} random rows. Give candidates to predict, such as "
            f"model.candidate_set(Y, path), or raise sklearn.set_config(working_memory=...).",
            UserWarning,
            stacklevel=5,
        )
    outputs = Y[rows]
    if not found.is_complete:
        outputs = take(outputs, distinct(outputs).first)
    return KnownOutputs(outputs, np.empty(0, dtype=np.intp), n_samples(outputs), np.empty(0))


@dataclass(frozen=True)
class _DistinctRows:
    """The first rows of distinct objects among consecutive ones; without them if they need too much memory."""

    keys: tuple[Hashable, ...]
    rows: Index
    n: int  # objects seen
    n_bytes: int
    limit: int
    is_complete: bool = True

    def within_limit(self) -> _DistinctRows:
        """Return the same, without the objects if they exceed the limit."""
        if self.is_complete and self.n_bytes <= self.limit:
            return self
        return _DistinctRows((), np.empty(0, dtype=np.intp), self.n, 0, self.limit, False)


def _distinct_of_chunk(Y: Samples, limit: int, bytes_per_output: int) -> _DistinctRows:
    first = distinct(Y).first
    kept = take(Y, first)
    keys = tuple(_portable(key) for key in object_keys(kept))
    n_bytes = collection_bytes(kept) + len(first) * bytes_per_output
    return _DistinctRows(keys, first, n_samples(Y), n_bytes, limit).within_limit()


def _merge_distinct(parts: Sequence[_DistinctRows]) -> _DistinctRows:
    """Return the distinct objects of consecutive parts; the first of equal ones stays."""
    limit = parts[0].limit
    first: dict[Hashable, int] = {}
    start, n_bytes = 0, 0.0
    for part in parts:
        before = len(first)
        for key, row in zip(part.keys, part.rows.tolist(), strict=True):
            first.setdefault(key, start + row)
        n_bytes += part.n_bytes * (len(first) - before) / max(1, len(part.keys))
        start += part.n
    rows = np.fromiter(first.values(), np.intp, len(first))
    is_complete = all(part.is_complete for part in parts)
    return _DistinctRows(tuple(first), rows, start, int(n_bytes), limit, is_complete).within_limit()


def _portable(key: Hashable) -> Hashable:
    """Return a key that no object of another process has; objects without known contents are all distinct."""
    is_identity = isinstance(key, tuple) and len(key) == 2 and key[0] == "id"
    return ("id", uuid4().hex) if is_identity else key
