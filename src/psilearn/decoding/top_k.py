"""The k nearest candidates of each example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from psilearn._backend import is_tensor, to_device, to_numpy
from psilearn._distributed import as_chunks, as_rows, is_dask, lazy_rows
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, take


class CandidateOutputs(Protocol):
    """What a result needs of the candidates that its indices refer to."""

    def outputs_of(self, example: int) -> Samples:
        """Return the candidates of one example."""

    def take(self, indices: Index) -> Samples:
        """Return one candidate per example as one collection."""


@dataclass(frozen=True)
class TopK:
    """The k nearest candidates of each example, nearest first.

    k is at most the size of the (largest) candidate set. If an example has fewer candidates, its row ends with index −1
    and distance ∞.

    Parameters
    ----------
    indices : array of shape (q, k)
        The index of each nearest candidate among the candidates of its example. A tensor if the inputs were tensors.
    distances : array of shape (q, k)
        The squared distances |G*z(x) − ψ(y)|² in the output space. Tied candidates have the same distance.
    candidates : Candidates
        The candidates that the indices refer to.
    n_requested : int, default=None
        The number of candidates that was asked for, at least k. None stands for k.

    See Also
    --------
    Candidates.nearest : Find the nearest candidates of predicted embeddings.
    psilearn.OEL.predict_topk : Find the nearest candidates of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import SharedCandidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> candidates = SharedCandidates(np.array([[0.0], [1.0], [3.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> top = candidates.nearest(np.array([[0.9]]), k=2)
    >>> top.indices
    array([[1, 0]])
    >>> top.nearest
    array([[1.]])
    """

    indices: Index
    distances: Array
    candidates: CandidateOutputs
    n_requested: int | None = None

    def like_input(self, X: Samples) -> TopK:
        """Return the same result with tensors on the device of the inputs, if these are tensors.

        Parameters
        ----------
        X : array, CSR matrix or sequence
            The inputs.

        Returns
        -------
        TopK
            The result in the form of the inputs.

        See Also
        --------
        psilearn.OEL.predict_topk : Find the nearest candidates of inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates, TopK
        >>> top = TopK(np.array([[1, 0]]), np.array([[0.1, 0.5]]), SharedCandidates(["a", "b"]))
        >>> top.like_input(np.zeros((1, 3))) is top  # an array, not a tensor
        True
        """
        if isinstance(X, np.ndarray) or not is_tensor(X):
            return self
        indices, distances = to_device(self.indices, X.device), to_device(self.distances, X.device)
        return TopK(indices, distances, self.candidates, self.n_requested)

    @property
    def outputs(self) -> list[Samples]:
        """The nearest candidates of each example, in the form in which candidates were given."""
        rows = enumerate(to_numpy(self.indices))
        return [take(self.candidates.outputs_of(i), row[row >= 0]) for i, row in rows]

    @property
    def nearest(self) -> Samples:
        """The nearest candidate of each example, as one collection."""
        if not is_dask(self.indices):
            return self.candidates.take(self.indices[:, 0])
        like = as_rows(self.candidates.take(np.zeros(1, dtype=np.intp)))
        return lazy_rows(_take_rows, as_chunks(self.indices[:, 0], "indices"), (like,), (self.candidates,))[0]

    @property
    def margins(self) -> Array:
        """How much farther the second candidate is than the first, of shape (q,); ∞ if there is no second one."""
        k = self.indices.shape[1]
        if (self.n_requested or k) < 2:
            raise ValueError("A margin needs two candidates: ask for k ≥ 2.")
        return (self.distances[:, 1] if k > 1 else np.inf) - self.distances[:, 0]


def _take_rows(indices: Index, candidates: CandidateOutputs) -> tuple[Samples]:
    return (as_rows(candidates.take(indices)),)
