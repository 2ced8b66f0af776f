"""Tiny data on which a valid call takes milliseconds."""

from __future__ import annotations

import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np

_RNG = np.random.default_rng(0)
N = 12
X = _RNG.standard_normal((N, 3))
LABELS = (_RNG.random((N, 4)) < 0.5).astype(float)
LABELS[:, 0] = 1.0  # no empty sets
ROWS = X @ _RNG.standard_normal((3, 2))
RANKS = np.array([_RNG.permutation(3) + 1 for _ in range(N)])
X_NEW = X[:4] + 0.05
LABELS_NEW = LABELS[:4]
NUMBERS = np.array([2.0, 1.0, 0.5, 0.25, 0.1])


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="psilearn-arguments-")


_NUMBER = count()


def new_path() -> Path:
    """Return a path that does not exist, in a folder that is removed at the end of the process."""
    return Path(_folder().name) / f"path{next(_NUMBER)}"


def file_with(text: str, suffix: str = ".txt") -> Path:
    """Write a text file and return its path."""
    path = new_path().with_suffix(suffix)
    path.write_text(text, encoding="utf-8")
    return path
