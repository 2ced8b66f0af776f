"""A set of outputs with what decoding needs of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from psilearn._backend import Compute, block_rows, iter_blocks, row_blocks, stream
from psilearn._linalg import Array
from psilearn._utils.samples import Distinct, Index, Samples, check_collection, distinct, n_columns, n_samples, take
from psilearn.embedding import Embedding
from psilearn.embedding.embedding import MAX_EMBEDDED_ROWS


@dataclass(frozen=True, eq=False, repr=False)
class OutputSet:
    """Outputs, and for searches with an embedding their k(y, y) and, if they are embedded already, g(y)."""

    outputs: Samples
    embedding: Embedding | None = None
    squared_norms: Array | None = None  # (c,)
    g: Array | None = None  # (c, p)

    def __post_init__(self) -> None:
        size = check_collection(self.outputs, "candidates")
        for name, values in (("squared_norms", self.squared_norms), ("g", self.g)):
            if values is not None and len(values) != size:
                raise ValueError(f"{name} has {len(values)} rows, but there are {size} outputs.")
        if self.embedding is not None and self.squared_norms is None:
            object.__setattr__(self, "squared_norms", compute_squared_norms(self.outputs, self.embedding))

    def __len__(self) -> int:
        return n_samples(self.outputs)

    def _select(self, rows: slice | Index) -> Self:
        """Return some of the outputs; slices of arrays are views."""
        return type(self)(
            take(self.outputs, rows),
            self.embedding,
            None if self.squared_norms is None else self.squared_norms[rows],
            None if self.g is None else take(self.g, rows),
        )

    def _without_embedding(self) -> OutputSet:
        """Return the outputs alone."""
        return self if self.squared_norms is None else OutputSet(self.outputs)

    @cached_property
    def _repetitions(self) -> Distinct:
        """Which outputs are equal."""
        return distinct(self.outputs)

    @property
    def _unique(self) -> Self:
        """The distinct outputs; the first of equal ones stays."""
        # An attribute that refers to the object itself would keep its arrays in memory until garbage is collected.
        return self if len(self._repetitions.first) == len(self) else self._first_of_equal

    @cached_property
    def _first_of_equal(self) -> Self:
        """The distinct outputs as a new set."""
        first = self._repetitions.first
        result = self._select(first)
        result.__dict__["_repetitions"] = Distinct(np.arange(len(first)), np.arange(len(first)))
        return result

    def _embedded_blocks(self, embedding: Embedding, compute: Compute) -> Iterator[tuple[slice, Any]]:
        """Yield consecutive rows and their embeddings on the device, in blocks that fit into its memory."""
        g, (r, p) = self.g, embedding.basis.shape
        if g is not None and compute.device is None:
            step = block_rows(compute.dtype.itemsize * 2 * p, min(len(g), MAX_EMBEDDED_ROWS))
            for start in range(0, len(g), step):
                rows = slice(start, min(start + step, len(g)))
                yield rows, np.asarray(g[rows])
            return
        source = self.outputs if g is None else g
        numbers = 2 * p + (r if g is None else 0)  # g, the bounds made of it, and kernel values
        bytes_per_row = compute.itemsize * numbers + compute.transfer_bytes(source)
        blocks = row_blocks(source, compute.iter_blocks(len(self), bytes_per_row, MAX_EMBEDDED_ROWS))
        if g is None:
            yield from stream(blocks, embedding.block_function(compute), compute, embedding.kernel.supports_torch)
        else:
            yield from stream(blocks, compute.asarray, compute, copy_ahead=True)


def compute_squared_norms(outputs: Samples, embedding: Embedding) -> Array:
    """Return k(y, y) of outputs, (c,), block by block."""
    norms = np.empty(n_samples(outputs))
    for rows in iter_blocks(len(norms), 16 * (n_columns(outputs) or 1)):
        norms[rows] = embedding.kernel.diag(take(outputs, rows))
    return norms


def known_embedding(embedding: Embedding | None) -> Embedding:
    """Return the embedding of candidates; raise if there is none."""
    if embedding is None:
        raise ValueError(
            "The candidates do not belong to a model yet: pass them to a method of a model, or use "
            "candidates.for_embedding(model.embedding_)."
        )
    return embedding
