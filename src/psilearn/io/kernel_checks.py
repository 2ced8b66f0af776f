"""Validation of the kernels of a loaded model."""

from __future__ import annotations

from typing import Any

from psilearn.kernels import Kernel

PARTS = ("left", "right", "kernel", "kernel_", "output_kernel")  # attributes of kernels that are kernels
OPTIONAL_PARTS = ("base", "base_")  # that may be None


def is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel whose parts are kernels too."""
    if not isinstance(value, Kernel):
        return False
    attributes = vars(value)
    parts = [attributes[name] for name in PARTS if name in attributes]
    parts += [attributes[name] for name in OPTIONAL_PARTS if attributes.get(name) is not None]
    listed = attributes.get("kernels", [])
    return isinstance(listed, list | tuple) and all(map(is_kernel, [*parts, *listed]))
