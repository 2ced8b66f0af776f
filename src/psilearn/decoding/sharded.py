"""One set of candidates in shards on disk, built and searched by the workers of a cluster."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from psilearn._backend import Compute, to_numpy
from psilearn._distributed import as_chunks, map_chunks, map_items, runs_on_cluster
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, take
from psilearn.decoding.bounded_search import merge_nearest, search_nearest_with_slacks
from psilearn.decoding.candidate_files import Shard, finish, new_folder, open_shard, read_shards, stack, write_shard
from psilearn.decoding.shared import SharedCandidates
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding


@dataclass(frozen=True, eq=False, repr=False)
class ShardedCandidates(SharedCandidates):
    """One set of candidates for all examples, in shards on disk.

    It behaves as :class:`SharedCandidates` with the outputs of all shards, one after the other. If there is a default
    client of ``distributed``, each shard is searched by a worker, which returns its k nearest candidates, and the
    answers are merged with the same rule for ties. Otherwise the shards are searched on this machine. The folder must
    have the same path on all workers.

    Use :meth:`psilearn.OEL.candidate_set` with a Dask collection to build it, and :meth:`open` to find it again.

    Parameters
    ----------
    outputs : array, CSR matrix or sequence of c outputs
        The candidates, mapped from the disk.
    embedding : Embedding, default=None
        The embedding of a model.
    squared_norms : ndarray of shape (c,), default=None
        The values k(y, y).
    g : array of shape (c, p), default=None
        The embedded candidates, mapped from the disk.
    path : Path, default=None
        The folder.
    shards : tuple of Shard, default=()
        The shards.

    See Also
    --------
    SharedCandidates : Candidates in memory or in one folder.
    psilearn.OEL.candidate_set : Embed candidates.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from psilearn import OEL
    >>> from psilearn.decoding import ShardedCandidates
    >>> import dask.array as da
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
    >>> with TemporaryDirectory() as folder:
    ...     candidates = model.candidate_set(da.ones((6, 2), chunks=(3, 2)), folder)
    ...     len(candidates), len(ShardedCandidates.open(folder, model.embedding_).shards)
    (6, 2)
    """

    path: Path | None = None
    shards: tuple[Shard, ...] = ()

    @classmethod
    def build_chunks(
        cls,
        outputs: Any,
        embedding: Embedding,
        path: str | Path,
        *,
        compute: Compute,
        dtype: DTypeLike | None = None,
    ) -> ShardedCandidates:
        """Embed the chunks of a Dask collection and write each as a shard, in parallel.

        Each shard is written under another name and renamed when it is complete, and the manifest of the set is written
        last. After an interruption the same call resumes the build: complete shards are kept.

        Parameters
        ----------
        outputs : Dask collection of c outputs
            The candidates: rows of numbers, dense or CSR.
        embedding : Embedding
            The embedding of a model, ``model.embedding_``.
        path : str or Path
            A new folder, which all workers reach by this path.
        compute : Compute
            Precision and device.
        dtype : {"float64", "float32"}, default=None
            Precision of the stored embeddings. None stores them as they are computed.

        Returns
        -------
        ShardedCandidates
            The embedded candidates.

        See Also
        --------
        open : Open a set that was built before.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import dask.array as da
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.decoding import ShardedCandidates
        >>> from psilearn.embedding import Embedding
        >>> from psilearn.kernels import Linear
        >>> embedding = Embedding(Linear(), np.eye(1), np.eye(1))
        >>> with TemporaryDirectory() as folder:
        ...     len(ShardedCandidates.build_chunks(da.ones((4, 1), chunks=(2, 1)), embedding, folder, compute=NUMPY))
        4
        """
        folder = validation.check_path(path, "path")
        chunks = embedding.kernel.check(as_chunks(outputs, "outputs"), "outputs")
        stored = np.dtype(compute.dtype if dtype is None else validation.check_precision(dtype, "dtype"))
        with new_folder(folder):
            write = partial(_write_shard, path=folder.resolve(), embedding=embedding, dtype=stored, compute=compute)
            shards = map_chunks(write, chunks, selection={number: number for number in range(len(chunks.blocks))})
            finish(folder, embedding, shards)
        return cls.open(folder, embedding, verify=False)

    @classmethod
    def open(cls, path: str | Path, embedding: Embedding, *, verify: bool = True) -> ShardedCandidates:
        """Open candidates in shards; their arrays are mapped from the disk.

        Parameters
        ----------
        path : str or Path
            The folder.
        embedding : Embedding
            The embedding of the model that embedded the candidates.
        verify : bool, default=True
            Whether all files are read once to compare their SHA-256.

        Returns
        -------
        ShardedCandidates
            The candidates. The values k(y, y), 8 bytes per candidate, are in memory.

        Raises
        ------
        ValueError
            If the folder is not a complete set of candidates that this model has embedded, or a file is damaged.

        See Also
        --------
        SharedCandidates.load : Open candidates in one folder.

        Examples
        --------
        >>> from psilearn.decoding import ShardedCandidates
        >>> ShardedCandidates.open("folder", model.embedding_)  # doctest: +SKIP
        ShardedCandidates(6 outputs in 2 shards)
        """
        verify = validation.check_bool(verify, "verify")
        folder = validation.check_path(path, "path").resolve()
        shards = read_shards(folder, embedding)
        contents = [open_shard(folder, shard, embedding, verify=verify) for shard in shards]
        if any(part.outputs is None for part in contents):
            raise ValueError(f"The outputs of {folder} were not stored: open it by SharedCandidates.load.")
        outputs = stack([part.outputs for part in contents])
        norms = np.concatenate([part.squared_norms for part in contents])
        return cls(outputs, embedding, norms, stack([part.g for part in contents]), folder, tuple(shards))

    @property
    def hash(self) -> str:
        """The SHA-256 of the hashes of all shards."""
        return hashlib.sha256("".join(shard.outputs_sha256 for shard in self.shards).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"ShardedCandidates({len(self)} outputs in {len(self.shards)} shards)"

    def __reduce__(self) -> Any:
        return _reopen, (self.path, self.embedding)  # a task maps the files instead of receiving their contents

    def _select(self, rows: slice | Index) -> Any:
        norms, g = np.asarray(self.squared_norms)[rows], take(self.g, rows)
        return SharedCandidates(take(self.outputs, rows), self.embedding, norms, g)

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        if not runs_on_cluster():
            return super()._nearest(Z, k, compute)
        found = min(k, len(self))
        job = _ShardSearch(to_numpy(Z), found, self.path, self.embedding, compute.on_numpy())
        starts = np.cumsum([0, *(shard.n for shard in self.shards)])[:-1].tolist()
        parts = map_items(_search_shard, job, list(zip(self.shards, starts, strict=True)))
        return TopK(*merge_nearest(parts, found), self, k)


def _write_shard(
    outputs: Samples, number: int, path: Path, embedding: Embedding, dtype: Any, compute: Compute
) -> Shard:
    """Write the shard of one chunk, unless it is complete; the task may run more than once."""
    if not hasattr(outputs, "shape") or outputs.dtype.kind not in "biuf":
        raise TypeError("Candidates in shards are stored, which requires rows of numbers, dense or CSR.")
    return write_shard(path, number, SharedCandidates(outputs, embedding), dtype, True, compute)


class _ShardSearch(NamedTuple):
    """What the tasks of a search share."""

    Z: Array
    k: int
    path: Path | None
    embedding: Embedding | None
    compute: Compute


def _search_shard(job: Any, shard: Shard, start: int) -> tuple[Index, Array, Array]:
    """Return indices in the whole set, distances and slacks of the nearest candidates in one shard."""
    contents = open_shard(job.path, shard, job.embedding, verify=False)
    outputs: Any = contents.outputs
    candidates = SharedCandidates(outputs, job.embedding, contents.squared_norms, contents.g)
    k = min(job.k, shard.n)
    indices, distances, slacks = search_nearest_with_slacks(
        job.Z, candidates._search_blocks, contents.squared_norms, k, job.compute
    )
    return indices + start, distances, slacks


def _reopen(path: Path, embedding: Embedding) -> ShardedCandidates:
    return ShardedCandidates.open(path, embedding, verify=False)
