"""Candidates: the outputs among which predictions are searched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, current_compute, is_tensor, iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, check_collection, match, n_samples, take
from psilearn.decoding.distances import tie_runs
from psilearn.decoding.output_set import OutputSet, known_embedding
from psilearn.decoding.path_decoder import PathDecoder
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding
from psilearn.metrics import TruthPositions

MAX_QUERY, MAX_FLOAT32_QUERY = 1e150, 1e38  # the largest absolute values of predicted embeddings
BYTES_PER_RANKED = 128  # of a candidate while all candidates of an example are sorted


class Candidates(ABC):
    """The outputs among which the predictions of examples are searched.

    Search, positions of true outputs, conformal sets and searches over hyper-parameters use candidates through this
    class only. A query is a predicted embedding z(x) ∈ Rᵖ, and the distance of a candidate y is |G*z(x) − ψ(y)|², where
    G belongs to ``embedding``; :mod:`psilearn.decoding.distances` defines ties.

    A subclass implements the private methods at the end of the class; they receive queries on the device.

    Attributes
    ----------
    embedding : Embedding or None
        The embedding of the model that the candidates are searched with. None before they are given to a model.

    See Also
    --------
    SharedCandidates : One set for all examples.
    PerExampleCandidates : One set per example.
    AllRankings : All rankings, without a list of them.
    AllLabelSets : All label sets, without a list of them.

    Examples
    --------
    >>> from psilearn.decoding import Candidates, PerExampleCandidates
    >>> isinstance(PerExampleCandidates([["a", "b"], ["c"]]), Candidates)
    True
    """

    embedding: Embedding | None

    def nearest(self, Z: Array, k: int, compute: Compute | None = None) -> TopK:
        """Find the k nearest candidates of each query.

        Cost for shared candidates: 2·q·c·p flops in float32 and about p·k·log(c) per query in float64, besides the
        embedding of candidates that are not embedded (2·c·r·p); if many pairs tie exactly, all are computed in float64.
        Cost for one set per example with Σc candidates in all: r kernel values per candidate, and 2·Σc·r flops in
        float64 or what embedding takes, whichever is faster. Memory: ``working_memory`` and the answer.

        Parameters
        ----------
        Z : array of shape (q, p)
            The predicted embeddings z(x), one row per example.
        k : int
            The number of candidates to find; at most the size of the largest set is returned.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        TopK
            The indices and distances of the nearest candidates.

        See Also
        --------
        ranked : Sort all candidates of each example.
        psilearn.OEL.predict_topk : Find the nearest candidates of inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0], [3.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
        >>> candidates.nearest(np.array([[0.9], [2.5]]), k=2).indices
        array([[1, 0],
               [2, 1]])
        """
        compute = current_compute(Z) if compute is None else compute
        return self._nearest(self._queries(Z, compute), validation.check_count(k, "k"), compute)

    def positions(self, Z: Array, truth: Index, compute: Compute | None = None) -> TruthPositions:
        """Count the candidates that are nearer than a given one, and those that tie with it.

        Cost and memory are those of :meth:`nearest`; shared candidates that are not embedded are embedded twice.

        Parameters
        ----------
        Z : array of shape (q, p)
            The predicted embeddings z(x), one row per example.
        truth : array of shape (q,)
            The index of a candidate for each example; −1 for none.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        TruthPositions
            The counts. Candidates that repeat count as often as they occur.

        See Also
        --------
        match : Find the indices of true outputs.
        truth_positions : Count positions among distinct candidates, from the true outputs themselves.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0], [3.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
        >>> candidates.positions(np.array([[0.9], [2.5]]), truth=np.array([0, 2])).nearer
        array([1., 0.])
        """
        compute = current_compute(Z) if compute is None else compute
        Z = self._queries(Z, compute)
        return TruthPositions(*self._positions(Z, self._check_truth(truth, len(Z)), compute))

    def truth_positions(self, Z: Array, truth: Samples, compute: Compute | None = None) -> TruthPositions:
        """Find the position of each true output among the distinct candidates of its example.

        Parameters
        ----------
        Z : array of shape (q, p)
            The predicted embeddings z(x), one row per example.
        truth : array, CSR matrix or sequence of q outputs
            The true outputs.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        TruthPositions
            The numbers of nearer and of tied candidates.

        See Also
        --------
        positions : Count the candidates that are nearer than given ones.
        psilearn.metrics.top_k_accuracy : Compute the top-k accuracy from the positions.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0], [1.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
        >>> candidates.truth_positions(np.array([[0.9]]), np.array([[0.0]])).nearer
        array([1.])
        """
        candidates = self.distinct()
        return candidates.positions(Z, candidates.match(truth), compute)

    def ranked(self, Z: Array, compute: Compute | None = None) -> Iterator[RankedRow]:
        """Sort all candidates of each example by distance.

        Examples are processed in blocks within ``working_memory``.

        Parameters
        ----------
        Z : array of shape (q, p)
            The predicted embeddings z(x), one row per example.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        iterator of RankedRow
            For each example the indices and distances of its candidates, nearest first, and their runs of ties.

        See Also
        --------
        nearest : Find the k nearest candidates.
        ranked_candidates : Rank candidates with margins, positions and conformal scores.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0], [3.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
        >>> [row.indices.tolist() for row in candidates.ranked(np.array([[0.9], [2.5]]))]
        [[1, 0, 2], [2, 1, 0]]
        """
        self._check_queries(Z)
        return self._ranked(Z, current_compute(Z) if compute is None else compute)

    def path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None = None
    ) -> PathDecoder:
        """Make a decoder of predictions of many models on one training split.

        The candidates are those of the held-out examples: ``candidates.restrict(held)``. To count positions among
        distinct candidates, call ``distinct`` once, and ``match`` for the indices of the true outputs.

        Parameters
        ----------
        embedding : Embedding
            The coordinates y ↦ Ψ(y) ∈ Rʳ of the outputs, in which directions and predictions of all steps are given.
        sizes : sequence of int or None
            The numbers p of components, ascending. None keeps everything.
        compute : Compute
            Precision and device.
        truth : ndarray of shape (q,), default=None
            The index of each true output among the candidates of its example; −1 if it is not among them. None counts
            no positions.

        Returns
        -------
        PathDecoder
            A decoder without steps.

        See Also
        --------
        PathDecoder : Decode the predictions of many models.
        psilearn.OELCV : Choose λ, c and p with such a decoder.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> coordinates = Embedding(Linear(), np.eye(2), np.eye(2))
        >>> SharedCandidates(np.array([[0.0, 0.0], [2.0, 0.0]])).path_decoder(coordinates, [1, 2], NUMPY).sizes
        [1, 2]
        """
        return self._path_decoder(embedding, sizes, compute, truth)

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
        return self

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

    def _queries(self, Z: Array, compute: Compute) -> Any:
        """Return the validated queries on the device."""
        self._check_queries(Z)
        return Z if compute.device is None and isinstance(Z, np.ndarray) else compute.asarray(Z)

    def _check_queries(self, Z: Any, name: str = "Z") -> None:
        """Raise if the queries are not rows of finite numbers with as many columns as the embedding."""
        p = self._known_embedding().basis.shape[1]
        is_plain = isinstance(Z, np.ndarray) and not np.ma.isMaskedArray(Z) and Z.dtype.kind in "biuf"
        if not is_tensor(Z) and (not is_plain or Z.dtype in (np.float16, np.longdouble)):
            raise TypeError(f"{name} must be an array of numbers, one predicted embedding per row; got {Z!r:.80}.")
        if Z.ndim != 2 or Z.shape[1] != p:
            raise ValueError(f"{name} must have shape (q, {p}), one predicted embedding per row; got {tuple(Z.shape)}.")
        largest = MAX_QUERY if Z.dtype.itemsize == 8 else MAX_FLOAT32_QUERY
        if 0 not in Z.shape and not (bool(Z.max() <= largest) and bool(Z.min() >= -largest)):
            raise ValueError(f"{name} must be finite, at most {largest:g}; its shape is {tuple(Z.shape)}.")

    def _check_truth(self, truth: Any, n_queries: int) -> Index:
        """Return the indices of true candidates as an array; raise if they are not indices of candidates."""
        indices = to_numpy(truth)
        if indices.shape != (n_queries,) or (indices.dtype.kind not in "iu" and n_queries > 0):
            raise ValueError(f"truth must be {n_queries} indices of candidates, one per row of Z; got {truth!r}.")
        outside = (indices < -1) | (indices >= self._sizes())
        if outside.any():
            i = int(np.argmax(outside))
            raise ValueError(f"truth[{i}]={indices[i]} is not the index of a candidate, nor −1 for none.")
        return indices.astype(np.intp, copy=False)

    def _sizes(self) -> Any:
        """Return the number of candidates of all examples, or of each example, (q,)."""
        return self._max_size()

    def _ranked(self, Z: Any, compute: Compute) -> Iterator[RankedRow]:
        """Yield the sorted candidates of each example; examples are processed in blocks."""
        size = self.max_size
        for rows in iter_blocks(len(Z), BYTES_PER_RANKED * size):
            top = self.restrict(rows).nearest(Z[rows], size, compute)
            for index, distances in zip(top.indices, top.distances, strict=True):
                ranked = index >= 0
                yield RankedRow(index[ranked], distances[ranked], *tie_runs(distances[ranked]))

    @abstractmethod
    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        """Find the k nearest candidates of each query, or all if there are fewer."""

    @abstractmethod
    def _positions(self, Z: Any, truth: Index, compute: Compute) -> tuple[Array, Array]:
        """Return the numbers of nearer and of tied candidates, (q,) each."""

    @abstractmethod
    def _path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> PathDecoder:
        """Make a decoder of the predictions of many models."""

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


class RankedRow(NamedTuple):
    """All candidates of one example, nearest first, and the runs of ties that they are in, each array (c,)."""

    indices: Index
    distances: Array  # ascending; tied ones are equal
    starts: Index  # the place of the first candidate of the same run
    stops: Index  # the place after its last candidate
