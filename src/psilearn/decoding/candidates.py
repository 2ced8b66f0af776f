"""What is searched where one candidate set serves all examples: its outputs, embedded once and perhaps kept on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from psilearn._backend import asarray, computing_blocks, cut, moved_bytes, row_blocks, stream, to_host, working_dtype
from psilearn._linalg import Array, row_products
from psilearn._utils.hashing import content_hash
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, distinct, n_columns, n_samples, take
from psilearn.decoding import candidate_store
from psilearn.embedding import Embedding
from psilearn.kernels.blocks import diagonal

BLOCK_ROWS = 8192  # candidates that are embedded or converted together at the most


@dataclass(frozen=True)
class CandidateSet:
    """One set of candidates, shared by all examples, with what decoding needs of each.

    The point of a candidate is [g(y), r(y)] ∈ Rᵖ⁺¹ and the query [z(x), 0]: the nearest point is the nearest ψ(y) in
    the output space, so any Euclidean index serves. Where ``g`` is None the candidates are embedded block by block
    while they are searched, and c·p numbers are never held; :meth:`build` embeds them once, in memory or in a folder.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OEL
    >>> from psilearn.decoding import CandidateSet, nearest
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
    >>> candidates = CandidateSet.build(np.array([[0.0, 0.0], [1.0, 1.0]]), model.embedding_)
    >>> nearest(model.embed(X[:1]), candidates, model.embedding_, k=1).nearest
    array([[0., 0.]])
    """

    outputs: Samples  # c candidates
    embedding: Embedding
    squared_norms: Array  # (c,)  k(y, y)
    g: Array | None = None  # (c, p)

    @classmethod
    def build(
        cls, outputs: Samples, embedding: Embedding, path: str | Path | None = None, *, keep_outputs: bool = True
    ) -> CandidateSet:
        """Embed the candidates once, in the working precision.

        Cost: c·r kernel values and 2·c·r·p flops. Memory: ``working_memory`` and c·(p + 1) numbers; with ``path``, a
        folder that is made and filled as by :meth:`save`, those c·p numbers are written as they come and mapped from
        the disk, never held. Without ``keep_outputs`` the folder has no copy of the candidates themselves: they must
        be given to :meth:`load`.
        """
        width = 16 * (n_columns(outputs) or 1)
        norms = np.empty(n_samples(outputs))
        for rows in row_blocks(len(norms), width):
            norms[rows] = diagonal(embedding.kernel, take(outputs, rows), "output_kernel")
        made = cls(outputs, embedding, norms)
        if path is None:
            return cls(outputs, embedding, norms, embedding(outputs))
        made.save(path, keep_outputs=keep_outputs)
        return cls(outputs, embedding, norms, candidate_store.mapped(Path(path), "g.npy"))

    def save(self, path: str | Path, *, keep_outputs: bool = True) -> None:
        """Write the set into a new folder, embedding it block by block where that is not done yet.

        Outputs that are arrays or CSR matrices are stored too where they are to be kept, other sequences are not. The
        manifest, without which a folder is not a set, comes last; a folder that holds anything but an unfinished set is
        refused.
        """
        dtype = working_dtype() if self.g is None else self.g.dtype
        columns = {"g.npy": self.embedding.n_components, "squared_norms.npy": None}
        blocks = ((rows, (to_host(g), self.squared_norms[rows])) for rows, g in track(self.blocks(), "candidates"))
        identity = {"outputs_sha256": self.hash, "embedding_sha256": self.embedding.fingerprint}
        kept = self.outputs if keep_outputs else None
        candidate_store.write(Path(path), identity, kept, len(self), columns, dtype, blocks)

    @classmethod
    def load(cls, path: str | Path, embedding: Embedding, outputs: Samples | None = None) -> CandidateSet:
        """Open a saved set; g and the outputs are mapped from the disk and read when they are needed.

        Refused are: a folder that is no finished set or of another version, files that are missing, cut off or of
        another shape, a set embedded by another model, and outputs, stored or given, with another hash. Stored outputs
        are read once to find their hash; the values of g are not checked. No file is unpickled.

        Parameters
        ----------
        outputs : the candidates, where they were not stored.
        """
        manifest = candidate_store.read(Path(path), embedding.fingerprint, embedding.n_components)
        made = cls(
            candidate_store.outputs(Path(path), manifest) if outputs is None else outputs,
            embedding,
            np.array(candidate_store.mapped(Path(path), "squared_norms.npy")),
            candidate_store.mapped(Path(path), "g.npy"),
        )
        if n_samples(made.outputs) != len(made) or made.hash != manifest["outputs_sha256"]:
            whose = "The outputs stored in" if outputs is None else "The given outputs are not those of"
            raise ValueError(f"{whose} {path}{' were changed' if outputs is None else ''}: their hash differs.")
        return made

    @cached_property
    def hash(self) -> str:
        """Provenance: the SHA-256 of the outputs' contents, the same for equal outputs in any layout or process."""
        return content_hash(self.outputs)

    def require(self, embedding: Embedding) -> None:
        """Refuse an embedding that is not the one by which the candidates were embedded."""
        if embedding is not self.embedding and embedding.fingerprint != self.embedding.fingerprint:
            raise ValueError(
                "The candidates were embedded by another model: build the set again with "
                "CandidateSet.build(outputs, model.embedding_)."
            )

    def __len__(self) -> int:
        return len(self.squared_norms)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows and their embeddings g where the work is done, in blocks that fit there."""
        p = self.embedding.n_components
        numbers = 2 * p + (len(self.embedding.basis) if self.g is None else 0)  # g, what is made of it, kernel values
        moved = moved_bytes(self.outputs if self.g is None else self.g)
        blocks = computing_blocks(len(self), working_dtype().itemsize * numbers + moved, BLOCK_ROWS)
        if self.g is not None:
            yield from stream(cut(self.g, blocks), asarray, moved=True)
        else:
            on_device = self.embedding.kernel._on_device
            yield from stream(cut(self.outputs, blocks), self.embedding.placed(), on_device)

    def distinct(self) -> CandidateSet:
        """Return the set without repetitions."""
        first = distinct(self.outputs).first
        if len(first) == len(self):
            return self
        g = None if self.g is None else self.g[first]
        return CandidateSet(take(self.outputs, first), self.embedding, self.squared_norms[first], g)

    def points(self) -> Array:
        """Return [g(y), r(y)] for each candidate, shape (c, p+1)."""
        g = np.concatenate([to_host(block) for _, block in self.blocks()])
        residual = np.sqrt(np.maximum(self.squared_norms - row_products(g, g), 0))
        return np.column_stack([g, residual])
