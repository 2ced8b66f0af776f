"""Candidates in a manifest folder: the outputs, g and k(y, y) as .npy files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils.csr_parts import make_csr
from psilearn._utils.folders import FolderFormat, ManifestFolder
from psilearn._utils.samples import Samples
from psilearn.decoding.build_progress import BuildProgress, TableShape

FORMAT = FolderFormat("psilearn.candidates", 3, "set of candidates", "Build the candidates again.")
RESUMABLE = replace(FORMAT, resume="The build was interrupted; run it again to resume it.")
FLOATS = (np.dtype(np.float32).str, np.dtype(np.float64).str)
CSR_PARTS = ("data", "indices", "indptr")
STORED_FILES = {
    "array": ("outputs.npy",),
    "csr_array": tuple(f"outputs_{part}.npy" for part in CSR_PARTS),
    "csr_matrix": tuple(f"outputs_{part}.npy" for part in CSR_PARTS),
    "not stored": (),
}


Blocks = Iterable[tuple[slice, tuple[Array, ...]]]


def write(
    path: Path,
    identity: Mapping[str, str],
    outputs: Samples | None,
    tables: Sequence[TableShape],
    blocks: Callable[[int], Blocks],
    *,
    resume: bool = False,
) -> None:
    """Fill a new folder with tables, which come block by block, and with the outputs if they are arrays.

    ``blocks(start)`` yields the rows from ``start`` on, and their parts of each table. With ``resume``, the rows of an
    interrupted call with the same identity and tables are kept.
    """
    kind, arrays = _arrays_of(outputs)
    n = tables[0].shape[0]
    shape = [n] if outputs is None or kind == "not stored" else list(outputs.shape)
    with (RESUMABLE if resume else FORMAT).claim(path) as writer:
        progress = BuildProgress(path, identity, tables)
        n_done = progress.read() if resume else 0
        if not n_done:
            writer.require_space(sum(table.n_bytes for table in tables) + sum(array.nbytes for array in arrays))
        mapped = [writer.create_array(*table, keep=n_done > 0) for table in tables]
        with progress.keep(mapped) if resume else nullcontext():
            for rows, values in blocks(n_done):
                for table, value in zip(mapped, values, strict=True):
                    table[rows] = value
                progress.n_done = rows.stop
                progress.write_at_times(mapped)
        for name, array in zip(STORED_FILES[kind], arrays, strict=True):
            writer.save_array(name, array)
        writer.finish({**identity, "outputs": {"kind": kind, "shape": shape}})
        progress.remove()


def read(path: Path, fingerprint: str, p: int, *, verify: bool = True) -> ManifestFolder:
    """Open a complete folder whose g belongs to the embedding with this fingerprint; ``verify`` reads all files."""
    folder = FORMAT.open(path, verify=verify)
    with folder.convert_errors():
        outputs, embedding_hash = folder.content["outputs"], folder.content["embedding_sha256"]
        expected = {"g.npy", "squared_norms.npy", *STORED_FILES[outputs["kind"]]}
        n = outputs["shape"][0]
        shapes = [folder.files[name].shape for name in ("g.npy", "squared_norms.npy")]
        dtypes = [folder.files[name].dtype for name in ("g.npy", "squared_norms.npy")]
        is_consistent = set(folder.files) == expected and isinstance(folder.content["outputs_sha256"], str)
    if embedding_hash != fingerprint:
        raise folder.error("it was embedded by another model")
    if not is_consistent or shapes != [(n, p), (n,)]:
        raise folder.error(f"its manifest contradicts itself: {n} outputs, g and norms of shape {shapes}")
    if dtypes[0] not in FLOATS or dtypes[1] != FLOATS[1]:
        raise folder.error(f"g and norms have dtypes {dtypes}")
    return folder


def open_outputs(folder: ManifestFolder) -> Samples:
    """Return the stored outputs in the form in which they were given, memory-mapped."""
    kind = folder.content["outputs"]["kind"]
    if kind == "not stored":
        raise ValueError(
            f"The outputs of {folder.path} were not stored, on request or because they are neither an array nor a CSR "
            f"matrix: pass them as SharedCandidates.load(path, embedding, outputs=...)."
        )
    parts = tuple(folder.load_array(name, mapped=True) for name in STORED_FILES[kind])
    if kind == "array":
        return parts[0]
    with folder.convert_errors():
        return make_csr(getattr(sparse, kind), parts, folder.content["outputs"]["shape"])


def _arrays_of(outputs: Samples) -> tuple[str, list[Any]]:
    """Return the kind of outputs and the arrays to store; tensors are stored as arrays."""
    outputs = tensor_to_numpy(outputs)
    if sparse.issparse(outputs) and outputs.format == "csr":
        kind = "csr_array" if isinstance(outputs, sparse.sparray) else "csr_matrix"
        return kind, [getattr(outputs, part) for part in CSR_PARTS]
    if isinstance(outputs, np.ndarray) and not outputs.dtype.hasobject:
        return "array", [outputs]
    return "not stored", []
