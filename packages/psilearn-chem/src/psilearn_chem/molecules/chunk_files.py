"""Files of finished chunks of fingerprints, from which an interrupted computation is resumed."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import write_atomically

Chunk: TypeAlias = tuple[NDArray[np.uint8], list[str], list[str]]  # bits (n, b), formulas, canonical SMILES

SUFFIX = ".chunk"
DIGEST_SIZE = 32
MAX_TEXT_BYTES = 2**28  # of the formulas and canonical SMILES of a chunk


def write_chunk(folder: Path, key: str, chunk: Chunk) -> None:
    """Write a chunk; its file begins with the SHA-256 of the key and the contents."""
    bits, *texts = chunk
    content = zlib.compress(bits.tobytes() + json.dumps(texts).encode(), 1)
    write_atomically(folder / f"{key}{SUFFIX}", _digest(key, content) + content)


def read_chunk(folder: Path, key: str, shape: tuple[int, int]) -> Chunk | None:
    """Return the chunk with this key; None if it has no ordinary file, or one that was truncated or changed."""
    path = folder / f"{key}{SUFFIX}"
    try:
        if path.is_symlink() or not path.is_file():
            return None
        stored = path.read_bytes()
        digest, content = stored[:DIGEST_SIZE], stored[DIGEST_SIZE:]
        return _decode(content, shape) if digest == _digest(key, content) else None
    except (OSError, ValueError, TypeError, zlib.error):
        return None


def remove_chunks(folder: Path) -> None:
    """Remove all chunks, also those that were being written, and the folder unless something else is in it."""
    for file in (*folder.glob(f"*{SUFFIX}"), *folder.glob(f".*{SUFFIX}.*.tmp")):
        file.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _decode(content: bytes, shape: tuple[int, int]) -> Chunk | None:
    """Return the contents of a chunk; None if they are not those of ``shape[0]`` molecules."""
    n_molecules, n_bytes = shape
    raw = zlib.decompressobj().decompress(content, n_molecules * n_bytes + MAX_TEXT_BYTES)
    bits = np.frombuffer(raw, np.uint8, n_molecules * n_bytes).reshape(shape)
    formulas, canonical_smiles = json.loads(raw[bits.size :])
    return (bits, formulas, canonical_smiles) if len(formulas) == len(canonical_smiles) == n_molecules else None
