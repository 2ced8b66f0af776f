"""How much memory the process can still allocate, from the files that Linux keeps under ``/proc`` and ``/sys``.

Every function takes the folder that contains them, ``/`` by default, and returns None where the system reports nothing,
as on other systems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from sklearn import get_config

ROOT = Path("/")
KIBIBYTE = 1024
NO_LIMIT = 2**62  # groups of version 1 without a limit have a larger number, those of version 2 "max"


def host_available_bytes(root: Path = ROOT) -> int | None:
    """Return the memory that the process can still allocate, or None if the system does not report it.

    The smallest of the free memory of the machine, what the control groups of the process (a container, a batch job)
    still allow, and what is left of its resource limits (``ulimit -v`` and ``ulimit -d``).
    """
    known = [*_present(machine_free(root)), *cgroup_free(root), *resource_limits_free(root)]
    return min(known, default=None)


def machine_free(root: Path = ROOT) -> int | None:
    """Return the free memory of the machine, including what the system would release."""
    return _kibibytes(root / "proc/meminfo", "MemAvailable")


def resource_limits_free(root: Path = ROOT) -> list[int]:
    """Return the soft limit − use of the address space (RLIMIT_AS) and of the data (RLIMIT_DATA), where limited."""
    lines = _lines(root / "proc/self/limits")
    free = []
    for limit_name, used_name in (("Max address space", "VmSize"), ("Max data size", "VmData")):
        limits = [line for line in lines if line.startswith(limit_name)]
        limit = limits[0].removeprefix(limit_name).split()[0] if limits else "unlimited"
        used = _kibibytes(root / "proc/self/status", used_name) if limit.isdigit() else None
        if used is not None:
            free.append(max(0, int(limit) - used))
    return free


def cgroup_free(root: Path = ROOT) -> list[int]:
    """Return limit − use of the control group of the process and of each of its ancestors that has a limit.

    Both versions are followed, also where a system uses both. The page cache is reclaimable and does not count as used.
    """
    groups = _groups(root, _text(root / "proc/self/cgroup"), _text(root / "proc/self/mountinfo"))
    return [left for group in groups for left in _present(group.free())]


@lru_cache(maxsize=16)
def _groups(root: Path, membership: str, mountinfo: str) -> list[_Group]:
    """Return the groups of the process and their ancestors, from the contents of two files that rarely change."""
    mounts = list(_mounts(mountinfo))
    return [
        _Group(folder / version.limit, folder / version.used, folder / "memory.stat", version.cache)
        for path, version in _memory_groups(membership)
        for mount in mounts
        if mount.version is version
        for folder in _folders(root, mount, path)
    ]


@dataclass(frozen=True)
class _Group:
    """The files of one group, and the fields of the last one that count as cache."""

    limit: Path
    used: Path
    stat: Path
    cache: tuple[str, ...]

    def free(self) -> int | None:
        """Return limit − use of the group, or None if it has no limit."""
        limit = _text(self.limit).strip()
        if not limit.isdigit() or int(limit) >= NO_LIMIT:
            return None
        used = _text(self.used).strip()
        if not used.isdigit():
            return None
        fields = dict(line.split(maxsplit=1) for line in _lines(self.stat) if " " in line)
        cached = sum(int(fields.get(name, "0")) for name in self.cache)
        return max(0, int(limit) - max(0, int(used) - cached))


@dataclass(frozen=True)
class _Version:
    """The names of the files and fields of one version of control groups."""

    limit: str
    used: str
    cache: tuple[str, ...]


_V1 = _Version("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
_V2 = _Version("memory.max", "memory.current", ("active_file", "inactive_file"))


@dataclass(frozen=True)
class _Mount:
    """Where control groups are visible: the group ``top`` of the hierarchy is the folder ``point``."""

    version: _Version
    top: PurePosixPath
    point: PurePosixPath


def _memory_groups(membership: str) -> Iterator[tuple[PurePosixPath, _Version]]:
    """Yield the path and the version of each group of the process that may limit its memory."""
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield PurePosixPath(path), _V2
        elif "memory" in controllers.split(","):
            yield PurePosixPath(path), _V1


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    """Yield the mounted hierarchies that may have the controller of the memory."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, described = before.split(" "), after.split(" ")
        if len(fields) < 5 or not described[0].startswith("cgroup"):
            continue
        top, point = (PurePosixPath(_unescape(field)) for field in fields[3:5])
        if described[0] == "cgroup2":
            yield _Mount(_V2, top, point)
        elif "memory" in described[-1].split(","):
            yield _Mount(_V1, top, point)


def _folders(root: Path, mount: _Mount, path: PurePosixPath) -> Iterator[Path]:
    """Yield the folders of a group and of its ancestors; only the mount point if the group is not visible in it.

    In a container the group may be given as seen from outside, while its own folder is what is mounted.
    """
    inside = PurePosixPath()
    if path.is_relative_to(mount.top) and ".." not in path.parts:
        inside = path.relative_to(mount.top)
    point = root / mount.point.relative_to("/")
    for group in (inside, *inside.parents):
        yield point / group
        if group == PurePosixPath():
            return


def _unescape(field: str) -> str:
    r"""Decode the octal escapes of mountinfo, such as ``\040`` for a space."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _kibibytes(path: Path, name: str) -> int | None:
    """Return the value of a line ``name: 123 kB`` in bytes."""
    for line in _lines(path):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * KIBIBYTE
    return None


def _present(value: int | None) -> list[int]:
    return [] if value is None else [value]


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
