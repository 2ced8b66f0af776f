"""``psilearn reproduce``: run experiments, show their tables and update the report."""

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

from psilearn.app.console import PipeConsole, report_interrupt
from psilearn_lab import experiments
from psilearn_lab.experiments.experiment import Experiment, FailedError, Log, PartError
from psilearn_lab.experiments.report import Chapter, write_report
from psilearn_lab.experiments.results import Record
from psilearn_lab.experiments.runner import is_current, load_results, results_folder, run
from psilearn_lab.experiments.tables import TRIAL_WARNING, format_seconds, render_tables, summarize

RESUME = "Finished parts are kept; run the same command again to resume."
MAX_DEFAULT_JOBS = 4  # each process of a search holds an eigendecomposition of K_x


def select_experiments(name: str, only: str | None) -> list[Experiment]:
    """Return the experiment of this name, or all for ``"all"``; with ``only``, those that have such a part.

    A ValueError lists the known names if there is no such experiment or part.
    """
    named = [experiments.find(known) for known in (experiments.NAMES if name == "all" else [name])]
    selected = [experiment for experiment in named if only is None or only in (part.name for part in experiment.parts)]
    if not selected:
        known = ", ".join(dict.fromkeys(part.name for experiment in named for part in experiment.parts))
        raise ValueError(f"There is no part {only!r}; the parts are {known}.")
    return selected


def check_output_folder(path: Path, option: str) -> None:
    """Raise an OSError that names the option if a folder, or the first parent that exists, is not writable."""
    existing = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    probe = existing / f".psilearn.{os.getpid()}.tmp"
    if not existing.is_dir():
        raise NotADirectoryError(f"{option}: {existing} is a file; name a folder.")
    try:
        probe.write_bytes(b"\0")  # fails on full and read-only disks also for the superuser
    except OSError as error:
        raise type(error)(f"{option}: the folder {existing} is not writable: {error.strerror}.") from error
    finally:
        probe.unlink(missing_ok=True)


