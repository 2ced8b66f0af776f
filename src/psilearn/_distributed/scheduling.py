"""Run tasks where Dask runs them: on the default client if there is one, else in threads."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits

from psilearn._backend import working_bytes

WORKER_SHARE = 4  # a block of a task uses at most this part of the memory that its worker has per thread

CONNECTION_ERRORS = ("CommClosedError", "ClosedClientError", "TimeoutError")
COMMUNICATION = "distributed.comm"


class ClusterLostError(ConnectionError):
    """The scheduler, or too many workers in a row, went away while tasks were running.

    Nothing is fitted then. Connect a new client and call again; shards of candidates that were complete are kept.

    See Also
    --------
    psilearn.decoding.ShardedCandidates : Candidates whose build resumes after an interruption.

    Examples
    --------
    >>> from psilearn.estimators import ClusterLostError
    >>> issubclass(ClusterLostError, ConnectionError)
    True
    """


def run_tasks(tasks: Sequence[Any]) -> list[Any]:
    """Compute delayed objects together, on the default client or in threads."""
    from dask.base import compute

    client = default_client()
    limits = single_blas_thread() if client is None else nullcontext()
    with limits, warnings.catch_warnings(), _convert_lost_cluster(client):
        warnings.filterwarnings("ignore", "Sending large graph")  # landmarks are inputs of the tasks on purpose
        return list(compute(*tasks, scheduler="threads" if client is None and _names_a_lost_client() else None))


def _names_a_lost_client() -> bool:
    """Tell whether Dask's configuration still names the scheduler of a client that was lost."""
    import dask

    return dask.config.get("scheduler", None) in ("dask.distributed", "distributed")


class _RunningTasks:
    """How many tasks run in this process, and the limit of BLAS threads that they share."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.n = 0
        self.limits: Any = None


_RUNNING = _RunningTasks()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread while a task of this process runs, so that sums do not depend on the number of threads.

    The limit is one of the process: the first of the tasks that run at the same time sets it, the last one removes it.
    Some builds of OpenBLAS ignore a limit that is not set by the main thread; workers of Dask have OMP_NUM_THREADS=1.
    """
    with _RUNNING.lock:
        if _RUNNING.n == 0:
            _RUNNING.limits = threadpool_limits(1, "blas")
        _RUNNING.n += 1
    try:
        yield
    finally:
        with _RUNNING.lock:
            _RUNNING.n -= 1
            if _RUNNING.n == 0:
                _RUNNING.limits.restore_original_limits()


def default_client() -> Any:
    """Return the client that Dask uses in this process, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def runs_on_cluster() -> bool:
    """Return whether there is a client, and this is not a task of a worker already."""
    if default_client() is None:
        return False
    import distributed

    try:
        distributed.get_worker()
    except ValueError:
        return True
    return False


def block_budget() -> int:
    """Return the bytes of a block: ``working_memory``, or less if that is too much for the smallest worker."""
    client = default_client()
    if client is None:
        return working_bytes()
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [
        worker["memory_limit"] // (WORKER_SHARE * max(1, worker["nthreads"]))
        for worker in workers
        if worker["memory_limit"]
    ]
    return min([working_bytes(), *shares])


@contextmanager
def _convert_lost_cluster(client: Any) -> Iterator[None]:
    """Convert the errors of a lost scheduler, and of a task whose workers were lost repeatedly, to one clear error."""
    try:
        yield
    except Exception as error:
        module, name = type(error).__module__, type(error).__name__
        if name == "KilledWorker" and module.startswith("distributed"):
            raise ClusterLostError(
                f"Several workers were lost while they computed the same task; most often their memory does not "
                f"suffice. Use smaller chunks, such as X.rechunk({{0: 10_000}}), or workers with more memory. Dask: "
                f"{error}"
            ) from error
        may_be_lost = isinstance(error, CancelledError) or name in CONNECTION_ERRORS or module.startswith(COMMUNICATION)
        is_raised_by_dask = module.split(".")[0] == "distributed"  # and not by a function of the user
        if client is None or not (may_be_lost and (is_raised_by_dask or client.status != "running")):
            raise
        address = getattr(getattr(client, "scheduler", None), "address", "")
        raise ClusterLostError(
            f"The Dask scheduler {address} went away while tasks were running: start a cluster, connect a new "
            f"distributed.Client, and call again. Shards that were complete are kept and not computed again. Dask: "
            f"{name}: {error}"
        ) from error
