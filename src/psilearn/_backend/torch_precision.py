"""The precision of torch's float32 matrix products: a setting of the process that is changed under a lock only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from threading import RLock
from typing import Any

_LOCK = RLock()  # held by the only thread that computes on a GPU, and while the setting changes
HALF_SUMS = "allow_fp16_accumulation"  # setting of torch that rules out products from half precision to float32
_NAMED_LEVELS = ("highest", "high", "medium")
_IN_TEAM: ContextVar[bool] = ContextVar("psilearn_in_team", default=False)  # of threads that share the lock


class _MatmulPrecision:
    """Full float32 precision while any thread computes with torch, and the program's own setting otherwise.

    The first thread that enters saves the setting of the surrounding program, and the last one that leaves restores it.
    """

    def __init__(self) -> None:
        self.n_inside = 0
        self.saved: Any = None
        self.saved_accumulation: Any = None

    def enter(self) -> None:
        """Switch to full precision."""
        import torch

        with _LOCK:
            if not self.n_inside:
                try:
                    self.saved = torch.get_float32_matmul_precision()
                except RuntimeError:  # the program uses torch's newer setting, which the older one cannot express
                    self.saved = torch.backends.cuda.matmul.fp32_precision
                torch.set_float32_matmul_precision("highest")
                self.saved_accumulation = getattr(torch.backends.cuda.matmul, HALF_SUMS, None)
                if self.saved_accumulation:
                    setattr(torch.backends.cuda.matmul, HALF_SUMS, False)
            self.n_inside += 1

    def leave(self) -> None:
        """Restore the setting of the program."""
        import torch

        with _LOCK:
            self.n_inside -= 1
            if self.n_inside:
                return
            if self.saved_accumulation:
                setattr(torch.backends.cuda.matmul, HALF_SUMS, True)
            if self.saved in _NAMED_LEVELS:
                torch.set_float32_matmul_precision(self.saved)
            else:
                torch.backends.cuda.matmul.fp32_precision = self.saved


_PRECISION = _MatmulPrecision()


@contextmanager
def full_precision(exclusive: bool) -> Iterator[None]:
    """Compute float32 products in full precision, without the autocast of the surrounding program.

    With ``exclusive``, as on a GPU, other threads wait until the block is left, so that :func:`tensor_cores` of one
    thread cannot lower the precision of another. Threads inside :func:`join_team` do not wait: the thread that waits
    for them holds the lock and has set the precision.
    """
    import torch

    with (
        nullcontext() if _IN_TEAM.get() else _locked_precision(exclusive),
        torch.autocast("cuda", enabled=False),
        torch.autocast("cpu", enabled=False),
    ):
        yield


@contextmanager
def _locked_precision(exclusive: bool) -> Iterator[None]:
    if exclusive:
        _LOCK.acquire()
    try:
        _PRECISION.enter()
        try:
            yield
        finally:
            _PRECISION.leave()
    finally:
        if exclusive:
            _LOCK.release()


@contextmanager
def join_team() -> Iterator[None]:
    """Compute in this thread for another one, which is inside of :func:`full_precision` and waits for this thread.

    Several threads may do so at the same time; none of them uses :func:`tensor_cores`.
    """
    token = _IN_TEAM.set(True)
    try:
        yield
    finally:
        _IN_TEAM.reset(token)


@contextmanager
def tensor_cores(enabled: bool) -> Iterator[None]:
    """Allow TF32 (factors of 11 significant bits, float32 sums) in products inside the block, if ``enabled``."""
    if not enabled or _IN_TEAM.get():
        yield
        return
    import torch

    with _LOCK:
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision("highest")
