"""Attempts in a child process: a crash, a hang or a large allocation ends only this process, and is a defect."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

CLEAR, ACCEPTED, DEFECT = "clear error", "accepted", "defect"
START_LIMIT = 300.0  # seconds until the first attempt
ALLOCATION_BYTES = 1 << 30  # that one process may allocate, used or not, beyond what it had at the start
_FORK = get_context("fork")
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # inputs need no disk

Attempt = Callable[[int], "Result"]  # tries the input of a number


class Result(NamedTuple):
    """The result of one attempt; ``place`` tells defects apart, such as the line of code that raised an error."""

    kind: str
    reason: str = ""
    place: str = ""


@dataclass
class Tally:
    """The figures of one attacked part: a row of the table."""

    name: str
    seed: int = 0
    attempts: int = 0
    clear_errors: int = 0
    accepted: int = 0
    defects: int = 0
    seconds: float = 0.0
    places: dict[str, str] = field(default_factory=dict)  # the first defect of each place

    def add(self, result: Result, describe: Callable[[], str] = str) -> None:
        """Count an attempt, and keep the first defect of each place with the description of its input."""
        self.attempts += 1
        self.clear_errors += result.kind == CLEAR
        self.accepted += result.kind == ACCEPTED
        self.defects += result.kind == DEFECT
        if result.kind == DEFECT and result.place not in self.places:
            self.places[result.place] = f"{result.reason} ({describe()})"


def print_table(tallies: Iterable[Tally]) -> int:
    """Print each row as soon as it is known, its defects to the other stream; return 1 if there is a defect, else 0."""
    print("| attacked | attempts | clear errors | accepted | defects | seed |\n| --- | --- | --- | --- | --- | --- |")
    status = 0
    for tally in tallies:
        counts = (tally.attempts, tally.clear_errors, tally.accepted, tally.defects)
        print(f"| {tally.name} | {' | '.join(f'{count:,}' for count in counts)} | {tally.seed} |", flush=True)
        print("".join(f"    {reason}\n" for reason in tally.places.values()), end="", file=sys.stderr, flush=True)
        status |= tally.defects > 0
    return status


def run_attempts(
    prepare: Callable[[Path], Attempt],
    n_attempts: int,
    *,
    first: int = 0,
    seconds: float = float("inf"),
    time_limit: float = 10.0,
) -> Iterator[tuple[int, Result]]:
    """Yield the numbers and results of attempts, from ``first`` on, until their number or the time is reached.

    ``prepare`` is called in each child process with a folder that all of them share, and returns what one attempt does.
    """
    index, end, stop = first, first + n_attempts, float("inf")
    with tempfile.TemporaryDirectory(prefix="psilearn-fuzz-", dir=_MEMORY) as folder:
        log = Path(folder, "log")
        while index < end and monotonic() < stop:
            receiver, sender = _FORK.Pipe(duplex=False)
            child = _FORK.Process(target=_run_child, args=(prepare, Path(folder), index, receiver, sender))
            child.start()
            sender.close()
            try:
                _check_start(receiver, log)
                stop = min(stop, monotonic() + seconds)
                while index < end and monotonic() < stop:
                    result = _receive(receiver, child, log, time_limit)
                    yield index, result
                    index += 1
                    if result.place == "hang" or not child.is_alive():
                        break
            finally:
                receiver.close()
                child.kill()
                child.join()


def _run_child(prepare: Callable[[Path], Attempt], folder: Path, first: int, *pipe: Connection) -> None:
    """Try inputs from a number on until the pipe is closed; the main function of a child process."""
    receiver, sender = pipe
    receiver.close()  # the copy of the parent is then the only one: if the parent ends, sending fails
    stream = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(stream), "w", buffering=1) for _ in range(2))
    faulthandler.enable(stream)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    attempt = prepare(folder)
    sender.send(None)
    _limit_allocation()
    with suppress(BrokenPipeError):
        while True:
            sender.send(attempt(first))
            first += 1


def _check_start(receiver: Connection, log: Path) -> None:
    """Raise an error if the child process is not ready in time."""
    try:
        if receiver.poll(START_LIMIT):
            receiver.recv()
            return
    except EOFError:
        pass
    raise RuntimeError(f"the attack does not start: {' | '.join(_read_lines(log)[-5:])}")


def _receive(receiver: Connection, child: Any, log: Path, time_limit: float) -> Result:
    """Return the result of the next input; a defect if there is none in time or the child process ended."""
    if not receiver.poll(time_limit):
        return Result(DEFECT, f"no result within {time_limit:g} s", "hang")
    try:
        return Result(*receiver.recv())
    except EOFError:
        child.join()
        code, lines = child.exitcode, _read_lines(log)
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        places = [line for line in lines[-60:] if line.startswith("File ") and "psilearn" in line]
        return Result(DEFECT, f"the process {how}. {' '.join([*places[:1], *lines[-1:]])}", f"{how} {places[:1]}")


def _read_lines(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return [line.strip() for line in text.splitlines()]


def defect_of(what: str, error: BaseException) -> Result:
    """Return the defect that an error is, with the innermost line of psilearn that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame for frame in reversed(frames) if "/psilearn" in frame.filename), frames[-1])
    reason = f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return Result(DEFECT, reason, f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}")


def peak_memory(reset: bool = False) -> int:
    """Return the largest resident set since the last reset, in bytes (without Linux: since the start)."""
    with suppress(OSError):
        if reset:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return _read_status("VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit_allocation() -> None:
    """Let larger allocations fail, also those whose memory is never used."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (_read_status("VmData:") + ALLOCATION_BYTES, resource.RLIM_INFINITY))


def _read_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
