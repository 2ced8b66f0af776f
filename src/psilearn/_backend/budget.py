"""How much memory is available, and blocks of rows that fit into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
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


def host_available_bytes() -> int | None:
    """Return the memory that the process can still allocate, or None if the system does not report it.

    The smaller one of the free memory of the machine and what the control group of the process (a container, a batch
    job) still allows.
    """
    known = [free for free in (_machine_free(), _cgroup_free()) if free is not None]
    return min(known, default=None)


def gpu_available_bytes(device: Any) -> int:
    """Return the free memory of a GPU, including what torch has reserved without using it."""
    import torch

    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + reserved)


def _machine_free() -> int | None:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_free() -> int | None:
    """Return limit − usage of the control group, version 2 or 1; the page cache is reclaimable and does not count."""
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