@dataclass
class Reproduction:
    """One call of the command, with the options of :func:`~psilearn_lab.experiments.run`."""

    output: Path
    seed: int = 0
    n_jobs: int | None = None
    only: str | None = None
    quick: bool = False
    fresh: bool = False
    device: str | None = None
    console: Console = field(default_factory=PipeConsole)  # tables
    progress_console: Console = field(default_factory=lambda: PipeConsole(stderr=True))  # the current step

    @property
    def folder(self) -> Path:
        """The folder of the report, with one subfolder per experiment."""
        return results_folder(self.output, self.seed, self.quick)

    def prepare_folder(self) -> None:
        """Create the folder; raise an OSError if it cannot be created or written to."""
        check_output_folder(self.folder, "--output")
        self.folder.mkdir(parents=True, exist_ok=True)

    def show_overview(self) -> None:
        """List the experiments, their parts, and which of them are finished."""
        for name in experiments.NAMES:
            experiment = experiments.find(name)
            self._print(f"\n{name}  {experiment.title} ({experiment.source})")
            results = {r.part if isinstance(r, Record) else r.part.name: r for r in self._load_results(experiment)}
            for part in experiment.parts:
                self._print(f"  {part.name:<20} {_describe_state(results.get(part.name), experiment)}")
        self._print("\nRun one experiment with psilearn reproduce NAME, all of them with psilearn reproduce all.")

    def run(self, selected: Sequence[Experiment]) -> int:
        """Run experiments, show their results, write the report; return the exit status of the command."""
        records: list[Record] = []
        errors: dict[str, list[PartError]] = {}
        interrupt_status, failed = 0, False
        start = time.monotonic()
        try:
            for experiment in selected:
                results, write_error = self._run_experiment(experiment)
                errors[experiment.name] = [result for result in results if isinstance(result, PartError)]
                records += [result for result in results if isinstance(result, Record)]
                failed |= write_error or any(isinstance(error, FailedError) for error in errors[experiment.name])
        except KeyboardInterrupt as interrupt:
            interrupt_status = report_interrupt(interrupt, RESUME)
        failed |= not self._write_report(errors)
        if records:
            self._print(f"{_summary(records)} ({format_seconds(time.monotonic() - start)})", "bold")
        elif not interrupt_status:
            self._print("No part gave a result.", "bold")
        return interrupt_status or int(failed or not records)

    def _run_experiment(self, experiment: Experiment) -> tuple[list[Record | PartError], bool]:
        """Return the results of the parts, and whether writing them failed."""
        for stored in self._load_results(experiment):
            if isinstance(stored, FailedError) and self.only in (None, stored.part.name):
                self._print(f"Computing again: {stored}", "yellow")
        results: list[Record | PartError] = []
        write_error = None
        with self._progress_log() as log:
            parts = run(
                experiment,
                self.output,
                log=log,
                only=self.only,
                seed=self.seed,
                n_jobs=self.n_jobs or min(cpu_count(), MAX_DEFAULT_JOBS),
                quick=self.quick,
                fresh=self.fresh,
                device=self.device,
            )
            try:
                results.extend(parts)
            except OSError as error:
                write_error = error
        self._show_results(experiment, results)
        if write_error:
            self._print(f"The results could not be written: {write_error}", "bold red")
        return results, write_error is not None

    def _show_results(self, experiment: Experiment, results: Sequence[Record | PartError]) -> None:
        self._print(f"\n{experiment.title} ({experiment.source})\n", "bold underline")
        for result in results:
            if isinstance(result, Record):
                self._show_record(result)
            else:
                self._show_error(result)
        if any(isinstance(result, Record) for result in results):
            self._print(f"Files: {self.folder / experiment.name}\n")

    def _show_record(self, record: Record) -> None:
        if record.trial:
            self._print(f"{TRIAL_WARNING}\n", "bold yellow")
        self.console.print(render_tables(record.rows, with_verdicts=not record.trial))
        for note in record.notes:
            self._print(f"- {note}")

    def _show_error(self, error: PartError) -> None:
        """Print why a part has no record; if it failed, with the traceback on stderr."""
        failed = isinstance(error, FailedError)
        self._print(f"{error.part.title}: {'failed' if failed else 'skipped'}. {error}", "red" if failed else "yellow")
        if failed and error.__cause__:
            text = "".join(traceback.format_exception(error.__cause__))
            self.progress_console.print(text, markup=False, highlight=False, style="dim", soft_wrap=True)

    def _write_report(self, errors: dict[str, list[PartError]]) -> bool:
        """Write the report of all finished parts in the folder; return whether it could be written."""
        chapters = [
            self._make_chapter(experiments.find(name), errors.get(name, []))
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

    def _make_chapter(self, experiment: Experiment, errors: Sequence[PartError]) -> Chapter:
        results = self._load_results(experiment)
        records = [result for result in results if isinstance(result, Record)]
        unreadable = [result for result in results if isinstance(result, FailedError)]
        recorded = {record.part for record in records}
        missing = {part.name: "not run yet" for part in experiment.parts if part.name not in recorded}
        missing |= {error.part.name: str(error) for error in (*unreadable, *errors)}
        return Chapter(experiment, records, missing, self.folder / experiment.name)

    def _load_results(self, experiment: Experiment) -> list[Record | FailedError]:
        return load_results(experiment, self.output, self.seed, self.quick)

    def _print(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def _progress_log(self) -> Iterator[Log]:
        """Show the current step: in one line that changes on a terminal, one line per step elsewhere."""
        if not self.progress_console.is_terminal:
            start = time.monotonic()
            yield lambda text: self.progress_console.print(
                f"{time.monotonic() - start:6.0f} s  {text}", markup=False, highlight=False, soft_wrap=True
            )
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self.progress_console, transient=True, redirect_stdout=False) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda text: bar.update(task, description=text)


def _summary(records: Sequence[Record]) -> str:
    """Return one sentence about all results."""
    compared = [row for record in records if not record.trial for row in record.rows]
    text = f"{summarize(compared)}." if compared else TRIAL_WARNING
    return f"{text[:1].upper()}{text[1:]}"


def _describe_state(result: Record | FailedError | None, experiment: Experiment) -> str:
    if result is None:
        return "not run"
    if isinstance(result, FailedError):
        return f"unreadable: {result}"
    outdated = "; made by another version or with other settings, would be computed again"
    state = f"finished on {result.finished} in {format_seconds(result.seconds)}"
    return state if is_current(result, experiment) else state + outdated
