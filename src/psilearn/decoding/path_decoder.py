"""Decoding of the predictions of many models that differ in λ, c and p only: what searches need of candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from psilearn._backend import Compute
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples
from psilearn.decoding.top_k import CandidateOutputs
from psilearn.metrics import TruthPositions


class PathCandidates(CandidateOutputs, Protocol):
    """What a decoder needs of the candidates that its indices refer to."""

    def restrict(self, examples: slice | Index) -> CandidateOutputs:
        """Return the candidates of some examples."""


@dataclass(frozen=True)
class DecodedStep:
    """The results of one step: indices of candidates, and positions of the true outputs if they were asked for."""

    nearest: Index  # (n_sizes, q)
    nearer: Array | None = None  # (n_sizes, q)
    tied: Array | None = None  # (n_sizes, q)

    def positions(self) -> TruthPositions:
        """Return the positions of the true outputs for all sizes, (n_sizes, q) each."""
        if self.nearer is None or self.tied is None:
            raise ValueError("Positions need the true outputs: pass truth to path_decoder.")
        return TruthPositions(self.nearer, self.tied)


class PathDecoder(ABC):
    """Decodes held-out examples with every setting of λ, c and p on one training split.

    All settings share the coordinates Ψ(y) ∈ Rʳ of the outputs. A *step* is one (λ, c), with directions V (r, p_max)
    and predictions Z (q, p_max) along them; a *size* is one p: the model keeps the first p columns of both. The work
    that all steps share, such as kernel values of candidates, is done once.

    Made by :meth:`Candidates.path_decoder`. A subclass implements ``_add(V, Z, sizes)`` and, if it postpones work,
    ``_finish()``; both append one :class:`DecodedStep` per step to ``_steps``.

    Parameters
    ----------
    candidates : Candidates
        The candidates of the q held-out examples, which ``nearest`` refers to.
    sizes : sequence of int or None
        The numbers p of components, ascending. None keeps all columns of Z.
    compute : Compute
        Precision and device.
    truth : ndarray of shape (q,), default=None
        The index of each true output among the candidates of its example; −1 if it is not among them. None counts no
        positions.

    See Also
    --------
    Candidates.path_decoder : Make the decoder of given candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.decoding import SharedCandidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> Y = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    >>> coordinates = Embedding(Linear(), np.eye(2), np.eye(2))
    >>> decoder = SharedCandidates(Y).path_decoder(coordinates, [1, 2], NUMPY, truth=np.array([2]))
    >>> decoder.add(None, np.array([[2.0, 1.5]]))
    >>> decoder.nearest.shape  # steps, sizes, examples
    (1, 2, 1)
    >>> [decoder.outputs(0, j)[0].tolist() for j in range(2)]
    [[2.0, 0.0], [2.0, 2.0]]
    >>> decoder.positions(0, 0).nearer
    array([1.])
    """

    def __init__(
        self, candidates: PathCandidates, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> None:
        self.candidates = candidates
        self.sizes = sizes
        self.compute = compute
        self.truth = truth
        self._steps: list[DecodedStep] = []

    def add(self, V: Any, Z: Any) -> None:
        """Add a step: the predictions of the held-out examples for one λ and c.

        Parameters
        ----------
        V : array of shape (r, p_max) or None
            Orthonormal directions in the coordinates of the outputs. None stands for the coordinates themselves.
        Z : array of shape (q, p_max)
            The predicted embeddings of the held-out examples along these directions. Sizes beyond p_max are reduced to
            it.

        See Also
        --------
        outputs : Return the predictions of a step.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> coordinates = Embedding(Linear(), np.eye(2), np.eye(2))
        >>> decoder = SharedCandidates(np.array([[0.0, 0.0], [2.0, 0.0]])).path_decoder(coordinates, [1, 2], NUMPY)
        >>> decoder.add(np.eye(2), np.array([[1.9, 0.0]]))
        >>> decoder.nearest.tolist()
        [[[1], [1]]]
        """
        largest = Z.shape[1]
        sizes = [largest] if self.sizes is None else [min(p, largest) for p in self.sizes]
        self._add(None if V is None else self.compute.asarray(V), self.compute.asarray(Z), sizes)

    @property
    def nearest(self) -> Index:
        """The index of the nearest candidate of each example, of shape (n_steps, n_sizes, q); ties to the lowest."""
        self._finish()
        return np.stack([step.nearest for step in self._steps])

    @property
    def shares_candidates(self) -> bool:
        """Whether an index stands for the same output in all examples."""
        return True

    @property
    def n_candidates(self) -> int | None:
        """The number of candidates if all examples share one list of them, else None."""
        return None

    def take(self, examples: Index, indices: Index) -> Samples:
        """Return candidates by the numbers of their examples and their indices, as one collection.

        Parameters
        ----------
        examples : ndarray of shape (m,)
            The numbers of held-out examples, with repetitions.
        indices : ndarray of shape (m,)
            The index of one candidate of each of these examples, as in ``nearest``.

        Returns
        -------
        array, CSR matrix or sequence of m outputs
            The candidates, in the form in which they were given.

        See Also
        --------
        outputs : Return the nearest candidates of one setting.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> coordinates = Embedding(Linear(), np.eye(2), np.eye(2))
        >>> decoder = SharedCandidates(np.array([[0.0, 0.0], [2.0, 0.0]])).path_decoder(coordinates, [1, 2], NUMPY)
        >>> decoder.take(np.array([0, 0]), np.array([1, 0]))
        array([[2., 0.],
               [0., 0.]])
        """
        return self.candidates.restrict(examples).take(indices)

    def take_finished(self, flush: bool = False) -> list[DecodedStep]:
        """Return the results of the steps that are finished, oldest first, and forget them.

        The steps that remain are then counted from 0 by :meth:`outputs` and :meth:`positions`.

        Parameters
        ----------
        flush : bool, default=False
            Whether to finish all steps first. A decoder may process several steps together.

        Returns
        -------
        list of DecodedStep
            ``nearest``, and ``nearer`` and ``tied`` if there are true outputs, of shape (n_sizes, q) each.

        See Also
        --------
        add : Add a step.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> coordinates = Embedding(Linear(), np.eye(2), np.eye(2))
        >>> decoder = SharedCandidates(np.array([[0.0, 0.0], [2.0, 0.0]])).path_decoder(coordinates, [1, 2], NUMPY)
        >>> decoder.add(None, np.array([[1.9, 0.0]]))
        >>> [step.nearest.tolist() for step in decoder.take_finished()]
        [[[1], [1]]]
        """
        if flush:
            self._finish()
        finished, self._steps = self._steps, []
        return finished

    def outputs(self, step: int, size: int) -> Samples:
        """Return the nearest candidate of each example for one setting, as one collection.

        Parameters
        ----------
        step : int
            The number of the call of :meth:`add`, from 0.
        size : int
            The index of p in ``sizes``.

        Returns
        -------
        array, CSR matrix or sequence of q outputs
            The predictions, in the form in which candidates were given.

        See Also
        --------
        positions : Return the positions of the true outputs for the same setting.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> coordinates = Embedding(Linear(), np.eye(2), np.eye(2))
        >>> decoder = SharedCandidates(np.array([[0.0, 0.0], [2.0, 0.0]])).path_decoder(coordinates, [1, 2], NUMPY)
        >>> decoder.add(None, np.array([[1.9, 0.0]]))
        >>> decoder.outputs(step=0, size=1)
        array([[2., 0.]])
        """
        self._finish()
        nearest = self._steps[step].nearest[size]
        return self.take(np.arange(len(nearest)), nearest)

    def positions(self, step: int, size: int) -> TruthPositions:
        """Return the position of each true output among the candidates of its example for one setting.

        Parameters
        ----------
        step : int
            The number of the call of :meth:`add`, from 0.
        size : int
            The index of p in ``sizes``.

        Returns
        -------
        TruthPositions
            Counts of nearer and of tied candidates, repeated candidates included.

        See Also
        --------
        outputs : Return the predictions for the same setting.
        psilearn.metrics.top_k_accuracy : Compute the top-k accuracy from the positions.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> coordinates, Y = Embedding(Linear(), np.eye(2), np.eye(2)), np.array([[0.0, 0.0], [2.0, 0.0]])
        >>> decoder = SharedCandidates(Y).path_decoder(coordinates, [1, 2], NUMPY, truth=np.array([0]))
        >>> decoder.add(None, np.array([[1.9, 0.0]]))
        >>> decoder.positions(step=0, size=1).nearer
        array([1.])
        """
        self._finish()
        positions = self._steps[step].positions()
        return TruthPositions(positions.nearer[size], positions.tied[size])

    @abstractmethod
    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        """Process or keep a step whose arrays are on the device."""

    def _finish(self) -> None:
        """Process the steps that were kept; nothing unless a subclass keeps some."""
        return
