"""Files of finished chunks of fingerprints, from which an interrupted computation is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from psilearn.io import FileFormat, pack_texts, unpack_texts

Chunk: TypeAlias = tuple[NDArray[np.uint8], list[str], list[str]]  # bits (n, b), formulas, canonical SMILES

FORMAT = FileFormat("psilearn_chem.fingerprints", 1, "chunk of fingerprints", "Compute it again.")
SUFFIX = ".chunk"


def write_chunk(folder: Path, key: str, chunk: Chunk) -> None:
    """Write a chunk of the molecules with this key."""
    bits, formulas, canonical_smiles = chunk
    texts, ends = pack_texts([*formulas, *canonical_smiles])
    FORMAT.write(folder / f"{key}{SUFFIX}", key, {"bits": bits, "texts": texts, "ends": ends})


def read_chunk(folder: Path, key: str, shape: tuple[int, int]) -> Chunk | None:
    """Return the chunk with this key; None if it has no ordinary file, or one that was truncated or changed."""
    try:
        file = FORMAT.read(folder / f"{key}{SUFFIX}")
        bits, texts = file.arrays["bits"], unpack_texts(file.arrays["texts"], file.arrays["ends"])
    except (OSError, ValueError, KeyError):
        return None
    n = shape[0]
    is_expected = file.content == key and bits.shape == shape and bits.dtype == np.uint8 and len(texts) == 2 * n
    return (bits, texts[:n], texts[n:]) if is_expected else None


def remove_chunks(folder: Path) -> None:
    """Remove all chunks, also those that were being written, and the folder unless something else is in it."""
    for file in (*folder.glob(f"*{SUFFIX}"), *folder.glob(f".*{SUFFIX}.*.tmp")):
        file.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
