"""``psilearn reproduce``: run experiments, show their tables, keep the report up to date."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from joblib import cpu_count
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from psilearn import experiments
from psilearn.experiments import tables
from psilearn.experiments.experiment import Experiment, Say
from psilearn.experiments.record import Record
from psilearn.experiments.report import Chapter, write_report
from psilearn.experiments.runner import FailedError, PartError, is_current, place, run, stored

INTERRUPTED = 130
PROCESSES = 4  # of the searches by default, at the most: each holds a decomposed K_x


def choose(name: str, only: str | None) -> list[Experiment]:
    """Return the experiments that are wanted: one by its name, or all; with ``only``, those that have such a part.

    Raises
    ------
    ValueError
        if there is no such experiment or part; it lists those that there are.
    """
    wanted = [experiments.find(n) for n in (experiments.NAMES if name == "all" else [name])]
    having = [experiment for experiment in wanted if only is None or only in (part.name for part in experiment.parts)]
    if not having:
        known = ", ".join(dict.fromkeys(part.name for experiment in wanted for part in experiment.parts))
        raise ValueError(f"There is no part {only!r}; there are {known}.")
    return having


@dataclass
class Reproduction:
    """One call of the command: where results go, and how they are made.

    Parameters
    ----------
    output : path
        the folder of the results; see :func:`~psilearn.experiments.runner.place`.
    seed, jobs, quick, fresh :
        as in :func:`~psilearn.experiments.runner.run`.
    only : str, optional
        the name of a single part.
    """

    output: Path
    seed: int = 0
    jobs: int | None = None
    only: str | None = None
    quick: bool = False
    fresh: bool = False
    console: Console = field(default_factory=Console)  # tables
    progress: Console = field(default_factory=lambda: Console(stderr=True))  # what is being done

    @property
    def folder(self) -> Path:
        """Where the report lies, and beside it one folder an experiment."""
        return place(self.output, self.seed, self.quick)

    def prepare(self) -> None:
        """Make the folder; OSError where that cannot be, or where nothing can be written in it."""
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is a file")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(f"nothing may be written in {self.folder}")

    def overview(self) -> None:
        """Show the experiments, their parts, and which of them are finished."""
        for name in experiments.NAMES:
            experiment = experiments.find(name)
            self._print(f"\n{name}  {experiment.title} ({experiment.source})")
            found = {r.part if isinstance(r, Record) else r.part.name: r for r in self._stored(experiment)}
            for part in experiment.parts:
                self._print(f"  {part.name:<20} {_state(found.get(part.name), experiment)}")
        self._print("\npsilearn reproduce NAME runs one of them, psilearn reproduce all every one.")

    def run(self, wanted: Sequence[Experiment]) -> int:
        """Run experiments, show what they gave, write the report; return the exit status of the command."""
        records: list[Record] = []
        errors: dict[str, list[PartError]] = {}
        interrupted = broken = False
        start = time.monotonic()
        try:
            for experiment in wanted:
                results, problem = self._run(experiment)
                errors[experiment.name] = [result for result in results if isinstance(result, PartError)]
                records += [result for result in results if isinstance(result, Record)]
                broken |= problem or any(isinstance(error, FailedError) for error in errors[experiment.name])
        except KeyboardInterrupt:
            interrupted = True
            self._print("\nInterrupted. Finished parts are kept: the same command goes on after them.")
        broken |= not self._write_report(errors)
        if records:
            judged = [row for record in records if not record.trial for row in record.rows]
            said = f"{tables.summary(judged)}." if judged else tables.TRIAL
            self._print(f"{said[:1].upper()}{said[1:]} ({tables.short_seconds(time.monotonic() - start)})", "bold")
        elif not interrupted:
            self._print("No part gave a result.", "bold")
        return INTERRUPTED if interrupted else int(broken or not records)

    def _run(self, experiment: Experiment) -> tuple[Sequence[Record | PartError], bool]:
        """Return what the parts gave, and whether the folder refused it."""
        for unreadable in self._stored(experiment):
            if isinstance(unreadable, FailedError) and self.only in (None, unreadable.part.name):
                self._print(f"Computed anew: {unreadable}", "yellow")
        results: list[Record | PartError] = []
        problem = None
        with self._narration() as say:
            parts = run(
                experiment,
                self.output,
                say=say,
                only=self.only,
                seed=self.seed,
                jobs=self.jobs or min(cpu_count(), PROCESSES),
                quick=self.quick,
                fresh=self.fresh,
            )
            try:
                results.extend(parts)
            except OSError as error:
                problem = error
        self._show(experiment, results)
        if problem:
            self._print(f"Results could not be kept: {problem}", "bold red")
        return results, problem is not None

    def _show(self, experiment: Experiment, results: Sequence[Record | PartError]) -> None:
        self._print(f"\n{experiment.title} ({experiment.source})\n", "bold underline")
        for result in results:
            if isinstance(result, Record):
                if result.trial:
                    self._print(f"{tables.TRIAL}\n", "bold yellow")
                self.console.print(tables.terminal(result.rows, judged=not result.trial))
                for note in result.notes:
                    self._print(f"- {note}")
                continue
            verb = "failed" if isinstance(result, FailedError) else "skipped"
            self._print(f"{result.part.title}: {verb}. {result}", "red" if verb == "failed" else "yellow")
            if verb == "failed" and result.__cause__:
                told = "".join(traceback.format_exception(result.__cause__))
                self.progress.print(told, markup=False, highlight=False, style="dim", soft_wrap=True)
        if any(isinstance(result, Record) for result in results):
            self._print(f"Files: {self.folder / experiment.name}\n")

    def _write_report(self, errors: dict[str, list[PartError]]) -> bool:
        """Write the report of all that is finished in the folder; False where that cannot be."""
        chapters = [
            self._chapter(experiments.find(name), errors.get(name, []))
            for name in experiments.NAMES
            if (self.folder / name).exists() or name in errors
        ]
        try:
            write_report(chapters, self.folder / "report.html")
        except OSError as error:
            self._print(f"The report could not be written: {error}", "bold red")
            return False
        self._print(f"Report: {self.folder / 'report.html'}")
        return True

    def _chapter(self, experiment: Experiment, errors: Sequence[PartError]) -> Chapter:
        found = self._stored(experiment)
        records = [record for record in found if isinstance(record, Record)]
        there = {record.part for record in records}
        missing = {part.name: "not run yet" for part in experiment.parts if part.name not in there}
        unreadable = [error for error in found if isinstance(error, FailedError)]
        missing |= {error.part.name: str(error) for error in (*unreadable, *errors)}
        return Chapter(experiment, records, missing, self.folder / experiment.name)

    def _stored(self, experiment: Experiment) -> Sequence[Record | FailedError]:
        return stored(experiment, self.output, self.seed, self.quick)

    def _print(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def _narration(self) -> Iterator[Say]:
        """Tell what is being done: one line that changes on a terminal, one line each elsewhere."""
        if not self.progress.is_terminal:
            start = time.monotonic()
            yield lambda text: self.progress.print(
                f"{time.monotonic() - start:6.0f} s  {text}", markup=False, highlight=False, soft_wrap=True
            )
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self.progress, transient=True, redirect_stdout=False) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda text: bar.update(task, description=text)


def _state(found: Record | FailedError | None, experiment: Experiment) -> str:
    if found is None:
        return "not run"
    if isinstance(found, FailedError):
        return f"unreadable: {found}"
    old = "" if is_current(found, experiment) else ", by another version or with other settings: would be computed anew"
    return f"finished on {found.finished} in {tables.short_seconds(found.seconds)}{old}"
