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
from psilearn._utils.samples import collection_bytes
from psilearn.decoding import candidate_files
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
        compute: Compute | None = None,
    ) -> None:
        """Write the candidates to a new folder, and embed them block by block if they are not embedded.

        The folder contains shards of up to 128 MiB and ``manifest.json``, which is written last; a folder without it is
        not opened. After an interruption the same call resumes: complete shards are kept. Outputs that are arrays of
        numbers or CSR matrices are stored if they are to be kept; other sequences are not.

        Parameters
        ----------
        path : str or Path
            A new or empty folder, or one in which saving was interrupted.
        keep_outputs : bool, default=True
            Whether the folder gets a copy of the outputs. If not, they must be passed to :meth:`load`.
        dtype : {"float64", "float32"}, default=None
            Precision of the stored embeddings, whatever that of the computation. None stores them as they are computed.
            float32 needs half the space and changes distances by about 1e-7 of k(y, y).
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
        ['manifest.json', 'shard-00000.safetensors']
        """
        compute = current_compute(self.outputs) if compute is None else compute
        path, keep = validation.check_path(path, "path"), validation.check_bool(keep_outputs, "keep_outputs")
        embedding = known_embedding(self.embedding)
        computed = compute.dtype if self.g is None else self.g.dtype
        stored = np.dtype(computed if dtype is None else validation.check_precision(dtype, "dtype"))
        row_bytes = embedding.n_components * stored.itemsize + 8
        row_bytes += collection_bytes(self.outputs) // len(self) if keep else 0
        with candidate_files.new_folder(path):
            candidate_files.require_space(path, len(self) * row_bytes)
            slices = candidate_files.shard_slices(len(self), row_bytes)
            shards = [
                candidate_files.write_shard(path, number, self._select(rows), stored, keep, compute)
                for number, rows in enumerate(track(slices, "shards of candidates", len(slices)))
            ]
            candidate_files.finish(path, embedding, shards)

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
