"""Run the parts of an experiment; what is finished is not computed again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from psilearn import __version__
from psilearn.experiments.experiment import Context, Experiment, Part, Say
from psilearn.experiments.record import Record, environment, write_csv


class MissingDataError(Exception):
    """A part that cannot run because its data is not there."""


def run(
    experiment: Experiment,
    output: Path,
    *,
    say: Say,
    only: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    quick: bool = False,
    fresh: bool = False,
) -> Iterator[Record | MissingDataError]:
    """Yield the record of each part, computed now or found finished; where data is missing, the error that says so.

    Parameters
    ----------
    experiment : Experiment
    output : path
        ``output/<experiment>/`` receives ``<part>.json``, pictures and ``results.csv``.
    say : function
        is told what is being done.
    only : str, optional
        the name of a single part.
    seed : int
        of every random choice.
    jobs : int, optional
        processes of the searches.
    quick : bool
        a trial run on little data: its figures say nothing.
    fresh : bool
        compute finished parts too.
    """
    parts = [part for part in experiment.parts if only in (None, part.name)]
    if not parts:
        known = ", ".join(part.name for part in experiment.parts)
        raise ValueError(f"{experiment.name} has no part {only!r}; its parts are {known}.")
    folder = output / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        config = {**part.config, **(part.quick if quick else {})}
        key = _key(experiment.name, part.name, seed, config)
        done = None if fresh else finished(folder, part, key)
        if done is not None:
            say(f"{experiment.name}, {part.name}: finished on {done.finished}")
            yield done
            continue
        try:
            yield _run_part(experiment, part, Context(config, seed, jobs, say), key, quick, folder)
        except FileNotFoundError as error:
            missing = MissingDataError(f"{experiment.name}, {part.name}: {error}")
            missing.__cause__ = error
            yield missing
        write_csv(records(experiment, output), folder / "results.csv")


def finished(folder: Path, part: Part, key: str) -> Record | None:
    """Return the record of a part that was run with this key, or None."""
    path = folder / f"{part.name}.json"
    if not path.exists():
        return None
    record = Record.load(path)
    return record if record.key == key and all((folder / name).exists() for name in record.figures) else None


def records(experiment: Experiment, output: Path) -> list[Record]:
    """Return what is there of an experiment, in the order of its parts."""
    paths = (output / experiment.name / f"{part.name}.json" for part in experiment.parts)
    return [Record.load(path) for path in paths if path.exists()]


def _key(*what: object) -> str:
    """Return a hash of what determines a result."""
    return hashlib.sha256(json.dumps([__version__, *what], sort_keys=True).encode()).hexdigest()


def _run_part(experiment: Experiment, part: Part, context: Context, key: str, quick: bool, folder: Path) -> Record:
    start = time.perf_counter()
    context.say(f"{experiment.name}, {part.name}: starting")
    outcome = part.run(context)
    figures: dict[str, str] = {}
    for name, (figure, caption) in outcome.figures.items():
        file_name = f"{part.name}-{name}.png"
        figure.savefig(folder / file_name, dpi=150, bbox_inches="tight", facecolor="white")
        figures[file_name] = caption
    record = Record(
        experiment=experiment.name,
        part=part.name,
        title=part.title,
        seed=context.seed,
        quick=quick,
        config=dict(context.config),
        key=key,
        rows=outcome.rows,
        notes=outcome.notes,
        figures=figures,
        seconds=time.perf_counter() - start,
        finished=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        environment=environment(),
    )
    record.save(folder)
    return record
