"""Common parts of the forms of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse


def to_dense(matrix: Any) -> Any:
    """Return an array."""
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def check_names(names: Sequence[str]) -> None:
    """Raise a ValueError if names are missing or repeated."""
    if not names or len(set(names)) < len(names):
        raise ValueError("the names of outputs are missing or repeated")


def sort_key(word: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers first, by value."""
    is_whole = word.isascii() and word.isdecimal() and len(word) < 300
    return (False, float(word), word) if is_whole else (True, 0.0, word)
