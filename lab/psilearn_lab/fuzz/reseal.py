"""Manifests that fit changed files, so that a loader does not stop at a size or a checksum."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import numpy as np
from psilearn._utils.folder_writer import MANIFEST
from psilearn._utils.folders import CHECKSUM, compute_checksum
from psilearn.decoding.candidate_store import STORED_FILES
from psilearn_chem.molecules.library_folder import HASHED_FILES
from scipy import sparse

from psilearn._utils.hashing import content_hash
from psilearn.utils import make_csr, read_array
from psilearn_lab.fuzz.trees import Tree


def reseal(tree: Tree) -> Tree:
    """Return the folder with a manifest that lists the files as they are now; a manifest that is not JSON is kept."""
    content = tree.get(MANIFEST)
    try:
        manifest = json.loads(content) if isinstance(content, bytes) else None
        if isinstance(manifest, dict):
            _describe_files(tree, manifest)
            _describe_contents(tree, manifest)
            manifest.pop(CHECKSUM, None)
            tree[MANIFEST] = json.dumps({**manifest, CHECKSUM: compute_checksum(manifest)}).encode()
    except (ValueError, RecursionError):
        pass  # JSON cannot represent it
    return tree


def _describe_files(tree: Tree, manifest: dict[str, Any]) -> None:
    """Update the entries of all files that exist."""
    prefix = f"{manifest['data']}/" if isinstance(manifest.get("data"), str) else ""
    files = manifest.get("files")
    for name, entry in files.items() if isinstance(files, dict) else ():
        content = tree.get(prefix + name)
        if isinstance(entry, dict) and isinstance(content, bytes):
            entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
            entry.update(_describe_array(content) if name.endswith(".npy") else {})


def _describe_array(content: bytes) -> dict[str, Any]:
    """Return the shape and dtype in the header of an .npy file; nothing if it cannot be read."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        return {"shape": list(shape), "dtype": dtype.str}
    except Exception:  # numpy raises errors of many types for a damaged header
        return {}


def _describe_contents(tree: Tree, manifest: dict[str, Any]) -> None:
    """Update the hashes of the molecules of a library and of the outputs of candidates, if they can be computed."""
    try:
        if "molecules" in manifest:
            digests = [hashlib.sha256(_get_bytes(tree, name)).digest() for name in HASHED_FILES]
            manifest["sha256"] = hashlib.sha256(b"".join(digests)).hexdigest()
        if "outputs_sha256" in manifest:
            outputs = manifest["outputs"]
            parts = [read_array(_get_bytes(tree, name)) for name in STORED_FILES[outputs["kind"]]]
            matrix: Any = parts[0]
            if len(parts) > 1:
                matrix = make_csr(sparse.csr_matrix, parts, outputs["shape"])
            manifest["outputs_sha256"] = content_hash(matrix)
    except Exception:  # the contents are too damaged to have a hash
        return


def _get_bytes(tree: Tree, name: str) -> bytes:
    content = tree[name]
    if not isinstance(content, bytes):
        raise ValueError(f"{name} is not a file")
    return content
