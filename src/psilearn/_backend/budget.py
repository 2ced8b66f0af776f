"""Blocks of rows that fit into memory, and the memory of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn import get_config


def working_bytes() -> int:
    """Return scikit-learn's ``working_memory`` in bytes."""
    return int(get_config()["working_memory"] * 2**20)


def block_rows(bytes_per_row: int, n_rows: int, budget: int | None = None) -> int:
    """Return how many rows fit into ``budget`` bytes (by default ``working_memory``), at least one."""
    return max(1, min(n_rows, (working_bytes() if budget is None else budget) // max(1, bytes_per_row)))


def iter_slices(n: int, step: int) -> Iterator[slice]:
    """Split ``range(n)`` into consecutive slices of at most ``step``."""
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def iter_blocks(n_rows: int, bytes_per_row: int, max_rows: int | None = None) -> Iterator[slice]:
    """Split ``range(n_rows)`` into slices of at most ``max_rows`` rows that each fit into ``working_memory``."""
    return iter_slices(n_rows, block_rows(bytes_per_row, n_rows if max_rows is None else min(n_rows, max_rows)))


def gpu_available_bytes(device: Any) -> int:
    """Return the free memory of a GPU, including what torch has reserved without using it."""
    import torch

    counts = torch.cuda.memory_stats_as_nested_dict(device)  # once: torch converts all counts for each question
    reserved, used = (counts[f"{kind}_bytes"]["all"]["current"] if counts else 0 for kind in ("reserved", "allocated"))
    return int(torch.cuda.mem_get_info(device)[0] + reserved - used)
