"""Limits on what a client can ask of the service."""

from __future__ import annotations

from dataclasses import dataclass, fields

from psilearn.utils import validation

MEBIBYTE = 2**20


@dataclass(frozen=True)
class Limits:
    """Limits on requests, queues and jobs. A request beyond them is rejected and changes nothing.

    Parameters
    ----------
    body_bytes : int, default=4194304
        The size of a JSON body.
    body_values : int, default=1000000
        The number of commas and opening brackets in a JSON body, which bounds what its values take in memory.
    body_lists : int, default=50000
        The number of lists and objects in a JSON body.
    head_bytes : int, default=16384
        The size of the head of a request.
    answer_bytes : int, default=33554432
        The size of an answer.
    upload_bytes : int, default=67108864
        The size of an uploaded file of spectra.
    buffered_bytes : int, default=268435456
        The size of all bodies that are received at the same time.
    body_seconds : int, default=30
        The time to receive a body. A client that does not read its answer for as long is dropped.
    header_seconds : int, default=10
        The time to receive the head of a request, and to wait for the next request of a connection.
    answer_seconds : int, default=60
        The time that a prediction may wait and compute.
    connections : int, default=256
        The number of open connections and running requests per process.
    rows : int, default=1000
        The number of inputs per request.
    candidates : int, default=10000
        The number of candidates that a request may contain, and of members of a set that are returned.
    work : int, default=1000000000
        The number of comparisons of inputs with candidates and training inputs that a request needs; those of texts,
        graphs and other objects count at least 20 times. The work is done in blocks, between which other requests take
        their turn, and a request that was given up ends.
    top : int, default=1000
        The number of nearest candidates per input.
    queue_rows : int, default=4096
        The number of inputs that wait for a prediction.
    block_rows : int, default=256
        The number of inputs of concurrent requests that are predicted together; 1 predicts each request alone.
    spectra : int, default=2000
        The number of spectra per job.
    peaks : int, default=10000
        The number of peaks per spectrum.
    job_peaks : int, default=2000000
        The number of peaks per job.
    text : int, default=100000
        The number of characters of a text among inputs and candidates.
    nodes : int, default=1000
        The number of nodes of a graph among inputs and candidates.
    ranked : int, default=100000
        The number of candidate molecules that are written to the results of a job.
    jobs : int, default=16
        The number of jobs that wait or run per process.
    kept_jobs : int, default=200
        The number of finished jobs that are kept; the oldest ones are removed.
    job_seconds : int, default=3600
        The time that a job may run.
    parse_seconds : int, default=60
        The time that an uploaded file may take to be read.
    parse_bytes : int, default=1073741824
        The memory that an uploaded file may take to be read, beyond that of the libraries (on Linux).

    See Also
    --------
    create_app : Takes limits.

    Examples
    --------
    >>> from psilearn.app.serve import Limits
    >>> Limits(rows=10).rows
    10
    """

    body_bytes: int = 4 * MEBIBYTE
    body_values: int = 1_000_000
    body_lists: int = 50_000
    head_bytes: int = 16 * 1024
    answer_bytes: int = 32 * MEBIBYTE
    upload_bytes: int = 64 * MEBIBYTE
    buffered_bytes: int = 256 * MEBIBYTE
    body_seconds: int = 30
    header_seconds: int = 10
    answer_seconds: int = 60
    connections: int = 256
    rows: int = 1000
    candidates: int = 10_000
    work: int = 1_000_000_000
    top: int = 1000
    queue_rows: int = 4096
    block_rows: int = 256
    spectra: int = 2000
    peaks: int = 10_000
    job_peaks: int = 2_000_000
    text: int = 100_000
    nodes: int = 1000
    ranked: int = 100_000
    jobs: int = 16
    kept_jobs: int = 200
    job_seconds: int = 3600
    parse_seconds: int = 60
    parse_bytes: int = 1024 * MEBIBYTE

    def __post_init__(self) -> None:
        for field in fields(self):
            validation.check_count(getattr(self, field.name), field.name)
