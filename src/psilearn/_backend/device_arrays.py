"""NumPy arrays and torch tensors: telling them apart, moving them between devices, indexing their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from numpy.typing import NDArray

MIN_PINNED_BYTES, MAX_PINNED_BYTES = 2**16, 2**26  # of arrays that are copied to a GPU while it computes
STAGING_BYTES = 2**24  # of a tensor that is copied to the host at a time
TORCH_DTYPE_CHARS = "?bhilBefd"  # NumPy dtype characters, in native byte order, that torch has an equivalent of


def is_tensor(array: Any) -> bool:
    """Return whether an object is a torch tensor; torch is not imported for it."""
    return not isinstance(array, np.ndarray) and bool(is_torch_array(array))


def has_torch_dtype(array: np.ndarray[Any, Any]) -> bool:
    """Return whether torch has the dtype of an array in the same byte order."""
    return array.dtype.isnative and array.dtype.char in TORCH_DTYPE_CHARS


def to_device(array: Any, device: Any, dtype: Any = None) -> Any:
    """Return an array as a tensor on a torch device, in its own dtype or in another; unchanged where possible."""
    import torch

    if not is_tensor(array):
        array = np.asarray(array)
        if not has_torch_dtype(array):
            is_integer = array.dtype.kind in "iu" and array.dtype.str[1:] != "u8"
            array = array.astype(np.int64 if is_integer else np.float64)
        if not array.flags.writeable or any(step < 0 or step % array.itemsize for step in array.strides):
            array = array.copy()  # torch requires writable memory and strides that are multiples of the item size
        array = torch.from_numpy(array)
        if torch.device(device).type == "cuda" and MIN_PINNED_BYTES <= array.nbytes <= MAX_PINNED_BYTES:
            # Memory that is not pinned would be copied after everything that the device has still to do.
            array = array.pin_memory().to(device, non_blocking=True)
    return array.detach().to(device, None if dtype is None else getattr(torch, np.dtype(dtype).name))


def to_numpy(array: Any) -> NDArray[Any]:
    """Return the values of an array or tensor as a NumPy array; bfloat16 becomes float32."""
    if not is_tensor(array):
        return np.asarray(array)
    array = array.detach()
    array = array.float() if str(array.dtype) == "torch.bfloat16" else array
    return array.numpy() if array.device.type == "cpu" else _copy_to_host(array)


def _copy_to_host(tensor: Any) -> NDArray[Any]:
    """Return a tensor of a GPU as a NumPy array; NumPy allocates large pages, which take less time to touch first.

    Large tensors pass through pinned memory in parts: a direct copy to memory that was never touched takes much longer.
    """
    import torch

    like = torch.empty(0, dtype=tensor.dtype).numpy()
    values = np.empty(tuple(tensor.shape), like.dtype)
    if tensor.nbytes < MIN_PINNED_BYTES:
        torch.from_numpy(values).copy_(tensor)
        return values
    tensor = tensor if tensor.nbytes > MAX_PINNED_BYTES else tensor.contiguous()  # the device changes the order faster
    if not tensor.is_contiguous():
        torch.from_numpy(values).copy_(tensor)
        return values
    given, copied = tensor.view(-1), values.reshape(-1)
    step = min(len(given), STAGING_BYTES // tensor.itemsize)
    staging = torch.empty(step, dtype=tensor.dtype, pin_memory=True)
    for start in range(0, len(given), step):
        part = staging[: len(given) - start]
        part.copy_(given[start : start + step])
        copied[start : start + step] = part.numpy()
    return values


def to_fortran(array: Any) -> NDArray[Any]:
    """Return the values of a matrix as a NumPy array in Fortran order; a tensor is transposed on its device."""
    if is_tensor(array):
        return to_numpy(array.T.contiguous()).T
    return np.asfortranarray(array)


def tensor_to_numpy(A: Any) -> Any:
    """Return a tensor as a NumPy array, and any other collection unchanged."""
    return to_numpy(A) if is_tensor(A) else A


def like_input(given: Any, result: Any) -> Any:
    """Return a result as a tensor on the device of ``given`` if that is a tensor, else as a NumPy array."""
    return to_device(result, given.device) if is_tensor(given) else to_numpy(result)


def take_rows(array: Any, index: Any) -> Any:
    """Return the rows of an array or tensor at the given row numbers, on the device of the array."""
    return array[to_device(index, array.device)] if is_tensor(array) else array[index]


def device_of(*arrays: Any) -> Any:
    """Return the device of the first tensor among the arguments, or None if there is no tensor."""
    return next((array.device for array in arrays if is_tensor(array)), None)


def gpu_names() -> list[str]:
    """Return the names of the GPUs that torch can compute on; torch must be installed."""
    import torch

    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
