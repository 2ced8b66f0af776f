"""Arrays of NumPy and tensors of torch: made on the working device, moved there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from psilearn._backend.compute import working_device

NATIVE = "?bhilBefd"  # letters of the dtypes that torch has, in the byte order of the machine


def is_tensor(array: Any) -> bool:
    """Return whether something is a tensor of torch; torch is not imported for it."""
    return not isinstance(array, np.ndarray) and bool(is_torch_array(array))


def put(array: Any, device: Any, dtype: Any = None) -> Any:
    """Return an array on a device of torch, in its own dtype or in another; as it is where nothing changes."""
    import torch

    if not is_tensor(array):
        array = np.asarray(array)
        if not array.dtype.isnative or array.dtype.char not in NATIVE:
            whole = array.dtype.kind in "iu" and array.dtype.str[1:] != "u8"
            array = array.astype(np.int64 if whole else np.float64)
        if not array.flags.writeable or any(step < 0 or step % array.itemsize for step in array.strides):
            array = array.copy()  # torch writes into what it is given, and has no such strides
        array = torch.from_numpy(array)
    return array.detach().to(device, None if dtype is None else getattr(torch, np.dtype(dtype).name))


def asarray(array: Any, dtype: Any = None) -> Any:
    """Return an array where the work is done: on the working device, or in NumPy."""
    device = working_device()
    if device is not None:
        return put(array, device, dtype)
    return np.asarray(to_host(array), dtype=dtype)


def to_host(array: Any) -> Any:
    """Return the values of an array or tensor in NumPy; a precision that NumPy has not in float32."""
    if not is_tensor(array):
        return np.asarray(array)
    array = array.detach().cpu()
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()


def off_device(A: Any) -> Any:
    """Return a tensor in NumPy, and anything else (an array, a CSR matrix, a list) as it is."""
    return to_host(A) if is_tensor(A) else A


def in_form_of(given: Any, result: Any) -> Any:
    """Return a result as a tensor where what was given is one, on its device; else in NumPy."""
    return put(result, given.device) if is_tensor(given) else to_host(result)


def zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return zeros where the work is done."""
    device = working_device()
    if device is None:
        return np.zeros(shape, dtype)
    import torch

    return torch.zeros(shape, dtype=getattr(torch, np.dtype(dtype).name), device=device)


def eye(rows: int, columns: int | None = None) -> Any:
    """Return the first columns of the identity in float64, where the work is done."""
    return asarray(np.eye(rows, columns))


def rows_of(array: Any, index: Any) -> Any:
    """Return the rows that an array of row numbers names; on the device of the array."""
    return array[put(index, array.device)] if is_tensor(array) else array[index]
