"""Candidates in shards: each shard is a folder of candidates, and a manifest, which is written last, lists them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from psilearn._backend import Compute
from psilearn._distributed import ChunkedRows, map_chunks
from psilearn._linalg import Array
from psilearn._utils.folders import FolderError, FolderFormat, ManifestFolder
from psilearn._utils.hashing import content_hash
from psilearn._utils.samples import Samples, n_samples
from psilearn.decoding import candidate_store
from psilearn.embedding import Embedding

FORMAT = FolderFormat(
    "psilearn.candidate_shards",
    1,
    "set of candidates in shards",
    "Build the candidates again.",
    resume="The build was interrupted; call candidate_set with the same outputs and path again to resume it.",
)
DRAFT = ".draft"  # suffix of a shard that is being written


class Shard(NamedTuple):
    """One shard: its folder, and the number and the SHA-256 of its outputs."""

    name: str
    n: int
    outputs_sha256: str


class ShardContents(NamedTuple):
    """The arrays of a shard, mapped from the disk."""

    outputs: Samples
    squared_norms: Array
    g: Array


def build_shards(outputs: ChunkedRows, embedding: Embedding, path: Path, build: Any, compute: Compute) -> None:
    """Embed each chunk of outputs and write it as a shard; shards that are complete already are kept.

    ``build(outputs, embedding, folder, compute)`` writes one set of candidates. The folder must be the same on all
    workers, such as one of a shared file system.
    """
    with FORMAT.claim(path) as writer:
        names = {number: f"shard-{number:05d}" for number in range(len(outputs.blocks))}
        write = partial(_write_shard, path=path.resolve(), embedding=embedding, build=build, compute=compute)
        shards = map_chunks(write, outputs, selection=names)
        for draft in path.glob(f"*{DRAFT}"):  # of workers that were lost
            shutil.rmtree(draft, ignore_errors=True)
        writer.finish({"embedding_sha256": embedding.fingerprint, "shards": [shard._asdict() for shard in shards]})


def read_shards(path: Path, embedding: Embedding) -> list[Shard]:
    """Return the shards of a complete folder whose candidates were embedded by this embedding."""
    folder = FORMAT.open(path)
    with folder.convert_errors():
        shards = [
            Shard(str(entry["name"]), int(entry["n"]), str(entry["outputs_sha256"])) for entry in _entries(folder)
        ]
        embedding_hash = folder.content["embedding_sha256"]
    if embedding_hash != embedding.fingerprint:
        raise folder.error("it was embedded by another model")
    return shards


def open_shard(path: Path, shard: Shard, embedding: Embedding, *, verify: bool) -> ShardContents:
    """Map the arrays of a shard; ``verify`` reads all files to compare their SHA-256."""
    folder = candidate_store.read(path / shard.name, embedding.fingerprint, embedding.n_components, verify=verify)
    outputs = candidate_store.open_outputs(folder)
    if n_samples(outputs) != shard.n or folder.content["outputs_sha256"] != shard.outputs_sha256:
        raise folder.error("it is not the shard that the manifest of the set lists")
    norms = folder.load_array("squared_norms.npy")
    if not np.isfinite(norms).all():
        raise folder.error("squared_norms.npy contains values that are not finite")
    return ShardContents(outputs, norms, folder.load_array("g.npy", mapped=True))


def _entries(folder: ManifestFolder) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = folder.content["shards"]
    expected = [f"shard-{number:05d}" for number in range(len(entries))]
    if [entry["name"] for entry in entries] != expected:
        raise ValueError("its shards are not numbered from 0")
    return entries


def _write_shard(outputs: Samples, name: str, path: Path, embedding: Embedding, build: Any, compute: Compute) -> Shard:
    """Write one shard under another name and rename it, unless it is complete; the task may run more than once."""
    if not hasattr(outputs, "shape") or outputs.dtype.kind not in "bifu":
        raise TypeError("Candidates in shards are stored, which requires rows of numbers, dense or CSR.")
    shard = Shard(name, n_samples(outputs), content_hash(outputs))
    if _is_complete(path, shard, embedding):
        return shard
    shutil.rmtree(path / name, ignore_errors=True)
    draft = path / f"{name}.{uuid4().hex}{DRAFT}"
    try:
        build(outputs, embedding, draft, compute=compute)
        draft.replace(path / name)
    except OSError:
        if not _is_complete(path, shard, embedding):  # another run of the task has not been faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return shard


def _is_complete(path: Path, shard: Shard, embedding: Embedding) -> bool:
    try:
        open_shard(path, shard, embedding, verify=True)
    except (FolderError, OSError, ValueError):
        return False
    return True
