"""Where numbers are computed and in which precision: a value that is passed to the objects that compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

from psilearn._backend.device_arrays import device_of, to_device, to_numpy
from psilearn._backend.memory_limits import block_rows, gpu_available_bytes, host_available_bytes, iter_slices
from psilearn._backend.torch_precision import full_precision, tensor_cores

FLOAT64 = np.dtype(np.float64)
TF32 = "tf32"  # float32 whose matrix products may use the tensor cores of a GPU where that changes no answer
GPU_SHARE = 4  # a block takes at most one part in four of the free memory of a GPU,
MAX_GPU_BLOCK_BYTES = 2**34  # at most 16 GiB,
CACHED_SHARE = 0.25  # of the memory of a GPU, up to which torch keeps what a fit has used
GPU_ROWS_FACTOR = 8  # and at most eight times as many rows as on a CPU


class MissingDependencyError(ModuleNotFoundError):
    """An optional package is not installed; the message says how to install it."""


@contextmanager
def explain_missing(message: str) -> Iterator[None]:
    """Convert a ModuleNotFoundError of the imports in the block; an installed but broken package keeps its error."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDependencyError(message, name=error.name) from error


@dataclass(frozen=True)
class Compute:
    """A precision and a device.

    Blocks of kernel values, embeddings and predictions are computed in ``dtype``. Sums over many rows, factorizations
    and eigenvectors are float64 whatever the dtype is.
    """

    dtype: np.dtype[Any] = FLOAT64
    device: Any = None  # torch.device; None computes with NumPy
    tf32: bool = False

    @classmethod
    def of(cls, dtype: Any, device: Any = None) -> Compute:
        """Return the value for a dtype ("float64", "float32", "tf32" or a NumPy dtype) and a torch device or None."""
        is_tf32 = isinstance(dtype, str) and dtype == TF32
        try:
            precision = np.dtype(np.float32 if is_tf32 else dtype)
        except TypeError:
            precision = None
        if dtype is None or precision not in (np.float64, np.float32):
            raise ValueError(f'dtype must be "float64", "float32" or "tf32"; got {dtype!r}.')
        return cls(precision, device, is_tf32)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU computes."""
        return self.device is not None and self.device.type == "cuda"

    @property
    def uses_tf32(self) -> bool:
        """Whether products inside :meth:`tensor_cores` have factors of 11 bits."""
        return self.tf32 and self.on_gpu

    @property
    def itemsize(self) -> int:
        """Bytes per number of a block."""
        return self.dtype.itemsize

    def with_dtype(self, dtype: Any) -> Compute:
        """Return the same device with another precision."""
        return self if self.dtype == dtype else replace(self, dtype=np.dtype(dtype), tf32=False)

    def on_numpy(self) -> Compute:
        """Return the same precision with NumPy."""
        return self if self.device is None else replace(self, device=None)

    def active(self) -> AbstractContextManager[None]:
        """Prepare torch for this computation: full precision, one thread at a time on a GPU, clear memory errors."""
        return nullcontext() if self.device is None else self._active_torch()

    @contextmanager
    def _active_torch(self) -> Iterator[None]:
        with full_precision(exclusive=self.on_gpu):
            if not self.on_gpu:
                yield
                return
            import torch

            try:
                yield
            except torch.cuda.OutOfMemoryError as error:
                raise MemoryError(
                    f"{self.device} has no memory left: {str(error).splitlines()[0]} Use landmarks or fewer of them, "
                    f'a smaller n_components, dtype="float32", or device=None.'
                ) from error

    @contextmanager
    def tensor_cores(self, exact: bool = False) -> Iterator[None]:
        """Allow float32 products on the tensor cores of a GPU inside the block.

        This is done only if "tf32" was requested, or if the products are ``exact``: if their factors have at most 11
        significant bits, as zeros and ones have.
        """
        with tensor_cores(self.on_gpu and (exact or self.tf32)):
            yield

    def asarray(self, array: Any, dtype: Any = None) -> Any:
        """Return an array on the device, in its own dtype or in another."""
        if self.device is not None:
            return to_device(array, self.device, dtype)
        return np.asarray(array if isinstance(array, np.ndarray) else to_numpy(array), dtype=dtype)

    def zeros(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
        """Return zeros on the device."""
        if self.device is None:
            return np.zeros(shape, dtype)
        import torch

        return torch.zeros(shape, dtype=getattr(torch, np.dtype(dtype).name), device=self.device)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array on the device whose numbers are not set."""
        if self.device is None:
            return np.empty(shape, dtype)
        import torch

        return torch.empty(shape, dtype=getattr(torch, np.dtype(dtype).name), device=self.device)

    def eye(self, rows: int, columns: int | None = None) -> Any:
        """Return the first columns of the identity in float64 on the device."""
        return self.asarray(np.eye(rows, columns))

    def block_rows(self, bytes_per_row: int, n_rows: int) -> int:
        """Return how many rows fit into a share of the free memory of the GPU, or else into ``working_memory``."""
        if not self.on_gpu:
            return block_rows(bytes_per_row, n_rows)
        budget = min(gpu_available_bytes(self.device) // GPU_SHARE, MAX_GPU_BLOCK_BYTES)
        return block_rows(bytes_per_row, n_rows, budget)

    def iter_blocks(self, n_rows: int, bytes_per_row: int, max_rows: int | None = None) -> Iterator[slice]:
        """Split ``range(n_rows)`` into slices of at most ``max_rows`` rows (more on a GPU) that fit into memory."""
        if max_rows is not None and self.on_gpu:
            max_rows *= GPU_ROWS_FACTOR
        step = self.block_rows(bytes_per_row, n_rows if max_rows is None else min(n_rows, max_rows))
        return iter_slices(n_rows, step)

    def transfer_bytes(self, A: Any) -> int:
        """Return the bytes per row while an array is copied to a GPU: two rows in pinned memory, up to two there."""
        if not self.on_gpu or not hasattr(A, "strides"):
            return 0
        return 4 * int(A.itemsize) * int(A.size // max(1, len(A)))

    def available_bytes(self) -> int | None:
        """Return the memory that can be allocated now on the GPU, or else on the machine; None if unknown."""
        return gpu_available_bytes(self.device) if self.on_gpu else host_available_bytes()

    def require_memory(self, shape: tuple[int, ...], what: str, remedy: str, itemsize: int = 8) -> None:
        """Raise MemoryError before an allocation that cannot succeed, with its size in bytes and a remedy."""
        self.require_bytes(itemsize * prod(shape), f"{what} of shape {shape}", remedy)

    def require_bytes(self, needed: int, what: str, remedy: str) -> None:
        """Raise MemoryError before work that needs more memory than there is, with its size in bytes and a remedy."""
        free = self.available_bytes()
        if free is not None and needed > free:
            place = f" on {self.device}" if self.on_gpu else ""
            raise MemoryError(
                f"{what} needs {needed:,} bytes ({needed / 2**30:.1f} GiB), but only {free:,} bytes are "
                f"available{place}. {remedy}"
            )

    def free_large_cache(self) -> None:
        """Return GPU memory that torch holds without using it to the system, if that is a large share of all memory.

        A smaller share is kept for the next call, which would have to ask for it again.
        """
        if self.on_gpu:
            import torch

            if torch.cuda.memory_reserved(self.device) > CACHED_SHARE * torch.cuda.mem_get_info(self.device)[1]:
                self.free_cached_memory()

    def free_cached_memory(self) -> None:
        """Return GPU memory that torch holds without using it to the system."""
        if self.on_gpu:
            import torch

            with torch.cuda.device(self.device):
                torch.cuda.empty_cache()


NUMPY = Compute()
_AMBIENT: ContextVar[Compute] = ContextVar("psilearn_compute", default=NUMPY)


@contextmanager
def computing(dtype: Any = "float64", device: Any = None) -> Iterator[Compute]:
    """Set the default precision and device of public calls inside the ``with`` block.

    Kernels, and functions that take candidates, use both. Estimators with ``device=None`` use the device; their
    precision is always their parameter ``dtype``. The block applies to the current thread, but not to threads and
    processes that are started inside it.

    Parameters
    ----------
    dtype : {"float64", "float32", "tf32"} or numpy dtype, default="float64"
        Precision of blocks of kernel values and of embeddings. Estimators do not use it.
    device : {"cpu", "cuda"} or torch.device, default=None
        The torch device. None computes with NumPy.

    Yields
    ------
    Compute
        The precision and the device as one value.

    See Also
    --------
    psilearn.OEL : Its parameters ``dtype`` and ``device`` set the precision and the device of one model.

    Examples
    --------
    >>> import psilearn
    >>> from psilearn.kernels import Linear
    >>> with psilearn.computing("float32"):
    ...     print(Linear()([[1.0, 2.0]]).dtype)
    float32
    """
    compute = Compute.of(dtype, find_device(device))
    token = _AMBIENT.set(compute)
    try:
        with compute.active():
            yield compute
    finally:
        _AMBIENT.reset(token)


def current_compute(*arrays: Any) -> Compute:
    """Return the value of the surrounding :func:`computing` block; without a device, that of the first tensor.

    Called by public entry points only: everything below them receives a :class:`Compute`.
    """
    ambient = _AMBIENT.get()
    device = device_of(*arrays) if ambient.device is None else None
    return ambient if device is None else replace(ambient, device=find_device(device, "device of the tensors"))


def resolve_compute(dtype: Any, device: Any, *arrays: Any) -> Compute:
    """Return the precision of a model on the device that it names, that its tensors are on, or that surrounds it."""
    found = find_device(device) or find_device(device_of(*arrays), "device of the tensors") or _AMBIENT.get().device
    return Compute.of(dtype, found)


def find_device(device: Any, name: str = "device", any_type: bool = False) -> Any:
    """Return the torch device with the given name, or None for None; raise if it does not exist.

    "cpu" and "cuda" are accepted; with ``any_type`` every device of torch, for work that needs no float64.
    """
    if device is None:
        return None
    if find_spec("torch") is None:
        raise MissingDependencyError(
            f"{name}={device!r} needs torch: pip install 'psilearn[torch]', or leave {name} out."
        )
    import torch

    message = f"{name} must be None, 'cpu' or 'cuda' (or 'cuda:1', …); got {device!r}."
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(message) from error
    if found.type not in ("cpu", "cuda") and not any_type:
        raise ValueError(message)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"{name}={device!r} requires a GPU, but torch finds none on this machine: leave {name} out.")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"{name}={device!r}: torch finds {torch.cuda.device_count()} GPUs, counted from 0.")
    return found
