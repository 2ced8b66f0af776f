"""Where, and in which precision, the work inside a ``with`` block is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from importlib.util import find_spec
from threading import Lock
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
    """Compute in this dtype and on this device of torch, as :func:`find_device` gives it; None is NumPy.

    It holds for this thread alone: not for threads and processes that are started inside.
    """
    with _working(_named(dtype, device)):
        if device is None or device.type != "cuda":
            yield
            return
        import torch

        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(
                f"{device} has no memory left: {str(error).splitlines()[0]} Take landmarks or fewer of them, a lower "
                f'n_components, dtype="float32", or device=None.'
            ) from error


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
        with _full_precision() if work.device is not None else nullcontext():
            yield
    finally:
        _WORK.reset(token)


class _Products:
    """How torch multiplies float32 matrices: one setting for the whole process, ours while somebody is inside.

    The first who enters, of all threads, notes what the program around has set, and the last who leaves restores it.
    """

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.before: Any = None

    def enter(self) -> None:
        """Take full precision."""
        import torch

        with self.lock:
            if not self.inside:
                try:
                    self.before = torch.get_float32_matmul_precision()
                except RuntimeError:  # the program has used torch's newer setting, which the older cannot express
                    self.before = torch.backends.cuda.matmul.fp32_precision
                torch.set_float32_matmul_precision("highest")
            self.inside += 1

    def leave(self) -> None:
        """Give the program its setting back."""
        import torch

        with self.lock:
            self.inside -= 1
            if not self.inside and self.before in ("highest", "high", "medium"):
                torch.set_float32_matmul_precision(self.before)
            elif not self.inside:
                torch.backends.cuda.matmul.fp32_precision = self.before


_PRODUCTS = _Products()


@contextmanager
def _full_precision() -> Iterator[None]:
    """Multiply float32 matrices in full, whatever the program around has set; nor does its autocast reach inside."""
    import torch

    _PRODUCTS.enter()
    try:
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        _PRODUCTS.leave()


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
    return find_device(device) or find_device(device_of(*given), "device of the tensors") or working_device()


def find_device(device: Any, name: str = "device", others: bool = False) -> Any:
    """Return the device of torch that a user named, or None; refuse what is not there.

    "cpu" or "cuda"; with ``others`` any that torch knows, for work that needs no float64.
    """
    if device is None:
        return None
    if find_spec("torch") is None:
        raise ImportError(f"{name}={device!r} needs torch: pip install 'psilearn[torch]', or leave {name} out.")
    import torch

    message = f"{name} must be None, 'cpu' or 'cuda' (or 'cuda:1', …); got {device!r}."
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(message) from error
    if found.type not in ("cpu", "cuda") and not others:
        raise ValueError(message)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"{name}={device!r} asks for a GPU, but torch finds none on this machine: leave {name} out.")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"{name}={device!r}: torch finds {torch.cuda.device_count()} GPUs, counted from 0.")
    return found


@contextmanager
def tensor_cores(exact: bool = False) -> Iterator[None]:
    """Let float32 products of tensors take TF32 inside the ``with`` block, where "tf32" was asked for.

    Factors of 11 significant bits, sums in float32: with ``exact`` the caller knows that its factors have no more bits,
    such as zeros and ones, so that nothing is lost and any precision may do it.
    """
    device = working_device()
    if device is None or device.type != "cuda" or not (exact or _WORK.get().tf32):
        yield
        return
    import torch

    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


def takes_tf32() -> bool:
    """Return whether products inside :func:`tensor_cores` have factors of 11 bits here."""
    work = _WORK.get()
    return work.tf32 and work.device is not None and work.device.type == "cuda"
