"""What the machine offers and the user asked for: device, precision, arrays that are there, memory for a step.

NumPy is the backend unless a device is asked for; torch is imported only then. Code outside this room, ``linalg`` and
``kernels`` works on arrays of either kind by operators, by :func:`array_namespace` and by what is offered here.
"""

from array_api_compat import array_namespace

from psilearn._backend.budget import (
    available_bytes,
    block_rows,
    computing_blocks,
    computing_rows,
    moved_bytes,
    require_bytes,
    require_memory,
    row_blocks,
)
from psilearn._backend.compute import (
    computing,
    device_for,
    device_of,
    find_device,
    on_host,
    precision,
    takes_tf32,
    tensor_cores,
    working_device,
    working_dtype,
)
from psilearn._backend.device_arrays import (
    asarray,
    eye,
    in_form_of,
    is_tensor,
    off_device,
    put,
    rows_of,
    to_host,
    zeros,
)
from psilearn._backend.streaming import cut, halving, release, stream

__all__ = [
    "array_namespace",
    "asarray",
    "available_bytes",
    "block_rows",
    "computing",
    "computing_blocks",
    "computing_rows",
    "cut",
    "device_for",
    "device_of",
    "eye",
    "find_device",
    "halving",
    "in_form_of",
    "is_tensor",
    "moved_bytes",
    "off_device",
    "on_host",
    "precision",
    "put",
    "release",
    "require_bytes",
    "require_memory",
    "row_blocks",
    "rows_of",
    "stream",
    "takes_tf32",
    "tensor_cores",
    "to_host",
    "working_device",
    "working_dtype",
    "zeros",
]
