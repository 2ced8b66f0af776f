"""Candidates on disk: a folder of shards, files of arrays, and a manifest, written last, that lists them.

Each shard is written under another name and renamed, so that several workers can write and an interrupted build keeps
what is complete. The manifest has the size and the SHA-256 of each shard.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, iter_blocks, tensor_to_numpy, to_numpy
from psilearn._linalg import Array
from psilearn._utils.array_files import SHA256, UNSEALED, FileFormat, check_seal, seal
from psilearn._utils.files import MAX_JSON_BYTES, create_folder, open_regular_file, parse_json, write_atomically
from psilearn._utils.hashing import content_hash
from psilearn._utils.samples import Samples, make_csr, n_samples
from psilearn._utils.stacked_rows import StackedRows
from psilearn.embedding import Embedding

if TYPE_CHECKING:
    from psilearn.decoding.embedded_outputs import EmbeddedOutputs

FORMAT = FileFormat("psilearn.candidates", 1, "set of candidates", "Build the candidates again.")
MANIFEST = "manifest.json"
SHARD_NAME = "shard-{:05d}.safetensors"
OWN_FILES = re.compile(r"shard-\d{5,}\.safetensors|\.(shard-\d{5,}\.safetensors|manifest\.json)\..*\.tmp")
SHARD_BYTES = 2**27
CSR_PARTS = ("data", "indices", "indptr")
STORED = {"array": ("outputs",), "csr_array": CSR_PARTS, "csr_matrix": CSR_PARTS, "not stored": ()}


class Shard(NamedTuple):
    """One shard: its file, the number of its outputs, their content hash, and the size and the SHA-256 of the file."""

    name: str
    n: int
    outputs_sha256: str
    n_bytes: int
    sha256: str


class ShardContents(NamedTuple):
    """The arrays of a shard, mapped from the disk; outputs are None if they were not stored."""

    outputs: Samples | None
    squared_norms: Array
    g: Array


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Create a folder, or continue with one in which a build was interrupted; reject any other."""
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file: choose a new folder for the candidates.")
    names = {file.name for file in path.iterdir()} if path.is_dir() else set()
    if MANIFEST in names and _is_manifest(path):
        raise FileExistsError(f"{path} already contains a set of candidates: open it, or choose another folder.")
    if not all(map(OWN_FILES.fullmatch, names)):
        raise FileExistsError(f"{path} contains other files: choose a new or empty folder for the candidates.")
    create_folder(path)
    try:
        yield
    finally:
        if not any(path.iterdir()):
            path.rmdir()


