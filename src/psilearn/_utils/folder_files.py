"""The files of a manifest folder: their description with a checksum, and readers that execute nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.files import open_regular_file, write_atomically

ARRAY_SUFFIX = ".npy"
ARRAY_KINDS = "biufcUSmM"  # of dtypes: numbers, texts, dates
MAX_JSON_BYTES = 2**28


@dataclass(frozen=True)
class FileEntry:
    """The size and the SHA-256 of a file, and the shape and dtype if it is an array."""

    size: int
    sha256: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    @classmethod
    def of(cls, file: Path, *, hashed: bool = True) -> FileEntry:
        """Describe an existing file; without the SHA-256, its contents are not read."""
        with open_regular_file(file) as stream:
            sha256 = compute_sha256(stream) if hashed else ""
            entry = cls(os.fstat(stream.fileno()).st_size, sha256)
        if file.suffix != ARRAY_SUFFIX:
            return entry
        array = open_array(file, mapped=True)
        return replace(entry, shape=array.shape, dtype=array.dtype.str)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> FileEntry:
        """Return the entry of a manifest."""
        shape = entry.get("shape")
        return cls(entry["bytes"], entry["sha256"], None if shape is None else tuple(shape), entry.get("dtype"))

    def to_json(self) -> dict[str, Any]:
        """Return the entry for a manifest."""
        array = {} if self.shape is None else {"shape": list(self.shape), "dtype": self.dtype}
        return {"bytes": self.size, "sha256": self.sha256, **array}

    def check(self, file: Path, *, verify: bool) -> None:
        """Raise an error if a file is not as described; the SHA-256 is compared with ``verify``."""
        try:
            with open_regular_file(file) as stream:
                size = os.fstat(stream.fileno()).st_size
        except FileNotFoundError as error:
            raise ValueError(f"{file.name} is missing") from error
        if size != self.size:
            raise ValueError(f"{file.name} has {size:,} bytes instead of {self.size:,}: it was truncated or changed")
        found = FileEntry.of(file, hashed=verify)
        if verify and found.sha256 != self.sha256:
            raise ValueError(f"{file.name} is damaged or was replaced: its SHA-256 is not that of the manifest")
        if (found.shape, found.dtype) != (self.shape, self.dtype):
            raise ValueError(
                f"{file.name} has shape {found.shape} and dtype {found.dtype}; the manifest lists shape {self.shape} "
                f"and dtype {self.dtype}"
            )


def compute_sha256(stream: BufferedReader) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return hashlib.file_digest(stream, "sha256").hexdigest()


def check_file_name(name: str, suffix: str = "") -> str:
    """Return the name of a file in a folder; reject names that lead out of the folder or lack the suffix."""
    if (
        not isinstance(name, str)
        or name in ("", ".", "..")
        or any(character in "/\\:\0" for character in name)
        or not name.endswith(suffix)
    ):
        raise ValueError(f"{name!r} is not the name of a {suffix + ' ' if suffix else ''}file in the folder")
    return name


def read_json(file: Path) -> Any:
    """Return the value of a strict JSON file, without infinite numbers and NaN."""
    with open_regular_file(file) as stream:
        content = stream.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise ValueError(f"{file.name} has more than {MAX_JSON_BYTES:,} bytes")
    return json.loads(content.decode("utf-8"), parse_constant=_reject_constant)


def write_json(file: Path, value: Any, *, indent: int | None = None) -> None:
    """Write a value as strict JSON; if the write is interrupted, the previous file stays unchanged."""
    content = json.dumps(value, indent=indent, allow_nan=False).encode()
    if len(content) > MAX_JSON_BYTES:
        raise ValueError(f"{file}: more than {MAX_JSON_BYTES:,} bytes of JSON cannot be written.")
    write_atomically(file, content)


def open_array(file: Path, *, mapped: bool) -> NDArray[Any]:
    """Return the array of an .npy file, which must not contain pickled objects.

    The declared shape is compared with the size of the file before memory is allocated.
    """
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(file, mode="r")
        if array.dtype.kind not in ARRAY_KINDS:
            raise ValueError(f"dtype {array.dtype}")
        if mapped:
            return array
        with open_regular_file(file) as stream:  # a mapped file that is truncated meanwhile ends the process
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ArithmeticError, EOFError, SyntaxError, TokenError, TypeError, ValueError) as error:
        raise ValueError(f"{file.name} is not a readable .npy file: {error}") from error


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")
