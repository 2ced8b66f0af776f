"""Uploaded files of spectra are read in another process, whose memory and time are limited.

The process starts as a copy of a small server process that has imported the readers. It sends JSON, which is parsed
without executing anything, so that a file that takes over a reader gains nothing here.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from psilearn.app.serve.service_limits import Limits
from psilearn_chem.spectra import Problem, Spectrum, SpectrumReadResult, read_spectra
from psilearn_chem.spectra.merging import merge_groups
from psilearn_chem.spectra.records import TABLE_FIELDS

FIELDS = ("precursor_mz", "adduct", "formula", "name")  # that ranking uses
METADATA = (*TABLE_FIELDS, "ionmode", "charge")  # that tables of results contain, or that state the polarity
PRELOADED = ["psilearn_chem.service.quiet_reader", __name__, "matchms.importing", "pyarrow.parquet"]
START_SECONDS = 300  # that the imports may take on a busy machine
POLL_SECONDS = 0.2  # after which a reader that does not answer can be stopped
STARTED = b"started"
SUBJECT = "the file"
NICENESS = 10  # files leave the processors to predictions
MAX_REASON = 300  # characters
MAX_PROBLEMS = 1000
MAX_TEXT = 500  # characters of a field of a spectrum; the results repeat its name for each molecule
PEAK_BYTES = 64  # of a peak as JSON, at most
CHARACTER_BYTES = 12  # of a character as JSON, at most


class UploadError(ValueError):
    """A file cannot be read."""


def start_reader_server() -> None:
    """Start the server process of the readers, so that the first file need not wait for their import."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    forkserver.ensure_running()


def read_upload(
    path: Path,
    adduct: str | None,
    limits: Limits,
    merge: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> SpectrumReadResult:
    """Return the spectra of a file and its records that cannot be used; raise an UploadError if it cannot be read.

    ``merge`` is the rule by which spectra of one ion are merged, as in ``psilearn metabolites rank``. ``check`` is
    called again and again; it raises an error to stop the reading.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_spectra, args=(sender, path, adduct, limits, merge), daemon=True)
    process.start()
    sender.close()
    try:
        if not _wait(receiver, START_SECONDS, check):
            raise UploadError("The reader of files does not start; try again later.")
        receiver.recv_bytes()  # the time of the file begins here
        if not _wait(receiver, limits.parse_seconds, check):
            raise UploadError(f"Reading the file takes more than {limits.parse_seconds} s.")
        content = json.loads(receiver.recv_bytes(_max_message(limits)))
    except (EOFError, OSError) as error:
        raise UploadError("The file cannot be read: it needs too much memory or time.") from error
    finally:
        process.kill()
        process.join()
        receiver.close()
    if "error" in content:
        raise UploadError(content["error"])
    return SpectrumReadResult(
        [Spectrum(**fields) for fields in content["spectra"]], [Problem(*problem) for problem in content["problems"]]
    )


def _wait(receiver: Connection, seconds: float, check: Callable[[], None]) -> bool:
    """Return whether there is a message within some seconds."""
    stop = time.monotonic() + seconds
    while not receiver.poll(POLL_SECONDS):
        check()
        if time.monotonic() > stop:
            return False
    return True


def _send_spectra(connection: Connection, path: Path, adduct: str | None, limits: Limits, merge: str | None) -> None:
    """Read a file in the other process and send its spectra, or the reason why it cannot be read."""
    connection.send_bytes(STARTED)
    _limit_resources(limits)
    try:
        result = read_spectra(path, errors="skip", adduct=adduct)
        if merge is not None:
            result = SpectrumReadResult(merge_groups(result.spectra, merge), result.problems)
        message = json.dumps(_encode(result, path, limits)).encode()
    except MemoryError:
        message = json.dumps({"error": "The file needs more memory than the service allows."}).encode()
    except (ValueError, OSError, EOFError) as error:
        message = json.dumps({"error": _describe(str(error), path)}).encode()
    connection.send_bytes(message)


def _encode(result: SpectrumReadResult, path: Path, limits: Limits) -> dict[str, Any]:
    check_spectra(result.spectra, limits)
    return {
        "spectra": [
            {
                "mz": spectrum.mz.tolist(),
                "intensity": spectrum.intensity.tolist(),
                **{field: getattr(spectrum, field) for field in FIELDS},
                "metadata": {name: spectrum.metadata[name] for name in METADATA if name in spectrum.metadata},
            }
            for spectrum in result.spectra
        ],
        "problems": [[_describe(text, path) for text in problem] for problem in result.problems[:MAX_PROBLEMS]],
    }


def check_spectra(spectra: Iterable[Spectrum], limits: Limits) -> None:
    """Raise an UploadError if there are too many spectra, or one has too many peaks."""
    n_spectra = n_peaks = 0
    for spectrum in spectra:
        n_spectra += 1
        n_peaks += len(spectrum)
        if len(spectrum) > limits.peaks:
            raise UploadError(f"A spectrum has {len(spectrum):,} peaks; the limit is {limits.peaks:,}.")
        texts = [getattr(spectrum, field) for field in FIELDS] + [spectrum.metadata.get(name) for name in METADATA]
        longest = max(len(str(text or "")) for text in texts)
        if longest > MAX_TEXT:
            raise UploadError(f"A field of a spectrum has {longest:,} characters; the limit is {MAX_TEXT}.")
    if n_spectra > limits.spectra:
        raise UploadError(f"There are {n_spectra:,} spectra; the limit is {limits.spectra:,}.")
    if n_peaks > limits.job_peaks:
        raise UploadError(f"The spectra have {n_peaks:,} peaks; the limit is {limits.job_peaks:,}.")


def _max_message(limits: Limits) -> int:
    """Return the size of the largest answer of the other process that is within the limits."""
    n_fields = len(FIELDS) + len(METADATA)
    n_characters = n_fields * (MAX_TEXT + 20) * limits.spectra + 2 * MAX_REASON * MAX_PROBLEMS
    return PEAK_BYTES * limits.job_peaks + CHARACTER_BYTES * n_characters


def _describe(message: str, path: Path) -> str:
    """Return a message with neither the path on the server nor the name of the stored file."""
    return message.replace(str(path), SUBJECT).replace(path.name, SUBJECT)[:MAX_REASON]


def _limit_resources(limits: Limits) -> None:
    """Limit the memory of this process to what it has now and ``parse_bytes`` more, and its computing time."""
    with suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        os.nice(NICENESS)
        resource.setrlimit(resource.RLIMIT_CPU, (limits.parse_seconds, limits.parse_seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # readers write nothing
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            size = pages * resource.getpagesize() + limits.parse_bytes
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