def shard_slices(n: int, row_bytes: int) -> list[slice]:
    """Return the rows of each shard."""
    size = max(1, SHARD_BYTES // max(1, row_bytes))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def require_space(path: Path, n_bytes: int) -> None:
    """Raise an error if the disk is too small, before anything is computed."""
    free = shutil.disk_usage(path).free
    if n_bytes > free:
        raise OSError(f"{path}: the candidates need {n_bytes:,} bytes, but only {free:,} are free on this disk.")


def write_shard(
    path: Path, number: int, part: EmbeddedOutputs, dtype: np.dtype[Any], keep_outputs: bool, compute: Compute
) -> Shard:
    """Embed outputs and write them as a shard, unless the shard is complete already."""
    embedding: Any = part.embedding
    kind, arrays = _arrays_of(part.outputs if keep_outputs else None)
    content = {
        "embedding_sha256": embedding.fingerprint,
        "outputs_sha256": content_hash(part.outputs),
        "outputs": {"kind": kind, "shape": list(getattr(part.outputs, "shape", [n_samples(part.outputs)]))},
        "dtype": dtype.str,
    }
    file = path / SHARD_NAME.format(number)
    try:
        found = FORMAT.read(file)
    except (OSError, ValueError):
        found = None
    if found is None or found.content != content:
        g = np.concatenate([to_numpy(block).astype(dtype, copy=False) for _, block in part.blocks(compute)])
        found = FORMAT.write(file, content, {**arrays, "g": g, "squared_norms": np.asarray(part.squared_norms)})
    return Shard(file.name, n_samples(part.outputs), content["outputs_sha256"], found.n_bytes, found.sha256)


def finish(path: Path, embedding: Embedding, shards: Sequence[Shard]) -> None:
    """Write the manifest; remove what an interrupted build of other candidates and lost workers left."""
    listed = {shard.name for shard in shards}
    for file in path.iterdir():
        if OWN_FILES.fullmatch(file.name) and file.name not in listed:
            file.unlink(missing_ok=True)
    content = {
        "format": FORMAT.name,
        "version": FORMAT.version,
        "embedding_sha256": embedding.fingerprint,
        "shards": [shard._asdict() for shard in shards],
    }
    write_atomically(path / MANIFEST, seal(json.dumps({**content, SHA256: UNSEALED}, indent=1).encode())[0])


def read_shards(path: Path, embedding: Embedding) -> list[Shard]:
    """Return the shards of a complete folder whose candidates were embedded by this embedding."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: there is no set of candidates to open.")
    if not (path / MANIFEST).exists():
        if path.is_dir() and any(OWN_FILES.fullmatch(file.name) for file in path.iterdir()):
            raise FORMAT.error(path, "its build was interrupted; run it again with the same candidates to resume it")
        raise FORMAT.error(path, f"it has no {MANIFEST}")
    with FORMAT.convert_errors(path):
        text, content = _read_manifest(path)
        if content.get("format") != FORMAT.name or content.get("version") != FORMAT.version:
            raise ValueError(
                f"{MANIFEST} is that of {content.get('format')!r:.80}, version {content.get('version')!r:.80}; this "
                f"psilearn reads {FORMAT.name}, version {FORMAT.version}"
            )
        check_seal(text, content[SHA256])
        shards = [Shard(**entry) for entry in content["shards"]]
        if not shards or [shard.name for shard in shards] != [SHARD_NAME.format(i) for i in range(len(shards))]:
            raise ValueError("its shards are not numbered from 0")
        if content["embedding_sha256"] != embedding.fingerprint:
            raise ValueError("it was embedded by another model")
    return shards


def open_shard(path: Path, shard: Shard, embedding: Embedding, *, verify: bool) -> ShardContents:
    """Map the arrays of a shard; ``verify`` reads and validates all of them."""
    file_path = path / shard.name
    file = FORMAT.read(file_path, mapped=True, verify=verify)
    with FORMAT.convert_errors(file_path):
        if (file.sha256, file.n_bytes) != (shard.sha256, shard.n_bytes):
            raise ValueError("it is not the shard that the manifest of the set lists")
        outputs = _outputs_of(file.arrays, **file.content["outputs"])
        g, norms = file.arrays["g"], np.array(file.arrays["squared_norms"])
        n, shape = shard.n, (shard.n, embedding.n_components)
        if g.shape != shape or norms.shape != (n,) or n < 1 or (outputs is not None and n_samples(outputs) != n):
            raise ValueError(f"{n} outputs have g of shape {g.shape} and norms of shape {norms.shape}")
        if g.dtype not in (np.float32, np.float64) or norms.dtype != np.float64:
            raise ValueError(f"g and norms have dtypes {g.dtype} and {norms.dtype}")
        if not np.isfinite(norms).all():
            raise ValueError("squared_norms has values that are not finite")
        expected = getattr(embedding.landmarks, "shape", None)
        if outputs is not None and expected is not None and outputs.shape[1:] != expected[1:]:
            raise ValueError(f"its outputs have shape {outputs.shape}, unlike those of the embedding")
        if verify:
            _check_values(outputs, g, shard, embedding)
    return ShardContents(outputs, norms, g)


def stack(parts: Sequence[Any]) -> Any:
    """Return the rows of all shards as one collection, without copying them."""
    return parts[0] if len(parts) == 1 else StackedRows(parts)


def _check_values(outputs: Samples | None, g: Array, shard: Shard, embedding: Embedding) -> None:
    """Raise an error if values are not finite or not outputs of the kernel, or not those of the manifest."""
    if not all(np.isfinite(g[rows]).all() for rows in iter_blocks(len(g), 8 * (1 + g.shape[1]))):
        raise ValueError("g has values that are not finite")
    if outputs is not None:
        checked = embedding.kernel.check(outputs, "its outputs")
        if n_samples(embedding.landmarks):
            embedding.kernel.check_same_kind(checked, "its outputs", embedding.landmarks, "those of the embedding")
        if content_hash(outputs) != shard.outputs_sha256:
            raise ValueError("its outputs were changed: their hash differs")


def _outputs_of(arrays: Any, kind: str, shape: list[int]) -> Samples | None:
    """Return stored outputs in the form in which they were given; None if they were not stored."""
    parts = tuple(arrays[name] for name in STORED[kind])
    if set(arrays) != {"g", "squared_norms", *STORED[kind]}:
        raise ValueError(f"it has the arrays {', '.join(arrays)}")
    if kind == "not stored":
        return None
    return parts[0] if kind == "array" else make_csr(getattr(sparse, kind), parts, shape)


def _arrays_of(outputs: Samples | None) -> tuple[str, dict[str, Any]]:
    """Return the kind of outputs and the arrays to store; tensors are stored as arrays."""
    outputs = tensor_to_numpy(outputs)
    if sparse.issparse(outputs) and outputs.format == "csr":
        kind = "csr_array" if isinstance(outputs, sparse.sparray) else "csr_matrix"
        return kind, {part: getattr(outputs, part) for part in CSR_PARTS}
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        return "array", {"outputs": outputs}
    return "not stored", {}


def _is_manifest(path: Path) -> bool:
    try:
        return bool(_read_manifest(path)[1]["format"] == FORMAT.name)
    except Exception:  # the file of something else
        return False


def _read_manifest(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the text of a manifest and its content."""
    with open_regular_file(path / MANIFEST) as file:
        text = file.read(MAX_JSON_BYTES)
    return text, parse_json(text.decode("ascii"))
