"""Arrays of the laboratory: types, blocks of rows that fit into memory, arrays from any device and from .npz files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.utils import gen_batches

from psilearn.utils import MAX_EXPANSION, Samples, convert_read_errors, decompressed_limit

Array: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Pairs: TypeAlias = tuple[Samples, Array]  # inputs and outputs (n, L)
ErrorMetric: TypeAlias = Callable[[Array, Array], float]  # of truth and prediction


def block_rows(bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows fit into scikit-learn's ``working_memory``, at least one."""
    return max(1, min(n_rows, int(get_config()["working_memory"] * 2**20) // max(1, bytes_per_row)))


def iter_blocks(n_rows: int, bytes_per_row: int, max_rows: int | None = None) -> Iterator[slice]:
    """Split ``range(n_rows)`` into slices of at most ``max_rows`` rows that each fit into ``working_memory``."""
    yield from gen_batches(n_rows, block_rows(bytes_per_row, max_rows or max(1, n_rows)))


def to_numpy(A: Any) -> Any:
    """Return an array, or the array of a tensor on any device."""
    return A.detach().cpu().numpy() if hasattr(A, "detach") else np.asarray(A)


def read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an .npz file, which must not contain pickled objects."""
    with convert_read_errors(path, "an .npz file"):
        try:
            with zipfile.ZipFile(path) as archive:
                _check_members(path, archive.infolist())
                contents = {member.filename: archive.read(member) for member in archive.infolist()}
            return {name.removesuffix(".npy"): read_array(content) for name, content in contents.items()}
        except (zipfile.BadZipFile, SyntaxError, TokenError) as error:  # the last two from headers of arrays
            raise ValueError(f"it is damaged: {error}") from error


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Raise an error if an archive declares sizes that it cannot have, or another compression than NumPy uses."""
    total, compressed = (sum(getattr(member, name) for member in members) for name in ("file_size", "compress_size"))
    if total > decompressed_limit(path) or compressed > path.stat().st_size:
        raise ValueError(
            f"{path} declares {total:,} bytes, {compressed:,} compressed, over {MAX_EXPANSION} times its size or over "
            f"its size: it is damaged."
        )
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise ValueError("it is compressed by another method than NumPy uses, which may need any amount of memory")


def read_array(content: bytes) -> npt.NDArray[Any]:
    """Return the array of the content of an .npy file whose declared size is its real one."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    expected = prod(shape) * dtype.itemsize
    has_no_width = dtype.itemsize == 0 and prod(shape) > 0  # any number of items in no bytes
    if dtype.hasobject or has_no_width or min(shape, default=0) < 0 or expected != len(content) - stream.tell():
        raise ValueError(f"an array of shape {shape} and dtype {dtype} needs {expected:,} bytes")
    stream.seek(0)
    array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array
