"""The outputs of candidates: which outputs each example has, without distances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy import sparse

from psilearn._backend import to_numpy
from psilearn._utils.samples import Index, Samples, check_collection, match, n_samples, take
from psilearn.decoding.output_set import OutputSet, known_embedding
from psilearn.embedding import Embedding

if TYPE_CHECKING:
    from psilearn.decoding.candidates import Candidates


class CandidateCollection(ABC):
    """The part of :class:`~psilearn.decoding.Candidates` that needs no distances.

    Public methods are documented here; a subclass implements the private ones.
    """

    embedding: Embedding | None

    @property
    def max_size(self) -> int:
        """The number of candidates of the example that has most."""
        return self._max_size()

    def outputs_of(self, example: int) -> Samples:
        """Return the candidates of one example.

        Parameters
        ----------
        example : int
            The number of the example.

        Returns
        -------
        array, CSR matrix or sequence
            The candidates, in the form in which they were given.

        See Also
        --------
        take : Return one candidate per example.
        groups : Iterate over the different sets of candidates.

        Examples
        --------
        >>> from psilearn.decoding import PerExampleCandidates
        >>> PerExampleCandidates([["a", "b"], ["c"]]).outputs_of(0)
        ['a', 'b']
        """
        return self._outputs_of(example)

    def take(self, indices: Index) -> Samples:
        """Return one candidate per example as one collection.

        Parameters
        ----------
        indices : ndarray of shape (q,)
            The index of a candidate for each example.

        Returns
        -------
        array, CSR matrix or sequence of q outputs
            The candidates, in the form in which they were given.

        See Also
        --------
        outputs_of : Return all candidates of one example.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import PerExampleCandidates
        >>> PerExampleCandidates([["a", "b"], ["c"]]).take(np.array([1, 0]))
        ['b', 'c']
        """
        return self._take(indices if isinstance(indices, np.ndarray) else to_numpy(indices))

    def restrict(self, examples: slice | Index) -> Candidates:
        """Return the candidates of some of the examples.

        Parameters
        ----------
        examples : slice or ndarray of int
            The numbers of the examples.

        Returns
        -------
        Candidates
            The candidates of these examples, in this order.

        See Also
        --------
        outputs_of : Return the candidates of one example.

        Examples
        --------
        >>> from psilearn.decoding import PerExampleCandidates
        >>> PerExampleCandidates([["a", "b"], ["c"], ["d"]]).restrict(slice(1, 3)).outputs_of(0)
        ['c']
        """
        return self._restrict(examples)

    def groups(self, n_examples: int) -> Iterator[tuple[Samples, Index]]:
        """Yield each different set of candidates together with the examples that have it.

        Parameters
        ----------
        n_examples : int
            The number of examples.

        Yields
        ------
        outputs : array, CSR matrix or sequence
            The candidates.
        examples : ndarray of int
            The numbers of the examples.

        See Also
        --------
        outputs_of : Return the candidates of one example.

        Examples
        --------
        >>> from psilearn.decoding import PerExampleCandidates
        >>> common = ["a", "b"]
        >>> candidates = PerExampleCandidates([common, ["c"], common])
        >>> [(outputs, examples.tolist()) for outputs, examples in candidates.groups(3)]
        [(['a', 'b'], [0, 2]), (['c'], [1])]
        """
        for candidates, examples in self._groups(n_examples):
            yield candidates.outputs, examples

    def match(self, truth: Samples) -> Index:
        """Find the true output of each example among its candidates.

        Parameters
        ----------
        truth : array, CSR matrix or sequence of q outputs
            The true outputs.

        Returns
        -------
        ndarray of shape (q,)
            The index of the first candidate that is equal to the true output; −1 if there is none.

        See Also
        --------
        positions : Count the candidates that are nearer than the matched ones.
        truth_positions : Find the positions of true outputs in one call.

        Examples
        --------
        >>> from psilearn.decoding import PerExampleCandidates
        >>> PerExampleCandidates([["a", "b"], ["c"]]).match(["b", "b"])
        array([ 1, -1])
        """
        return self._match(self._check_truth_outputs(truth))

    def distinct(self) -> Candidates:
        """Return the candidates without repetitions; the first of equal ones stays.

        Returns
        -------
        Candidates
            The distinct candidates, or these ones if they are distinct.

        See Also
        --------
        match : Find true outputs among the candidates.

        Examples
        --------
        >>> from psilearn.decoding import SharedCandidates
        >>> SharedCandidates(["a", "b", "a"]).distinct().outputs
        ['a', 'b']
        """
        return self._distinct()

    def validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> Candidates:
        """Validate the outputs, and the number of sets.

        Parameters
        ----------
        check : callable
            Takes a collection of outputs and its name in error messages, and returns the validated collection.
        n_examples : int
            The number of examples.

        Returns
        -------
        Candidates
            The validated candidates. Candidates that have an embedding are not validated again.

        See Also
        --------
        as_candidates : Make validated candidates from collections of outputs.

        Examples
        --------
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.kernels import Linear
        >>> SharedCandidates([[0, 1], [1, 1]]).validate(Linear().check, n_examples=5).outputs
        array([[0, 1],
               [1, 1]])
        """
        return self._validate(check, n_examples)

    def for_embedding(self, embedding: Embedding) -> Candidates:
        """Return the candidates for searches with an embedding.

        Parameters
        ----------
        embedding : Embedding
            The embedding of a model.

        Returns
        -------
        Candidates
            These candidates with this embedding.

        Raises
        ------
        ValueError
            If the candidates belong to another embedding already.

        See Also
        --------
        require_embedding : Raise if the candidates belong to another embedding.
        SharedCandidates.build : Embed candidates once.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> embedding = Embedding(Linear(), np.eye(1), np.eye(1))
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0]])).for_embedding(embedding)
        >>> candidates.nearest(np.array([[0.9]]), k=1).indices
        array([[1]])
        """
        if self.embedding is None:
            return self._for_embedding(embedding)
        self.require_embedding(embedding)
        return cast("Candidates", self)

    def require_embedding(self, embedding: Embedding) -> None:
        """Raise if the candidates do not belong to an embedding.

        Parameters
        ----------
        embedding : Embedding
            The embedding of a model.

        Raises
        ------
        ValueError
            If the candidates belong to another embedding, or to none.

        See Also
        --------
        for_embedding : Return the candidates for searches with an embedding.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> embedding = Embedding(Linear(), np.eye(1), np.eye(1))
        >>> SharedCandidates(np.array([[0.0], [1.0]]), embedding).require_embedding(embedding)
        """
        own = self._known_embedding()
        if embedding is not own and embedding.fingerprint != own.fingerprint:
            raise ValueError(
                "The candidates were embedded by another model: embed them again with model.candidate_set(outputs)."
            )

    def _known_embedding(self) -> Embedding:
        """Return the embedding; raise if there is none."""
        return known_embedding(self.embedding)

    @abstractmethod
    def _max_size(self) -> int:
        """Return the size of the largest set."""

    @abstractmethod
    def _outputs_of(self, example: int) -> Samples:
        """Return the candidates of one example."""

    @abstractmethod
    def _take(self, indices: Index) -> Samples:
        """Return one candidate per example as one collection."""

    @abstractmethod
    def _restrict(self, examples: slice | Index) -> Candidates:
        """Return the candidates of some examples."""

    @abstractmethod
    def _groups(self, n_examples: int) -> Iterator[tuple[OutputSet, Index]]:
        """Yield each different set and the examples that have it."""

    def _check_truth_outputs(self, truth: Samples) -> Samples:
        """Return true outputs in a form that can be compared with candidates; raise if they have none."""
        truth = truth.to_numpy() if hasattr(truth, "iloc") else truth
        check_collection(truth, "truth")
        if getattr(getattr(truth, "dtype", None), "kind", "f") in "cmMV":
            raise TypeError(f"truth must hold outputs of the form of the candidates; got {truth.dtype}.")
        if sparse.issparse(truth) and truth.format != "csr":
            raise TypeError(f"truth must be a CSR matrix if it is sparse; got {truth.format.upper()}.")
        return truth

    def _match(self, truth: Samples) -> Index:
        """Return the index of each true output among the candidates of its example, or −1."""
        indices = np.full(n_samples(truth), -1, dtype=np.intp)
        for candidates, examples in self._groups(len(indices)):
            indices[examples] = match(take(truth, examples), candidates.outputs)
        return indices

    @abstractmethod
    def _distinct(self) -> Candidates:
        """Return the candidates without repetitions."""

    @abstractmethod
    def _validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> Candidates:
        """Return the validated candidates; they are not validated again if they have an embedding."""

    @abstractmethod
    def _for_embedding(self, embedding: Embedding) -> Candidates:
        """Return candidates without an embedding with this one."""
