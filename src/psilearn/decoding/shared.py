"""One set of candidates for all examples, embedded once and possibly kept on disk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from psilearn._backend import Compute, current_compute
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.hashing import content_hash
from psilearn._utils.samples import Index, Samples, check_collection, n_columns, n_samples, take
from psilearn.decoding.bounded_search import search_nearest, search_positions
from psilearn.decoding.candidate_files import Shard, open_shard, read_shards, stack
from psilearn.decoding.candidates import Candidates, RankedRow
from psilearn.decoding.component_path import ComponentPathDecoder
from psilearn.decoding.embedded_outputs import EmbeddedOutputs
from psilearn.decoding.output_set import OutputSet
from psilearn.decoding.path_decoder import PathDecoder
from psilearn.decoding.per_example import PerExampleCandidates
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding
from psilearn.kernels.row_kernel import check_numbers


@dataclass(frozen=True, eq=False, repr=False)
class SharedCandidates(EmbeddedOutputs, Candidates):
    """One set of candidates for all examples, with what decoding needs of each candidate.

    The point of a candidate is [g(y), r(y)] ∈ Rᵖ⁺¹ and the query is [z(x), 0]: the nearest point is the nearest ψ(y) in
    the output space, so that any Euclidean index can search them. If ``g`` is None, the candidates are embedded block
    by block while they are searched, and c·p numbers are never stored; :meth:`build` embeds them once, in memory or in
    a folder.

    The object behaves as the outputs that it holds: it has their length, items, shape and dtype, and ``numpy.asarray``
    returns them as an array.

    Parameters
    ----------
    outputs : array, CSR matrix or sequence of c outputs
        The candidates.
    embedding : Embedding, default=None
        The embedding of a model. None for candidates that are not given to a model yet.
    squared_norms : ndarray of shape (c,), default=None
        The values k(y, y). None computes them if there is an embedding.
    g : ndarray of shape (c, p), default=None
        The embedded candidates. None embeds them whenever they are searched.

    See Also
    --------
    PerExampleCandidates : One set per example.
    psilearn.OEL.candidate_set : Build the candidates of a model.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import SharedCandidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> Y = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> candidates = SharedCandidates.build(Y, Embedding(Linear(), np.eye(2), np.eye(2)))
    >>> candidates.nearest(np.array([[0.9, 0.8]]), k=1).nearest
    array([[1., 1.]])
    >>> candidates.shape, candidates[0]
    ((2, 2), array([0., 0.]))
    """

    @classmethod
    def build(
        cls,
        outputs: Samples,
        embedding: Embedding,
        path: str | Path | None = None,
        *,
        keep_outputs: bool = True,
        dtype: DTypeLike | None = None,
        compute: Compute | None = None,
    ) -> SharedCandidates:
        """Embed candidates once.

        Cost: c·r kernel values and 2·c·r·p flops. Memory: ``working_memory`` and c·(p + 1) numbers. With ``path`` the
        c·p numbers are written block by block and memory-mapped, and never stored in memory.

        Parameters
        ----------
        outputs : array, CSR matrix or sequence of c outputs
            The candidates.
        embedding : Embedding
            The embedding of a model, ``model.embedding_``.
        path : str or Path, default=None
            A new folder to write the candidates to, as :meth:`save` does. None keeps them in memory.
        keep_outputs : bool, default=True
            Whether the folder gets a copy of the outputs. If not, they must be passed to :meth:`load`.
        dtype : {"float64", "float32"}, default=None
            Precision of the embeddings in the folder, as in :meth:`save`.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        SharedCandidates
            The embedded candidates.

        See Also
        --------
        save : Write candidates to a folder.
        load : Open candidates that were written to a folder.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> SharedCandidates.build(np.array([[0.0], [1.0]]), Embedding(Linear(), np.eye(1), np.eye(1))).g
        array([[0.],
               [1.]])
        """
        _check_embedding(embedding)
        validation.check_bool(keep_outputs, "keep_outputs")
        kernel = embedding.kernel
        checked = kernel.check(outputs, "outputs")
        outputs = checked if sparse.issparse(outputs) else outputs
        kernel.check_same_kind(checked, "outputs", embedding.landmarks, "the outputs of the embedding")
        compute = current_compute(outputs) if compute is None else compute
        if path is None:
            if dtype is not None:
                raise ValueError("dtype is an option of a folder: pass path.")
            return cls(outputs, embedding, g=embedding(outputs, compute))
        candidates = cls(outputs, embedding)
        candidates.save(path, keep_outputs=keep_outputs, dtype=dtype, compute=compute)
        path = validation.check_path(path, "path")
        parts = [open_shard(path, shard, embedding, verify=False) for shard in read_shards(path, embedding)]
        return cls(outputs, embedding, candidates.squared_norms, stack([part.g for part in parts]))

    @classmethod
    def load(
        cls, path: str | Path, embedding: Embedding, outputs: Samples | None = None, *, verify: bool = True
    ) -> SharedCandidates:
        """Open saved candidates; g and the outputs are memory-mapped and read when they are needed.

        All files are read once to compare their SHA-256 with the manifest, and their values are validated. No file is
        unpickled.

        Parameters
        ----------
        path : str or Path
            A folder that :meth:`save` or :meth:`build` has written.
        embedding : Embedding
            The embedding of the model that embedded the candidates.
        outputs : array, CSR matrix or sequence of c outputs, default=None
            The candidates, if they were not stored.
        verify : bool, default=True
            Whether all files are read and validated. If not, only their headers are, and damaged values are not
            detected: use this for large folders that you have verified before.

        Returns
        -------
        SharedCandidates
            The saved candidates.

        Raises
        ------
        TypeError
            If ``embedding`` is not an Embedding, such as a model.
        ValueError
            If the folder does not hold complete candidates of this version, if files are missing, damaged or have
            another shape, if another model embedded them, or if stored or given outputs have another hash.

        See Also
        --------
        save : Write candidates to a folder.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> embedding = Embedding(Linear(), np.eye(1), np.eye(1))
        >>> with TemporaryDirectory() as folder:
        ...     SharedCandidates(np.array([[0.0], [1.0]]), embedding).save(folder)
        ...     SharedCandidates.load(folder, embedding)
        SharedCandidates(2 outputs, embedded)
        """
        _check_embedding(embedding)
        verify = validation.check_bool(verify, "verify")
        path = validation.check_path(path, "path")
        shards = read_shards(path, embedding)
        parts = [open_shard(path, shard, embedding, verify=verify) for shard in shards]
        known: Any = outputs
        if outputs is not None:
            check_collection(outputs, "outputs")
            if not _are_of_shards(outputs, shards):  # candidate_set stores validated outputs: lists become arrays
                known = embedding.kernel.check(outputs, "outputs")
                if not _are_of_shards(known, shards):
                    raise ValueError(f"The given outputs are not those of {path}: their hash differs.")
        elif any(part.outputs is None for part in parts):
            raise ValueError(
                f"The outputs of {path} were not stored, on request or because they are neither an array of numbers "
                f"nor a CSR matrix: pass them as SharedCandidates.load(path, embedding, outputs=...)."
            )
        else:
            known = stack([part.outputs for part in parts])
        norms = np.concatenate([part.squared_norms for part in parts])
        return cls(known, embedding, norms, stack([part.g for part in parts]))

    def per_example(self, rows: Iterable[slice | Index]) -> PerExampleCandidates:
        """Return candidates of which each example has its own rows.

        Slices of arrays are views, so that embeddings on disk are read when their example is searched.

        Parameters
        ----------
        rows : iterable of slice or ndarray of int
            The rows of each example.

        Returns
        -------
        PerExampleCandidates
            One set per example.

        See Also
        --------
        PerExampleCandidates : One set per example, from separate collections.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> SharedCandidates(["a", "b", "c"]).per_example([slice(0, 2), np.array([2])]).sets
        [['a', 'b'], ['c']]
        """
        selected: dict[Any, OutputSet] = {}
        sets = []
        for part in list(rows):  # all alive at once, so that no two share an id
            key = (part.start, part.stop, part.step) if isinstance(part, slice) else id(part)
            if key not in selected:
                selected[key] = self._select(part)
            sets.append(selected[key])
        return PerExampleCandidates._of_sets(sets, self.embedding)

    def __repr__(self) -> str:
        return f"SharedCandidates({len(self)} outputs{'' if self.g is None else ', embedded'})"

    def _search_blocks(self, compute: Compute) -> Iterator[tuple[slice, Any]]:
        embedding: Any = self.embedding
        return self._embedded_blocks(embedding, compute)

    def _max_size(self) -> int:
        return len(self)

    def _check_truth_outputs(self, truth: Samples) -> Samples:
        width = n_columns(self.outputs)
        if width is not None and isinstance(truth, list | tuple):  # rows as lists
            truth = check_numbers(truth, "truth", ensure_2d=True)
        truth = super()._check_truth_outputs(truth)
        if width is not None and hasattr(truth, "shape") and n_columns(truth) != width:
            raise ValueError(f"truth must have {width} columns like the candidates; got shape {tuple(truth.shape)}.")
        return truth

    def _outputs_of(self, example: int) -> Samples:
        return self.outputs

    def _take(self, indices: Index) -> Samples:
        return take(self.outputs, indices)

    def _restrict(self, examples: slice | Index) -> SharedCandidates:
        return self

    def _groups(self, n_examples: int) -> Iterator[tuple[OutputSet, Index]]:
        yield self, np.arange(n_examples)

    def _distinct(self) -> SharedCandidates:
        return self._unique

    def _validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> SharedCandidates:
        return self if self.embedding is not None else SharedCandidates(check(self.outputs, "candidates"))

    def _for_embedding(self, embedding: Embedding) -> SharedCandidates:
        return SharedCandidates(self.outputs, embedding)

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        norms = self._known_norms()
        return TopK(*search_nearest(Z, self._search_blocks, norms, min(k, len(norms)), compute), self, k)

    def _positions(self, Z: Any, truth: Index, compute: Compute) -> tuple[Array, Array]:
        return search_positions(Z, self._search_blocks, self._known_norms(), truth, compute)

    def _path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> PathDecoder:
        return ComponentPathDecoder(self, self, embedding, sizes, compute, truth)


def _are_of_shards(outputs: Samples, shards: Sequence[Shard]) -> bool:
    """Return whether outputs are those that the shards were built from."""
    ends = np.cumsum([shard.n for shard in shards]).tolist()
    return n_samples(outputs) == ends[-1] and all(
        content_hash(take(outputs, slice(end - shard.n, end))) == shard.outputs_sha256
        for shard, end in zip(shards, ends, strict=True)
    )


def _check_embedding(embedding: object) -> None:
    if not isinstance(embedding, Embedding):
        raise TypeError(
            f"embedding must be the embedding of a model, model.embedding_; got {type(embedding).__name__}."
        )


class RuleCandidates(Candidates):
    """All outputs that satisfy a rule; a subclass finds the nearest, and everything else uses ``listed``."""

    @property
    @abstractmethod
    def listed(self) -> SharedCandidates:
        """The outputs as a list; an error if they are too many."""

    def _outputs_of(self, example: int) -> Samples:
        return self.listed.outputs

    def _take(self, indices: Index) -> Samples:
        return self.listed._take(indices)

    def _restrict(self, examples: slice | Index) -> Self:
        return self

    def _groups(self, n_examples: int) -> Iterator[tuple[OutputSet, Index]]:
        return self.listed._groups(n_examples)

    def _distinct(self) -> Self:
        return self

    def _validate(self, check: Callable[[Samples, str], Samples], n_examples: int) -> Self:
        return self

    def _match(self, truth: Samples) -> Index:
        return self.listed._match(truth)

    def _ranked(self, Z: Any, compute: Compute) -> Iterator[RankedRow]:
        return self.listed._ranked(Z, compute)

    def _positions(self, Z: Any, truth: Index, compute: Compute) -> tuple[Array, Array]:
        return self.listed._positions(Z, truth, compute)
