"""Kills and forks: what commands leave when they are killed at any moment, and what a fork during a prediction does.

Half of the kills come at a random time, the others at a random operation on a file of the output, where inconsistent
states would arise. After every kill the library must report the output as absent, unfinished or finished, and no worker
process may be left; after one to three kills the work is run to its end, and must give the result of a run that was
never killed. A child that is forked while another thread predicts must be able to predict and to end.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psilearn import OEL, load_model, save_model
from psilearn.app.cli import app
from psilearn.kernels import Gaussian
from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, MoleculeList, Ranking, read_spectra
from psilearn_chem.molecules import fingerprints
from psilearn_chem.spectra import write_parquet
from psilearn_lab.fuzz.harness import ACCEPTED, CLEAR, DEFECT, Result, Tally, defect_of
from psilearn_lab.fuzz.models import make_spectra

FILE_EVENTS = {"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "shutil.rmtree"}
MAX_KILLS_IN_A_ROW = 3
FORK_SECONDS = 20.0  # after which a forked child hangs
GROUPS = ("C", "CC", "CCC", "O", "OC", "OCC", "N", "NC", "F", "Cl", "C(=O)O", "CO")
SMILES = [f"{a}c1ccc({b})cc1" for a, b in itertools.combinations_with_replacement(GROUPS, 2)]
N_MODELS = 6


@dataclass(frozen=True)
class Scenario:
    """Work that is killed: the command, the state of its output by a result, and what to prepare."""

    run: Callable[[Path, Path], None]  # given the folder of the inputs and the output
    result: Callable[[Path, Path], Any]  # of a finished output; an error of an absent or unfinished one
    prepare: Callable[[Path], None] = lambda folder: None
    begin: Callable[[Path, Path], None] = lambda folder, output: None

    def state(self, folder: Path, output: Path) -> str:
        """Return "absent", "unfinished" or "finished"; raise any other error."""
        try:
            return "unfinished" if self.result(folder, output) is None else "finished"
        except FileNotFoundError:
            return "unfinished" if output.exists() else "absent"
        except ValueError as error:
            if any(text in str(error) for text in ("unfinished", "has no manifest", "not complete", "interrupted")):
                return "unfinished"
            raise


def run_command(*arguments: object) -> None:
    """Run a command of the command line, which ends by a SystemExit with its status."""
    app([str(argument) for argument in arguments])


def _write_molecules(folder: Path) -> None:
    fingerprints.CHUNK_SIZE = 16  # molecules: a build of few molecules then has several chunks
    (folder / "molecules.smi").write_text("\n".join(f"{text} m{i}" for i, text in enumerate([*SMILES, "broken("])))


def _build(jobs: int) -> Callable[[Path, Path], None]:
    options = ("--jobs", jobs)
    return lambda folder, output: run_command("candidates", "build", folder / "molecules.smi", "-o", output, *options)


def _library(folder: Path, output: Path) -> Any:
    library = CandidateLibrary.open(output)
    library.verify()
    rows = slice(0, len(library))
    return library.hash, library.get_smiles(rows), library.get_names(rows)


def _write_spectra(folder: Path) -> None:
    CandidateLibrary.build(MoleculeList(SMILES, SMILES), folder / "library")
    write_parquet(make_spectra(SMILES[:40]), folder / "spectra.parquet")


def _train(folder: Path, output: Path) -> None:
    options = ("--candidates", folder / "library", "--unlabeled", 20, "--calibration", 0.2)
    run_command("metabolites", "train", folder / "spectra.parquet", "-o", output, *options)


def _rankings(folder: Path, output: Path) -> Any:
    identifier, library = MetaboliteIdentifier.load(output), CandidateLibrary.open(folder / "library")
    ranked = identifier.rank(read_spectra(folder / "spectra.parquet").spectra, library)
    return [(ranking.rows.tolist(), ranking.distances.tolist()) for ranking in ranked if isinstance(ranking, Ranking)]


def _fit_number(number: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(number)
    X = np.random.default_rng(0).normal(size=(40, 3))
    return OEL(n_components=2).fit(X, rng.normal(size=(40, 4))), X


def _overwrite(folder: Path, output: Path) -> None:
    for number in range(1, N_MODELS):
        save_model(_fit_number(number)[0], output, overwrite=True)


def _newest(folder: Path, output: Path) -> Any:
    """Return the predictions of the newest model, None for one of the others; any further one is an error."""
    found = load_model(output).predict(_fit_number(0)[1]).tolist()
    known = [model.predict(X).tolist() for model, X in map(_fit_number, range(N_MODELS))]
    return found if known.index(found) == N_MODELS - 1 else None


SCENARIOS: dict[str, Scenario] = {
    "build": Scenario(_build(1), _library, _write_molecules),
    "build-processes": Scenario(_build(2), _library, _write_molecules),
    "train": Scenario(_train, _rankings, _write_spectra),
    "overwrite": Scenario(_overwrite, _newest, begin=lambda _, output: save_model(_fit_number(0)[0], output)),
}


class Killer:
    """Kills the work of one scenario at random moments, and checks what is left."""

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        self.scenario, self.folder, self.rng = SCENARIOS[name], folder, random.Random(f"{seed} {name}")
        self.scenario.prepare(folder)
        reference, start = self._new_output("reference"), time.monotonic()
        self._run_in_child(reference, None, None)
        self.seconds = time.monotonic() - start
        self.operations = int((folder / "operations").read_text())
        self.expected = self.scenario.result(folder, reference)

    def kill_in_a_row(self, number: int, most: int) -> list[Result]:
        """Kill the work one to three times, then run it to its end; return a result per kill."""
        output, results = self._new_output(f"run-{number}"), []
        try:
            for _ in range(self.rng.randint(1, min(MAX_KILLS_IN_A_ROW, most))):
                by_time = self.rng.random() < 0.5
                seconds = self.rng.uniform(0, self.seconds) if by_time else None
                operation = None if by_time else self.rng.randint(1, max(1, self.operations))
                was_killed = self._run_in_child(output, seconds, operation)
                state = self.scenario.state(self.folder, output)
                results += [Result(ACCEPTED if state == "finished" else CLEAR)] if was_killed else []
                if state == "finished":
                    break
            if self.scenario.state(self.folder, output) != "finished":
                self._run_in_child(output, None, None)
            if self.scenario.result(self.folder, output) != self.expected:
                raise AssertionError("the resumed result differs from that of an uninterrupted run")
        except Exception as error:
            results.append(Result(DEFECT, f"{output.name}: {type(error).__name__}: {error}", str(error)))
        return results

    def _new_output(self, name: str) -> Path:
        self.scenario.begin(self.folder, self.folder / name)
        return self.folder / name

    def _run_in_child(self, output: Path, seconds: float | None, operation: int | None) -> bool:
        """Run the work in a child process; return whether it was killed. Its failure is an error."""
        pid, log = os.fork(), self.folder / "log"
        if pid == 0:
            self._run_and_exit(output, operation, log)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _check_no_survivors(pid)
        if status not in (0, -signal.SIGKILL) or (seconds is operation is None and status):
            raise AssertionError(f"the process ended with status {status}: {log.read_text()[-1000:]}")
        return status != 0

    def _run_and_exit(self, output: Path, last: int | None, log: Path) -> None:
        """Do the work in a new process group, killed before an operation; end without the clean-up of the parent."""
        status, done = 1, 0

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal done
            path = arguments[0] if event in FILE_EVENTS else None
            if isinstance(path, str | Path) and str(path).startswith(str(output)):
                done += 1
                if done == last:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            os.setpgid(0, 0)
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            sys.addaudithook(hook)
            self.scenario.run(self.folder, output)
            status = 0
        except SystemExit as exit:  # of a command
            status = int(exit.code or 0)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            (self.folder / "operations").write_text(str(done))
            os._exit(status)


def _check_no_survivors(group: int) -> None:
    """Raise an error if a process of a group is running some seconds after its leader ended."""
    end = time.monotonic() + 5
    while True:
        listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        survivors = sum(int(row[0]) == group and not row[1].startswith("Z") for row in rows)
        if not survivors:
            return
        if time.monotonic() > end:
            os.killpg(group, signal.SIGKILL)
            raise AssertionError(f"{survivors} processes survived their parent")
        time.sleep(0.1)


def attack_by_kills(name: str, n_kills: int, seed: int = 0) -> Tally:
    """Kill a scenario until this many kills are counted."""
    tally = Tally(f"kills, {name}", seed)
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        killer = Killer(name, Path(folder), seed)
        for number in itertools.count():
            if tally.attempts >= n_kills:
                return tally
            for result in killer.kill_in_a_row(number, n_kills - tally.attempts):
                tally.add(result)
    return tally


def attack_by_forks(n_forks: int, seed: int = 0) -> Tally:
    """Fork while another thread predicts; the child must predict as the parent does, in time."""
    tally, rng = Tally("forks during predictions", seed), np.random.default_rng(seed)
    X, Y = rng.normal(size=(400, 30)), rng.normal(size=(400, 20))
    model = OEL(Gaussian(0.02), Gaussian(0.02), alpha=1e-3, n_components=50).fit(X, Y)
    expected, done = model.predict(X[:5]), threading.Event()

    def predict() -> None:
        while not done.is_set():
            model.predict(X)

    thread = threading.Thread(target=predict)
    thread.start()
    for _ in range(n_forks):
        time.sleep(rng.uniform(0, 0.02))
        tally.add(fork_once(lambda: np.array_equal(model.predict(X[:5]), expected)))
    done.set()
    thread.join()
    return tally


def fork_once(check: Callable[[], bool]) -> Result:
    """Run a check in a forked child; a defect if it fails or does not end in time."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if check() else 3)
        except BaseException as error:
            print(defect_of("in a forked child", error), file=sys.stderr)
            os._exit(4)
    end = time.monotonic() + FORK_SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return Result(DEFECT, f"the child ended with status {code}", f"status {code}") if code else Result(ACCEPTED)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return Result(DEFECT, f"the child hangs for {FORK_SECONDS:g} s", "hang")
