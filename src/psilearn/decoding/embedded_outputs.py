"""Outputs with their embedding, which behave as the collection that they hold and can be saved in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from psilearn._backend import Compute, current_compute, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils import validation
from psilearn._utils.hashing import content_hash
from psilearn._utils.progress import track
from psilearn.decoding import candidate_store
from psilearn.decoding.build_progress import TableShape
from psilearn.decoding.output_set import OutputSet, known_embedding


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddedOutputs(OutputSet):
    """A set of outputs whose embeddings are iterated over, turned into points or written to a folder."""

    def save(
        self,
        path: str | Path,
        *,
        keep_outputs: bool = True,
        dtype: DTypeLike | None = None,
        resume: bool = False,
        compute: Compute | None = None,
    ) -> None:
        """Write the candidates to a new folder, and embed them block by block if they are not embedded.

        Outputs that are arrays or CSR matrices are stored if they are to be kept; other sequences are not. The manifest
        is written last; a folder without it is not opened.

        Parameters
        ----------
        path : str or Path
            A new or empty folder, or one in which saving was interrupted.
        keep_outputs : bool, default=True
            Whether the folder gets a copy of the outputs. If not, they must be passed to :meth:`load`.
        dtype : {"float64", "float32"}, default=None
            Precision of the stored embeddings, whatever that of the computation. None stores them as they are computed.
            float32 needs half the space and changes distances by about 1e-7 of k(y, y).
        resume : bool, default=False
            Whether to continue where an interrupted call with ``resume=True`` and the same candidates stopped, and to
            keep what is complete if this one is interrupted.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Raises
        ------
        FileExistsError
            If the folder contains anything else.

        See Also
        --------
        load : Open saved candidates.
        build : Embed candidates, and write them to a folder if a path is given.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
        >>> with TemporaryDirectory() as folder:
        ...     candidates.save(folder)
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['g.npy', 'manifest.json', 'outputs.npy', 'squared_norms.npy']
        """
        compute = current_compute(self.outputs) if compute is None else compute
        path, resume = validation.check_path(path, "path"), validation.check_bool(resume, "resume")
        embedding, norms = known_embedding(self.embedding), self._known_norms()
        computed = compute.dtype if self.g is None else self.g.dtype
        stored = computed if dtype is None else validation.check_precision(dtype, "dtype")
        tables = [
            TableShape("g.npy", (len(self), embedding.n_components), np.dtype(stored)),
            TableShape("squared_norms.npy", (len(self),), np.dtype(np.float64)),
        ]

        def blocks(start: int) -> Iterator[tuple[slice, tuple[Array, ...]]]:
            rest = self._select(slice(start, None)) if start else self
            for part, g in track(rest.blocks(compute), "candidates"):
                rows = slice(start + part.start, start + part.stop)
                yield rows, (to_numpy(g), norms[rows])

        identity = {"outputs_sha256": self.hash, "embedding_sha256": embedding.fingerprint}
        kept = self.outputs if keep_outputs else None
        candidate_store.write(path, identity, kept, tables, blocks, resume=resume)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the contents of the outputs, the same for equal outputs in any layout or process."""
        return content_hash(self.outputs)

    def blocks(self, compute: Compute | None = None) -> Iterator[tuple[slice, Array]]:
        """Iterate over the embedded candidates in blocks that fit into memory.

        Parameters
        ----------
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Yields
        ------
        rows : slice
            Consecutive candidates.
        g : array of shape (rows, p)
            Their embeddings, on the device.

        See Also
        --------
        points : Compute the points of all candidates at once.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> candidates = SharedCandidates(np.array([[0.0], [1.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
        >>> [(rows.start, rows.stop, g.shape) for rows, g in candidates.blocks()]
        [(0, 2, (2, 1))]
        """
        compute = current_compute(self.outputs) if compute is None else compute
        yield from self._embedded_blocks(known_embedding(self.embedding), compute)

    def points(self, compute: Compute | None = None) -> Array:
        """Compute the points [g(y), r(y)], among which the nearest one to [z(x), 0] is the prediction.

        Parameters
        ----------
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        ndarray of shape (c, p + 1)
            One point per candidate.

        See Also
        --------
        blocks : Iterate over the embedded candidates.
        nearest : Find the nearest candidates without an index.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.decoding import SharedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> SharedCandidates(np.array([[3.0, 4.0]]), Embedding(Linear(), np.eye(2), np.eye(2)[:, :1])).points()
        array([[3., 4.]])
        """
        g = np.concatenate([to_numpy(block) for _, block in self.blocks(compute)])
        residual = np.sqrt(np.maximum(self._known_norms() - row_products(g, g), 0))
        return np.column_stack([g, residual])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the outputs, if they have one."""
        return tuple(self.outputs.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions of the outputs, if they have one."""
        return int(self.outputs.ndim)

    @property
    def dtype(self) -> Any:
        """The dtype of the outputs, if they have one."""
        return self.outputs.dtype

    def __getitem__(self, index: Any) -> Any:
        return self.outputs[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outputs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        dense = self.outputs.toarray() if sparse.issparse(self.outputs) else to_numpy(self.outputs)
        return np.array(dense, dtype=dtype) if copy else np.asarray(dense, dtype=dtype)

    def _known_norms(self) -> Array:
        """Return k(y, y), (c,); raise if there is no embedding."""
        known_embedding(self.embedding)
        norms: Any = self.squared_norms  # computed as soon as there is an embedding
        return np.asarray(norms)
