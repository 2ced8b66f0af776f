"""Validation of the kernels of a loaded model."""

from __future__ import annotations

from typing import Any

from psilearn.kernels import Kernel

PARTS = ("left", "right", "kernel", "kernel_", "output_kernel")  # attributes of kernels that are kernels
MAX_KERNELS = 1000
OPTIONAL_PARTS = ("base", "base_")  # that may be None


def is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel whose parts are kernels too, and not more than its use can handle.

    A part that occurs several times counts as often as it is evaluated: with few shared parts, a small file could
    otherwise describe a kernel of exponential size.
    """
    size = _count_kernels(value, {})
    return size is not None and size <= MAX_KERNELS


def _count_kernels(value: Any, counts: dict[int, int | None]) -> int | None:
    """Return the number of kernels in a kernel with repetitions, or None if a part is not a kernel."""
    if id(value) not in counts:
        parts = _parts_of(value)
        sizes = None if parts is None else [_count_kernels(part, counts) for part in parts]
        is_valid = sizes is not None and None not in sizes
        counts[id(value)] = 1 + sum(size or 0 for size in sizes or []) if is_valid else None
    return counts[id(value)]


def _parts_of(value: Any) -> list[Any] | None:
    """Return the direct parts of a kernel, or None if the value is not a kernel."""
    if not isinstance(value, Kernel):
        return None
    attributes = dict(vars(value))
    parts = [attributes[name] for name in PARTS if name in attributes]
    parts += [attributes[name] for name in OPTIONAL_PARTS if attributes.get(name) is not None]
    listed = attributes.get("kernels", [])
    return [*parts, *listed] if isinstance(listed, list | tuple) else None
