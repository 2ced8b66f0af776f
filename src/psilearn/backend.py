"""What the machine offers and the user asked for: array namespace, precision, and how much memory a step may take."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn import get_config

__all__ = [
    "array_namespace",
    "available_bytes",
    "block_rows",
    "precision",
    "require_bytes",
    "require_memory",
    "row_blocks",
    "working_dtype",
]

_PRECISION: ContextVar[Any] = ContextVar("psilearn_precision", default=np.float64)


@contextmanager
def precision(dtype: Any) -> Iterator[None]:
    """Compute blocks of kernels and embeddings in this dtype, float64 or float32, inside the ``with`` block.

    What is summed over many rows, factored or decomposed stays in float64 whatever the precision is.
    """
    token = _PRECISION.set(np.dtype(dtype))
    try:
        yield
    finally:
        _PRECISION.reset(token)


def working_dtype() -> np.dtype[Any]:
    """Return the dtype of blocks: float64 outside :func:`precision`."""
    return np.dtype(_PRECISION.get())


def block_rows(bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows fit into scikit-learn's ``working_memory`` (MiB); at least one."""
    budget = int(get_config()["working_memory"] * 2**20)
    return max(1, min(n_rows, budget // max(1, bytes_per_row)))


def row_blocks(n_rows: int, bytes_per_row: int, most: int | None = None) -> Iterator[slice]:
    """Cut ``range(n_rows)`` into slices of at most ``most`` rows that each fit into ``working_memory``."""
    step = block_rows(bytes_per_row, n_rows if most is None else min(n_rows, most))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def available_bytes() -> int | None:
    """Return the memory that can be taken now, or None where the system does not say.

    The least of what the machine has free and what the control group of the process (a container, a batch job) is
    still allowed.
    """
    known = [free for free in (_machine_free(), _group_free()) if free is not None]
    return min(known, default=None)


def require_memory(shape: tuple[int, ...], what: str, remedy: str, itemsize: int = 8) -> None:
    """Stop before an allocation that cannot succeed, and say how many bytes it is and what to change."""
    needed: Any = itemsize
    for size in shape:
        needed *= size
    require_bytes(needed, f"{what} of shape {shape}", remedy)


def require_bytes(needed: int, what: str, remedy: str) -> None:
    """Stop before work that takes more memory than there is, and say how many bytes it is and what to change."""
    free = available_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} needs {needed:,} bytes ({needed / 2**30:.1f} GiB), but only {free:,} bytes are available. {remedy}"
        )


def _machine_free() -> int | None:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _group_free() -> int | None:
    """Return limit − use of the control group, version 2 or 1; the page cache, which yields, does not count as use."""
    for folder, limit, used, cache in (
        ("/sys/fs/cgroup", "memory.max", "memory.current", "file"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
    ):
        numbers = [next(iter(_lines(Path(folder, name))), "") for name in (limit, used)]
        if all(number.isdigit() for number in numbers):
            stat = dict(line.split() for line in _lines(Path(folder, "memory.stat")))
            return max(0, int(numbers[0]) - int(numbers[1]) + int(stat.get(cache, 0)))
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
