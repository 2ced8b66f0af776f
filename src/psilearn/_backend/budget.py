"""How much memory a step may take, on the machine and on a device, and a refusal where it would not suffice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn import get_config

from psilearn._backend.compute import working_device

DEVICE_SHARE = 4  # a block takes one part in so many of the free memory of a GPU,
DEVICE_BLOCK = 2**34  # and not more than 16 GiB,
DEVICE_ROWS = 8  # and so many times the rows that a CPU takes at once


def block_rows(bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows fit into scikit-learn's ``working_memory`` (MiB); at least one."""
    budget = int(get_config()["working_memory"] * 2**20)
    return max(1, min(n_rows, budget // max(1, bytes_per_row)))


def row_blocks(n_rows: int, bytes_per_row: int, most: int | None = None) -> Iterator[slice]:
    """Cut ``range(n_rows)`` into slices of at most ``most`` rows that each fit into ``working_memory``."""
    step = block_rows(bytes_per_row, n_rows if most is None else min(n_rows, most))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def computing_rows(bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows fit where the work is done: a part of the GPU's free memory, else ``working_memory``."""
    device = working_device()
    if device is None or device.type != "cuda":
        return block_rows(bytes_per_row, n_rows)
    budget = min(_device_free(device) // DEVICE_SHARE, DEVICE_BLOCK)
    return max(1, min(n_rows, budget // max(1, bytes_per_row)))


def computing_blocks(n_rows: int, bytes_per_row: int, most: int | None = None) -> Iterator[slice]:
    """Cut ``range(n_rows)`` as :func:`row_blocks` does, into blocks that fit where the work is done."""
    device = working_device()
    if most is not None and device is not None and device.type == "cuda":
        most *= DEVICE_ROWS
    step = computing_rows(bytes_per_row, n_rows if most is None else min(n_rows, most))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def moved_bytes(A: Any) -> int:
    """Return what a row of an array takes while it is moved to a GPU: two rows in pinned memory, one or two there."""
    device = working_device()
    if device is None or device.type != "cuda" or not hasattr(A, "strides"):
        return 0
    return 4 * int(A.itemsize) * int(A.size // max(1, len(A)))


def available_bytes() -> int | None:
    """Return the memory that can be taken now, or None where the system does not say.

    On a GPU its free memory. Else the least of what the machine has free and what the control group of the process (a
    container, a batch job) is still allowed.
    """
    device = working_device()
    if device is not None and device.type == "cuda":
        return _device_free(device)
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
            f"{what} needs {needed:,} bytes ({needed / 2**30:.1f} GiB), but only {free:,} bytes are "
            f"available{_where()}. {remedy}"
        )


def _where() -> str:
    device = working_device()
    return f" on {device}" if device is not None and device.type == "cuda" else ""


def _device_free(device: Any) -> int:
    """Return what the GPU has free, and what torch keeps of it without use."""
    import torch

    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + kept)


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
