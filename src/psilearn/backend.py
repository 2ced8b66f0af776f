"""What the machine offers: the array namespace of some arrays, and how much memory a step may take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from array_api_compat import array_namespace
from sklearn import get_config

__all__ = ["array_namespace", "available_bytes", "block_rows", "require_memory", "row_blocks"]


def block_rows(bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows fit into scikit-learn's ``working_memory`` (MiB); at least one."""
    budget = int(get_config()["working_memory"] * 2**20)
    return max(1, min(n_rows, budget // max(1, bytes_per_row)))


def row_blocks(n_rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Cut ``range(n_rows)`` into slices that each fit into ``working_memory``."""
    step = block_rows(bytes_per_row, n_rows)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def available_bytes() -> int | None:
    """Return the memory that can be taken now, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def require_memory(shape: tuple[int, ...], what: str, remedy: str, itemsize: int = 8) -> None:
    """Stop before an allocation that cannot succeed, and say how many bytes it is and what to change."""
    needed: Any = itemsize
    for size in shape:
        needed *= size
    free = available_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} of shape {shape} needs {needed:,} bytes ({needed / 2**30:.1f} GiB), but only {free:,} bytes are "
            f"available. {remedy}"
        )
