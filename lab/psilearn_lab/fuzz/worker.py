"""The child process, in which inputs are read: a crash, a hang or a large allocation ends only this process."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import warnings
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from psilearn_lab.fuzz.target import DEFECT, Result, Target, attempt
from psilearn_lab.fuzz.trees import Tree, count_bytes, read_tree, write_tree

EXTRA_BYTES = 64 << 20  # that reading may need beside twice the size of the input
ALLOCATION_BYTES = 1 << 30  # that one process may allocate, used or not, beyond what it had after the seeds
INPUT_FOLDER = "fuzzed-input"  # its name must not occur in messages by chance


class Inputs:
    """The numbered inputs of a target; each is determined by the seeds, the random seed and its number."""

    def __init__(self, target: Target, seeds: list[Tree], random_seed: int) -> None:
        self.target = target
        self.seeds = seeds
        self.random_seed = random_seed

    def __getitem__(self, index: int) -> Tree:
        return self.target.mutate(self.seeds, Random(f"{self.random_seed}:{self.target.name}:{index}"))


class StoredInput(Inputs):
    """One input that was stored, with any number."""

    def __init__(self, target: Target, seeds: list[Tree], tree: Tree) -> None:
        super().__init__(target, seeds, 0)
        self.tree = tree

    def __getitem__(self, index: int) -> Tree:
        return self.tree


def write_seeds(target: Target, folder: Path, log: Path) -> None:
    """Write the seeds; the main function of a child process."""
    _prepare_process(log)
    target.write_seeds(folder)


def run_inputs(inputs: Inputs, first: int, work: Path, log: Path, pipe: tuple[Connection, Connection]) -> None:
    """Try the seeds, then inputs from a number on until the pipe is closed; the main function of a child process.

    The first message is None, or says which seed was not accepted; then the result of each input is sent.
    """
    _prepare_process(log)
    receiver, connection = pipe
    receiver.close()  # the copy of the parent is then the only one: if the parent ends, sending fails
    target, folder = inputs.target, work / INPUT_FOLDER
    if target.prepare is not None:
        target.prepare()
    connection.send(_try_seeds(inputs, folder))
    _limit_allocation()
    for index in count(first):
        tree = inputs[index]
        write_tree(folder, tree)
        try:
            connection.send(_attempt_measured(target, folder, tree))
        except BrokenPipeError:
            return


def _try_seeds(inputs: Inputs, folder: Path) -> str | None:
    """Read each seed twice, because imports and caches do not belong to an input; return a message about a bad seed."""
    for i, seed in enumerate(inputs.seeds * 2):
        write_tree(folder, seed)
        value = inputs.target.read(folder)
        try:
            if inputs.target.use is not None:
                inputs.target.use(value)
        except Exception as error:
            return f"seed {i} cannot be used: {type(error).__name__}: {error}"
    return None


def read_seeds(folder: Path) -> list[Tree]:
    """Return the seeds of a folder."""
    return [read_tree(path) for path in sorted(folder.iterdir())]


def _prepare_process(log: Path) -> None:
    """Send the output of libraries to a file, and the place of a crash too; end with the parent by an interrupt."""
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(stream), "w", buffering=1) for _ in range(2))
    faulthandler.enable(stream)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _attempt_measured(target: Target, folder: Path, tree: Tree) -> Result:
    """Return the result of an attempt, or a defect if it used too much memory."""
    before = _read_memory(reset=True)
    result = attempt(target, folder, target.accepted_names(folder, tree))
    growth = _read_memory() - before
    allowed = 2 * count_bytes(tree) + EXTRA_BYTES
    if growth <= allowed:
        return result
    return Result(DEFECT, f"memory: {growth:,} bytes for an input of {count_bytes(tree):,} bytes", "memory")


def _read_memory(reset: bool = False) -> int:
    """Return the largest resident set since the last reset, in bytes (without Linux: since the start)."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return _read_status(status, "VmHWM:")


def _limit_allocation() -> None:
    """Let larger allocations fail, also those whose memory is never used."""
    try:
        used = _read_status(Path("/proc/self/status").read_text(encoding="ascii", errors="replace"), "VmData:")
        resource.setrlimit(resource.RLIMIT_DATA, (used + ALLOCATION_BYTES, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        return


def _read_status(status: str, name: str) -> int:
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name))
