"""Arrays, devices, precision and memory. NumPy computes unless a device is requested; torch is imported only then.

Code outside of this package, ``_linalg`` and ``kernels`` handles arrays and tensors alike: with operators, with
:func:`array_namespace` and with the functions here.
"""

from array_api_compat import array_namespace

from psilearn._backend.compute import (
    NUMPY,
    Compute,
    MissingDependencyError,
    computing,
    current_compute,
    explain_missing,
    find_device,
    resolve_compute,
)
from psilearn._backend.device_arrays import (
    device_of,
    gpu_names,
    is_tensor,
    like_input,
    take_rows,
    tensor_to_numpy,
    to_device,
    to_fortran,
    to_numpy,
)
from psilearn._backend.memory_limits import block_rows, host_available_bytes, iter_blocks, iter_slices, working_bytes
from psilearn._backend.streaming import N_STREAMS, halve_if_needed, map_in_streams, row_blocks, stream

__all__ = [
    "NUMPY",
    "N_STREAMS",
    "Compute",
    "MissingDependencyError",
    "array_namespace",
    "block_rows",
    "computing",
    "current_compute",
    "device_of",
    "explain_missing",
    "find_device",
    "gpu_names",
    "halve_if_needed",
    "host_available_bytes",
    "is_tensor",
    "iter_blocks",
    "iter_slices",
    "like_input",
    "map_in_streams",
    "resolve_compute",
    "row_blocks",
    "stream",
    "take_rows",
    "tensor_to_numpy",
    "to_device",
    "to_fortran",
    "to_numpy",
    "working_bytes",
]
