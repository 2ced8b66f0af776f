"""Parallel computation in threads, and in worker processes that never outlive the process that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from joblib import Parallel, cpu_count
from joblib.parallel import LokyBackend, get_active_backend

PR_SET_PDEATHSIG = 1  # of prctl: the signal that a process receives when its parent ends
WATCH_SECONDS = 0.5


def each_thread(task: Callable[[slice], None], parts: list[slice], worthwhile: bool = True) -> None:
    """Run the task on each part, in threads if worthwhile; NumPy and SciPy release the interpreter lock."""
    workers = min(n_threads(), len(parts)) if worthwhile else 1
    if workers <= 1:
        for part in parts:
            task(part)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(task, parts))


def n_threads() -> int:
    """Return how many threads may run: the number of cores, or OMP_NUM_THREADS if smaller, as in a worker process."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit == "1":
        return 1  # the number of cores is read from files, which takes longer than a small block
    return min(cpu_count(), int(limit)) if limit.isdigit() and int(limit) > 0 else cpu_count()


def run_parallel(tasks: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Yield the results of tasks made by ``joblib.delayed``, in their order.

    Worker processes of joblib's default backend end with this process, however it ends; other backends that a
    surrounding ``joblib.parallel_config`` chooses are used as they are.
    """
    parallel = Parallel(n_jobs=n_jobs, backend=_choose_backend(), return_as="generator")
    try:
        yield from parallel(tasks)
    except BrokenProcessPool as error:
        raise ChildProcessError(
            f"A worker process ended unexpectedly, perhaps for lack of memory: use fewer processes than {n_jobs!r}."
        ) from error


def uses_dask() -> bool:
    """Return whether a surrounding ``joblib.parallel_config`` chooses Dask's workers."""
    return type(get_active_backend()[0]).__name__ == "DaskDistributedBackend"


def end_with_parent(parent: int, started_by_main_thread: bool) -> None:
    """Make this worker process end when its parent ends, even if the parent is killed.

    A thread watches the parent. On Linux the kernel also sends SIGKILL, which needs no free interpreter lock. It does
    so when the *thread* that started the worker ends, so this is requested only if that was the main thread.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent handles it
    if started_by_main_thread and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


class _LinkedLokyBackend(LokyBackend):  # type: ignore[misc]  # joblib has no types
    """joblib's default backend, whose worker processes end with their parent."""

    def configure(self, *args: Any, **options: Any) -> int:
        """Start or reuse the worker processes."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        options |= {"initializer": end_with_parent, "initargs": (os.getpid(), in_main_thread)}
        n_workers: int = super().configure(*args, **options)
        return n_workers


def _choose_backend() -> LokyBackend | None:
    """Return the linked backend in place of joblib's default one, and None for any other backend."""
    ambient, _ = get_active_backend()
    options = getattr(ambient, "backend_kwargs", {})
    if type(ambient) is not LokyBackend or "initializer" in options:
        return None
    threads = ambient.inner_max_num_threads
    return _LinkedLokyBackend(nesting_level=ambient.nesting_level, inner_max_num_threads=threads, **options)
