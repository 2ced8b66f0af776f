"""Connections of commands to a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psilearn._backend import explain_missing

LOCAL = "local"
CONNECT_SECONDS = 10


@contextmanager
def connect(scheduler: str | None) -> Iterator[Any]:
    """Yield a client of a scheduler, which is the default client inside of the block; joblib uses its workers too.

    ``scheduler`` is an address, passed to Dask as it is (``tcp://host:8786``, or ``tls://host:8786`` with the
    certificates of Dask's configuration), or "local" for workers on this machine. None connects to nothing.
    """
    if scheduler is None:
        yield None
        return
    with explain_missing("--scheduler needs Dask: pip install 'psilearn[dask]'."):
        import distributed
    import joblib

    source: Any = distributed.LocalCluster(dashboard_address=":0") if scheduler == LOCAL else scheduler
    try:
        client = distributed.Client(source, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise OSError(
            f"No Dask scheduler answers at {scheduler!r}: give the address that `dask scheduler` prints, such as "
            f"tcp://host:8786, or {LOCAL!r}. Dask: {error}"
        ) from error
    try:
        with client, joblib.parallel_config("dask"):
            yield client
    finally:
        if scheduler == LOCAL:
            source.close()
