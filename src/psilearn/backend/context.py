"""Where, and in which precision, the work inside a ``with`` block is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_torch_array

TF32 = "tf32"  # float32 whose matrix products may take the matrix units of a GPU where that changes no answer


class _Work(NamedTuple):
    dtype: Any = np.float64
    tf32: bool = False
    device: Any = None  # of torch; None is NumPy


_IN_NUMPY = _Work()
_WORK: ContextVar[_Work] = ContextVar("psilearn_work", default=_IN_NUMPY)


@contextmanager
def precision(dtype: Any) -> Iterator[None]:
    """Compute blocks of kernels and embeddings in this dtype, float64, float32 or "tf32", inside the ``with`` block.

    What is summed over many rows, factored or decomposed stays in float64 whatever the precision is.
    """
    with _working(_named(dtype, _WORK.get().device)):
        yield


@contextmanager
def computing(dtype: Any, device: Any) -> Iterator[None]:
    """Compute in this dtype and on this device of torch, as :func:`find_device` gives it; None is NumPy."""
    with _working(_named(dtype, device)):
        yield


@contextmanager
def on_host() -> Iterator[None]:
    """Compute in NumPy inside the ``with`` block, in the precision of the moment."""
    with _working(_WORK.get()._replace(device=None)):
        yield


def _named(dtype: Any, device: Any) -> _Work:
    tf32 = isinstance(dtype, str) and dtype == TF32
    return _Work(np.dtype(np.float32 if tf32 else dtype), tf32, device)


@contextmanager
def _working(work: _Work) -> Iterator[None]:
    token = _WORK.set(work)
    try:
        with _matrix_units(False) if work.device is not None else nullcontext():
            yield
    finally:
        _WORK.reset(token)


@contextmanager
def _matrix_units(allowed: bool) -> Iterator[None]:
    """Let float32 products of tensors take TF32 or not, whatever the program around has set, and leave that as it was.

    Nor does an automatic mixed precision of the program around reach inside.
    """
    import torch

    matmul = torch.backends.cuda.matmul
    newer = hasattr(matmul, "fp32_precision")  # after which the old name cannot always be read, but be written
    before = matmul.fp32_precision if newer else matmul.allow_tf32
    matmul.allow_tf32 = allowed
    try:
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        matmul.allow_tf32 = before in (True, TF32)
        if newer:
            matmul.fp32_precision = before


def working_dtype() -> np.dtype[Any]:
    """Return the dtype of blocks: float64 outside :func:`precision`."""
    return np.dtype(_WORK.get().dtype)


def working_device() -> Any:
    """Return the device of torch that computes; None where NumPy does."""
    return _WORK.get().device


def device_of(*arrays: Any) -> Any:
    """Return the device of the first tensor among these; None where there is none."""
    return next((array.device for array in arrays if is_torch_array(array)), None)


def device_for(device: Any, *given: Any) -> Any:
    """Return where to compute: on the device that a user named, where tensors are given, or where it is done already.

    The last is the device of a surrounding ``with computing(dtype, device)``, if there is one.
    """
    return find_device(device) or device_of(*given) or working_device()


def find_device(device: Any, name: str = "device", others: bool = False) -> Any:
    """Return the device of torch that a user named, or None; refuse what is not there.

    "cpu" or "cuda"; with ``others`` any that torch knows, for work that needs no float64.
    """
    if device is None:
        return None
    if find_spec("torch") is None:
        raise ImportError(f"{name}={device!r} needs torch: pip install 'psilearn[torch]', or leave {name}=None.")
    import torch

    message = f"{name} must be None, 'cpu' or 'cuda' (or 'cuda:1', …); got {device!r}."
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(message) from error
    if found.type not in ("cpu", "cuda") and not others:
        raise ValueError(message)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"{name}={device!r} asks for a GPU, but torch finds none on this machine: use {name}=None.")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"{name}={device!r}: torch finds {torch.cuda.device_count()} GPUs, counted from 0.")
    return found


@contextmanager
def tensor_cores(exact: bool = False) -> Iterator[None]:
    """Let float32 products of tensors take TF32 inside the ``with`` block, where "tf32" was asked for.

    Factors of 11 significant bits, sums in float32: with ``exact`` the caller knows that its factors have no more bits,
    such as zeros and ones, so that nothing is lost and any precision may do it.
    """
    with _matrix_units(True) if working_device() is not None and (exact or _WORK.get().tf32) else nullcontext():
        yield


def takes_tf32() -> bool:
    """Return whether products inside :func:`tensor_cores` have factors of 11 bits here."""
    work = _WORK.get()
    return work.tf32 and work.device is not None and work.device.type == "cuda"
