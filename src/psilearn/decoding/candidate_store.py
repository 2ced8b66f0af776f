"""Candidates in a folder: plain .npy files and a manifest, which is written last."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples

FORMAT, VERSION = "psilearn.CandidateSet", 1
MANIFEST, UNFINISHED = "manifest.json", "manifest.json.unfinished"
CSR = ("data", "indices", "indptr")


def write(
    path: Path,
    identity: Mapping[str, str],
    outputs: Samples | None,
    n: int,
    columns: Mapping[str, int | None],
    dtype: np.dtype[Any],
    blocks: Iterable[tuple[slice, tuple[Array, ...]]],
) -> None:
    """Fill a new folder with tables of n rows, which come block by block, and with the outputs if they are arrays.

    ``columns`` holds the width of each table, in the order in which blocks hold them; None for a column of float64.
    """
    _claim_folder(path)
    kind, arrays = _arrays_of(outputs)
    needed = n * sum(8 if p is None else p * dtype.itemsize for p in columns.values())
    needed += sum(array.nbytes for array in arrays.values())
    free = shutil.disk_usage(path).free
    if needed > free:  # a write to a mapped file on a full disk would end the process
        raise OSError(f"{path}: the candidates need {needed:,} bytes, but only {free:,} are free on this disk.")
    tables = {}
    for name, p in columns.items():
        shape, table_dtype = ((n,), np.float64) if p is None else ((n, p), dtype)
        tables[name] = np.lib.format.open_memmap(path / name, mode="w+", dtype=table_dtype, shape=shape)
    for rows, values in blocks:
        for table, value in zip(tables.values(), values, strict=True):
            table[rows] = value
    for table in tables.values():
        table.flush()
    for name, array in arrays.items():
        np.save(path / name, array, allow_pickle=False)
    files = {
        name: {"shape": list(array.shape), "dtype": array.dtype.str, "bytes": (path / name).stat().st_size}
        for name, array in [*tables.items(), *arrays.items()]
    }
    described = {"kind": kind, "shape": [n] if outputs is None or kind == "not stored" else list(outputs.shape)}
    manifest = {"format": FORMAT, "version": VERSION, **identity, "outputs": described, "files": files}
    (path / UNFINISHED).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    (path / UNFINISHED).replace(path / MANIFEST)


def read(path: Path, fingerprint: str, p: int) -> dict[str, Any]:
    """Return the manifest of a complete folder whose g belongs to the embedding with this fingerprint."""
    if not (path / MANIFEST).is_file():
        unfinished = (path / UNFINISHED).is_file()
        raise ValueError(
            f"{path} holds {'unfinished' if unfinished else 'no saved'} candidates: it has no {MANIFEST}"
            f"{'; build them again' if unfinished else ''}."
        )
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        is_ours = manifest["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path / MANIFEST} is not the manifest of saved candidates.") from error
    if not is_ours:
        raise ValueError(f"{path} holds {manifest['format']!r}, not saved candidates.")
    if manifest.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {manifest.get('version')!r} of the format; this psilearn reads version {VERSION}: "
            f"build the candidates again."
        )
    try:
        if manifest["embedding_sha256"] != fingerprint:
            raise ValueError(f"{path} was embedded by another model: build the candidates again with this one.")
        files = {name: (tuple(file["shape"]), file["dtype"], file["bytes"]) for name, file in manifest["files"].items()}
        n, expected = files["squared_norms.npy"][0][0], (files["g.npy"][0], manifest["outputs"]["shape"][0])
        identity = manifest["outputs"]["kind"], manifest["outputs_sha256"]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{path / MANIFEST} is damaged: {error!r}.") from error
    if expected != ((n, p), n) or not all(isinstance(value, str) for value in identity):
        raise ValueError(f"{path / MANIFEST} contradicts itself: g {expected[0]}, expected {(n, p)}.")
    stored = {"array": ["outputs.npy"], "not stored": []}.get(identity[0], [f"outputs_{part}.npy" for part in CSR])
    if set(files) != {"g.npy", "squared_norms.npy", *stored}:
        raise ValueError(f"{path / MANIFEST} is damaged: it names the files {sorted(files)}.")
    for name, (shape, dtype, size) in files.items():
        _check_file(path / name, shape, dtype, size)
    return manifest


def open_array(path: Path, name: str) -> Any:
    """Return an array of the folder, memory-mapped and read-only."""
    return np.load(path / name, mmap_mode="r", allow_pickle=False)


def open_outputs(path: Path, manifest: dict[str, Any]) -> Samples:
    """Return the stored outputs in the form in which they were given."""
    kind = manifest["outputs"]["kind"]
    if kind == "array":
        return open_array(path, "outputs.npy")
    if kind in ("csr_matrix", "csr_array"):
        parts = tuple(open_array(path, f"outputs_{part}.npy") for part in CSR)
        return getattr(sparse, kind)(parts, shape=tuple(manifest["outputs"]["shape"]), copy=False)
    raise ValueError(
        f"The outputs of {path} were not stored, on request or because they are neither an array nor a CSR matrix: "
        f"pass them as SharedCandidates.load(path, embedding, outputs=...)."
    )


def _arrays_of(outputs: Samples) -> tuple[str, dict[str, Any]]:
    """Return the kind of outputs and the arrays to store; tensors are stored as arrays."""
    outputs = tensor_to_numpy(outputs)
    if sparse.issparse(outputs) and outputs.format == "csr":
        kind = "csr_array" if isinstance(outputs, sparse.sparray) else "csr_matrix"
        return kind, {f"outputs_{part}.npy": getattr(outputs, part) for part in CSR}
    if isinstance(outputs, np.ndarray) and not outputs.dtype.hasobject:
        return "array", {"outputs.npy": outputs}
    return "not stored", {}


def _claim_folder(path: Path) -> None:
    """Create the folder, or use it if it is empty or saving was interrupted there; reject anything else."""
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file: candidates are saved as a folder.")
    if (path / MANIFEST).exists():
        raise FileExistsError(f"{path} holds saved candidates already: load them, or choose another folder.")
    if path.is_dir() and any(path.iterdir()) and not (path / UNFINISHED).is_file():
        raise FileExistsError(f"{path} holds other files: choose a new folder for the candidates.")
    path.mkdir(parents=True, exist_ok=True)
    (path / UNFINISHED).write_text(json.dumps({"format": FORMAT, "version": VERSION}), encoding="utf-8")


def _check_file(path: Path, shape: tuple[int, ...], dtype: str, size: int) -> None:
    if not path.is_file():
        raise ValueError(f"{path} is missing: the saved candidates are not complete.")
    if path.stat().st_size != size:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes instead of {size:,}: it was truncated or changed.")
    try:
        array = open_array(path.parent, path.name)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy file: {error}") from error
    if array.shape != shape or array.dtype.str != dtype:
        raise ValueError(
            f"{path} holds shape {array.shape} of {array.dtype.str}; the manifest states {shape} of {dtype}."
        )
