"""Run a target on many inputs in child processes, and collect what happened."""

from __future__ import annotations

import math
import os
import signal
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import Any

from psilearn_lab.fuzz.target import ACCEPTED, CLEAR, DEFECT, Result, Target
from psilearn_lab.fuzz.trees import Tree, write_tree
from psilearn_lab.fuzz.worker import Inputs, StoredInput, read_seeds, run_inputs, write_seeds

TIME_LIMIT = 10.0  # seconds per input
START_LIMIT = 120.0  # seconds until the first input
HANG, CRASH = "hang", "crash"
_FORK = get_context("fork")
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # inputs need no disk


@dataclass
class Defect:
    """A place in the code with a defect: the first input that shows it, and how many do."""

    index: int
    reason: str
    path: str
    count: int = 1


@dataclass
class Summary:
    """The figures of a run of one target."""

    target: str
    seed: int
    attempts: int = 0
    clear_errors: int = 0
    accepted: int = 0
    defects: int = 0
    seconds: float = 0.0
    places: dict[str, Defect] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count an attempt."""
        self.attempts += 1
        self.clear_errors += result.kind == CLEAR
        self.accepted += result.kind == ACCEPTED
        self.defects += result.kind == DEFECT

    def to_json(self) -> dict[str, Any]:
        """Return the figures for a JSON file."""
        return asdict(self)


class Stopwatch:
    """The time since the first input, and whether the time of a run is over."""

    def __init__(self, limit: float | None) -> None:
        self._limit = math.inf if limit is None else limit
        self._begin: float | None = None

    def start(self) -> None:
        """Start the clock unless it runs already."""
        self._begin = monotonic() if self._begin is None else self._begin

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return 0.0 if self._begin is None else monotonic() - self._begin

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.seconds >= self._limit


class Campaign:
    """Attempts of one target with the inputs of a random seed."""

    def __init__(self, target: Target, seed: int, failures: Path | None = None, time_limit: float = TIME_LIMIT) -> None:
        self.target = target
        self.summary = Summary(target.name, seed)
        self.time_limit = time_limit
        self._failures = failures

    def run(self, *, seconds: float | None = None, runs: int | None = None, first: int = 0) -> Summary:
        """Try inputs for a time or up to a number, from the given one on."""
        with tempfile.TemporaryDirectory(prefix="psilearn-fuzz-", dir=_MEMORY) as folder:
            inputs = Inputs(self.target, self._make_seeds(Path(folder)), self.summary.seed)
            return self._run_all(inputs, Path(folder), seconds, runs, first)

    def reproduce(self, tree: Tree) -> Summary:
        """Try one stored input."""
        with tempfile.TemporaryDirectory(prefix="psilearn-fuzz-", dir=_MEMORY) as folder:
            inputs = StoredInput(self.target, self._make_seeds(Path(folder)), tree)
            return self._run_all(inputs, Path(folder), None, 1, 0)

    def _make_seeds(self, folder: Path) -> list[Tree]:
        """Write the seeds in a child process, so that this process starts no threads before it forks."""
        (folder / "seeds").mkdir()
        child = _FORK.Process(target=write_seeds, args=(self.target, folder / "seeds", folder / "log"))
        child.start()
        child.join(START_LIMIT)
        if child.exitcode != 0:
            child.kill()
            raise RuntimeError(f"{self.target.name}: no seeds. {_read_end(folder / 'log')}")
        return read_seeds(folder / "seeds")

    def _run_all(self, inputs: Inputs, folder: Path, seconds: float | None, runs: int | None, first: int) -> Summary:
        """Start child processes until all inputs were tried; each crash needs a new one."""
        n_runs = sys.maxsize if runs is None else runs
        self._clock = Stopwatch(seconds)
        while self.summary.attempts < n_runs and not self._clock.is_over:
            self._run_child(inputs, folder, n_runs, first)
        self.summary.seconds = round(self._clock.seconds, 1)
        return self.summary

    def _run_child(self, inputs: Inputs, folder: Path, n_runs: int, first: int) -> None:
        """Try inputs in one child process until it crashes or hangs, or the time or number is reached."""
        pipe = receiver, sender = _FORK.Pipe(duplex=False)
        index, log = first + self.summary.attempts, folder / "log"
        child = _FORK.Process(target=run_inputs, args=(inputs, index, folder, log, pipe))
        child.start()
        sender.close()
        try:
            self._check_start(receiver, log)
            self._clock.start()
            while self.summary.attempts < n_runs and not self._clock.is_over:
                result = self._receive(receiver, child, log)
                self._add(inputs, first + self.summary.attempts, result)
                if result.place in (HANG, CRASH):
                    return
        finally:
            receiver.close()
            child.kill()
            child.join()

    def _check_start(self, receiver: Connection, log: Path) -> None:
        """Raise an error if the child process does not accept the seeds."""
        try:
            problem = receiver.recv() if receiver.poll(START_LIMIT) else "no answer"
        except EOFError:
            problem = _read_end(log)
        if problem is not None:
            raise RuntimeError(f"{self.target.name}: the seeds are not accepted. {problem}")

    def _receive(self, receiver: Connection, child: BaseProcess, log: Path) -> Result:
        """Return the result of the next input; a defect if there is none in time or the child process ended."""
        if not receiver.poll(self.time_limit):
            return Result(DEFECT, f"no result within {self.time_limit:g} s", HANG)
        try:
            result: Result = receiver.recv()
        except EOFError:
            child.join()
            return Result(DEFECT, f"{_describe_exit(child.exitcode)}. {_read_end(log)}", CRASH)
        return result

    def _add(self, inputs: Inputs, index: int, result: Result) -> None:
        """Count a result, and keep the input of a new defect."""
        self.summary.add(result)
        if result.kind != DEFECT:
            return
        place = f"{result.place} {result.reason}" if result.place == CRASH else result.place
        if place in self.summary.places:
            self.summary.places[place].count += 1
            return
        self._failures = self._failures or Path(tempfile.mkdtemp(prefix="psilearn-fuzz-failures-"))
        path = self._failures / f"{self.target.name}-{self.summary.seed}-{index}"
        write_tree(path, inputs[index])
        self.summary.places[place] = Defect(index, result.reason, str(path))


def _describe_exit(status: int | None) -> str:
    """Return how a process ended."""
    if status is not None and status < 0:
        return f"the process was ended by {signal.Signals(-status).name}"
    return f"the process ended with status {status}"


def _read_end(log: Path) -> str:
    """Return the place of the last crash in a log, or its last line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    files = [line.strip() for line in lines[-60:] if line.strip().startswith("File ")]
    return " ".join([*[line for line in files if "psilearn" in line][:1], *lines[-1:]])
