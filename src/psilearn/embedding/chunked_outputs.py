"""The distinct outputs of a collection in chunks, as far as the client has memory for them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from psilearn._backend import working_bytes
from psilearn._distributed import ChunkedRows, reduce_chunks
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, collection_bytes, distinct, n_samples, object_keys, take
from psilearn.embedding.coordinates import KnownOutputs

KEY_BYTES = 250  # of each distinct output while they are searched for: a key, its place in a dictionary, an index


def known_outputs_of(Y: ChunkedRows, n_components: int, sample_size: int, random_state: Any) -> KnownOutputs:
    """Return the distinct outputs, or those of a random sample if all of them do not fit into ``working_memory``.

    A fitted model holds the distinct labeled outputs and their embeddings, the default candidates. They are gathered if
    they need at most ``working_memory``; the row of each labeled output among them is not kept.
    """
    limit = working_bytes()
    found = reduce_chunks(_distinct_of_chunk, _merge_distinct, Y, common=(limit, KEY_BYTES + 8 * n_components))
    rows = found.rows
    if not found.is_complete:
        rng = validation.as_random_state(random_state)
        rows = np.sort(rng.choice(len(Y), min(len(Y), sample_size), replace=False))
        warnings.warn(
            f"The distinct outputs y and their embeddings need more than working_memory ({limit:,} bytes): the default "
            f"candidates are those of {len(rows):,} random rows. Give candidates to predict, such as "
            f"model.candidate_set(Y, path), or raise sklearn.set_config(working_memory=...).",
            UserWarning,
            stacklevel=5,
        )
    outputs = Y[rows]
    if not found.is_complete:
        outputs = take(outputs, distinct(outputs).first)
    return KnownOutputs(outputs, np.empty(0, dtype=np.intp), n_samples(outputs), np.empty(0))


@dataclass(frozen=True)
class _DistinctRows:
    """The first rows of distinct objects among consecutive ones; without them if they need too much memory."""

    keys: tuple[Hashable, ...]
    rows: Index
    n: int  # objects seen
    n_bytes: int
    limit: int
    is_complete: bool = True

    def within_limit(self) -> _DistinctRows:
        """Return the same, without the objects if they exceed the limit."""
        if self.is_complete and self.n_bytes <= self.limit:
            return self
        return _DistinctRows((), np.empty(0, dtype=np.intp), self.n, 0, self.limit, False)


def _distinct_of_chunk(Y: Samples, limit: int, bytes_per_output: int) -> _DistinctRows:
    first = distinct(Y).first
    kept = take(Y, first)
    keys = tuple(_portable(key) for key in object_keys(kept))
    n_bytes = collection_bytes(kept) + len(first) * bytes_per_output
    return _DistinctRows(keys, first, n_samples(Y), n_bytes, limit).within_limit()


def _merge_distinct(parts: Sequence[_DistinctRows]) -> _DistinctRows:
    """Return the distinct objects of consecutive parts; the first of equal ones stays."""
    limit = parts[0].limit
    first: dict[Hashable, int] = {}
    start, n_bytes = 0, 0.0
    for part in parts:
        before = len(first)
        for key, row in zip(part.keys, part.rows.tolist(), strict=True):
            first.setdefault(key, start + row)
        n_bytes += part.n_bytes * (len(first) - before) / max(1, len(part.keys))
        start += part.n
    rows = np.fromiter(first.values(), np.intp, len(first))
    is_complete = all(part.is_complete for part in parts)
    return _DistinctRows(tuple(first), rows, start, int(n_bytes), limit, is_complete).within_limit()


def _portable(key: Hashable) -> Hashable:
    """Return a key that no object of another process has; objects without known contents are all distinct."""
    is_identity = isinstance(key, tuple) and len(key) == 2 and key[0] == "id"
    return ("id", uuid4().hex) if is_identity else key
