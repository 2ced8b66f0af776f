"""Kill commands at random moments, check what they leave, and that the same command then finishes the work.

``python -m psilearn_lab.fuzz.kills --runs 200`` kills each scenario in turn. Half of the kills come at a random time, the others at
a random operation on a file of the output, where inconsistent states would arise. After every kill

- the output is in a state that the library reports as absent, unfinished or finished, never damaged;
- no worker process is left;

and after one to three kills the work is run to its end: its result must equal that of a run that was never killed.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psilearn_lab.fuzz.kill_scenarios import SCENARIOS, Scenario

FILE_EVENTS = {"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "shutil.rmtree"}
MAX_KILLS_IN_A_ROW = 3
MAX_SECONDS_OF_SURVIVORS = 5.0


@dataclass(frozen=True)
class Moment:
    """When a process is killed: after some seconds, or before its n-th operation on a file of the output."""

    seconds: float | None = None
    operation: int | None = None


@dataclass
class Extent:
    """How long an uninterrupted run takes, and how many operations on files it does."""

    seconds: float
    operations: int

    def draw(self, rng: random.Random) -> Moment:
        """Return a random moment of the run."""
        if rng.random() < 0.5:
            return Moment(seconds=rng.uniform(0, self.seconds))
        return Moment(operation=rng.randint(1, max(1, self.operations)))


@dataclass
class Tally:
    """The results of a scenario."""

    kills: int = 0
    states: collections.Counter[str] = field(default_factory=collections.Counter)
    resumed: int = 0
    failures: list[str] = field(default_factory=list)


class Killer:
    """Kills the work of one scenario at random moments, and checks what is left."""

    def __init__(self, scenario: Scenario, folder: Path, rng: random.Random) -> None:
        self.scenario = scenario
        self.folder = folder
        self.rng = rng
        self.tally = Tally()
        scenario.prepare(folder)
        start, counter = time.monotonic(), folder / "operations"
        self._run_in_child(self._new_output("reference"), None, counter)
        self.extent = Extent(time.monotonic() - start, int(counter.read_text()))
        self.expected = scenario.result(folder / "reference")

    def kill_until(self, n_kills: int) -> Tally:
        """Kill the work until this many kills are counted."""
        number = 0
        while self.tally.kills < n_kills:
            number += 1
            output = self._new_output(f"run-{number}")
            try:
                for _ in range(self.rng.randint(1, min(MAX_KILLS_IN_A_ROW, n_kills - self.tally.kills))):
                    if self._kill_once(output) == "finished":
                        break
                self._resume(output)
            except Exception as error:
                reason = f"{self.scenario.name}, {output.name}: {type(error).__name__}: {error}"
                self.tally.failures.append(reason)
                print(reason, file=sys.stderr)
        return self.tally

    def _new_output(self, name: str) -> Path:
        self.scenario.begin(self.folder / name)
        return self.folder / name

    def _kill_once(self, output: Path) -> str:
        """Kill a run, and return the state that it leaves; a run that ends before it is killed does not count."""
        killed = self._run_in_child(output, self.extent.draw(self.rng))
        if killed:
            self.tally.kills += 1
        state = self.scenario.state(output)
        self.tally.states[state] += killed
        return state

    def _resume(self, output: Path) -> None:
        """Run the work to its end, and compare the result with that of a run that was never killed."""
        if self.scenario.state(output) != "finished":
            self._run_in_child(output, None)
        if self.scenario.result(output) != self.expected:
            raise AssertionError("the resumed result differs from that of an uninterrupted run")
        self.tally.resumed += 1

    def _run_in_child(self, output: Path, moment: Moment | None, counter: Path | None = None) -> bool:
        """Run the work in a child process; return whether it was killed at the moment. Its failure is an error."""
        log = self.folder / "log.txt"
        pid = os.fork()
        if pid == 0:
            _run_child(lambda: self.scenario.run(output), output, moment, log, counter)
        try:
            if moment is not None and moment.seconds is not None:
                time.sleep(moment.seconds)
                os.kill(pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except KeyboardInterrupt:
            os.kill(pid, signal.SIGKILL)
            raise
        _check_no_survivors(pid)
        if status not in (0, -signal.SIGKILL) or (moment is None and status):
            raise AssertionError(f"the process ended with status {status}: {log.read_text()[-1000:]}")
        return status != 0


def _run_child(work: Callable[[], None], output: Path, moment: Moment | None, log: Path, counter: Path | None) -> None:
    """Do the work in a new process group, and end the process without the clean-up of its parent."""
    status, count = 1, [0]
    try:
        os.setpgid(0, 0)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        count = _count_operations(output, None if moment is None else moment.operation)
        work()
        status = 0
    except SystemExit as exit:  # of a command
        status = int(exit.code or 0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        if counter is not None:
            counter.write_text(str(count[0]))
        os._exit(status)


def _count_operations(output: Path, last: int | None) -> list[int]:
    """Count the operations on files of the output from now on; kill this process before the last one."""
    count = [0]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in FILE_EVENTS or not isinstance(arguments[0], str | Path):
            return
        if os.fspath(arguments[0]).startswith(os.fspath(output)):
            count[0] += 1
            if count[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def _check_no_survivors(group: int) -> None:
    """Raise an error if a process of a group is running some seconds after its leader ended."""
    end = time.monotonic() + MAX_SECONDS_OF_SURVIVORS
    while survivors := _running_processes(group):
        if time.monotonic() > end:
            os.killpg(group, signal.SIGKILL)
            raise AssertionError(f"{survivors} processes survived their parent")
        time.sleep(0.1)


def _running_processes(group: int) -> int:
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return sum(int(row[0]) == group and not row[1].startswith("Z") for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kills, print a table of their results, and return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m psilearn_lab.fuzz.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="number of kills, over all scenarios (default: 20)")
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    names = options.scenario or list(SCENARIOS)
    print(f"{'scenario':<28} {'kills':>5}  {'absent':>6} {'unfinished':>10} {'finished':>8}  {'resumed':>7} failures")
    n_failures = 0
    for i, name in enumerate(names):
        n_kills = options.runs // len(names) + (i < options.runs % len(names))
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            tally = Killer(SCENARIOS[name](), Path(folder), random.Random(f"{options.seed} {name}")).kill_until(n_kills)
        states = [tally.states[state] for state in ("absent", "unfinished", "finished")]
        print(
            f"{name:<28} {tally.kills:>5}  {states[0]:>6} {states[1]:>10} {states[2]:>8}  {tally.resumed:>7} "
            f"{len(tally.failures)}",
            flush=True,
        )
        n_failures += len(tally.failures)
    return int(n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
