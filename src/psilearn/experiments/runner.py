"""Run the parts of an experiment; what is finished is not computed again."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from psilearn import __version__
from psilearn._utils.files import to_json_value, write_atomically
from psilearn.experiments.experiment import Context, Experiment, Outcome, Part, Say
from psilearn.experiments.record import Record, environment, write_csv

NO_PICTURES = "No pictures: they need the extra psilearn[plot]; with it the part is run again."


class PartError(Exception):
    """Why a part has no record."""

    def __init__(self, part: Part, reason: str) -> None:
        super().__init__(reason)
        self.part = part


class MissingDataError(PartError):
    """A part that cannot run because its data is not there."""


class FailedError(PartError):
    """A part that began and went wrong, or whose record cannot be read."""


def run(
    experiment: Experiment,
    output: str | Path,
    *,
    say: Say,
    only: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    quick: bool = False,
    fresh: bool = False,
) -> Iterator[Record | PartError]:
    """Yield the record of each part, computed now or found finished; else the error that says why there is none.

    Warnings that a part raises become notes of its record.

    Parameters
    ----------
    experiment : Experiment
    output : path
        ``output/<experiment>/`` receives ``<part>.json``, pictures and ``results.csv``; a trial run or another seed
        than 0 has a folder of its own in it (:func:`place`).
    say : function
        is told what is being done.
    only : str, optional
        the name of a single part.
    seed : int
        of every random choice.
    jobs : int, optional
        processes of the searches.
    quick : bool
        a shorter run, mostly a trial on little data whose figures say nothing.
    fresh : bool
        compute finished parts too.
    """
    parts = [part for part in experiment.parts if only in (None, part.name)]
    if not parts:
        known = ", ".join(part.name for part in experiment.parts)
        raise ValueError(f"{experiment.name} has no part {only!r}; its parts are {known}.")
    folder = place(output, seed, quick) / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        scratch = folder / f".{part.name}-{_key(experiment, part, seed, quick)[:12]}"
        if fresh:
            shutil.rmtree(scratch, ignore_errors=True)
        context = Context(config=_config(part, quick), seed=seed, jobs=jobs, say=say, scratch=scratch)
        done = None if fresh else _finished(experiment, part, folder, context, quick)
        say(f"{experiment.name}, {part.name}: {f'finished on {done.finished}' if done else 'starting'}")
        result = done or _attempt(experiment, part, context, folder, quick)
        write_csv(records(experiment, output, seed, quick), folder / "results.csv")
        yield result


def place(output: str | Path, seed: int = 0, quick: bool = False) -> Path:
    """Return the folder of one way to run: trial runs and seeds lie apart, and none replaces another.

    >>> place(Path("results")).as_posix(), place(Path("results"), seed=3).as_posix()
    ('results', 'results/seed-3')
    >>> place(Path("results"), quick=True).as_posix()
    'results/quick'
    """
    folder = Path(output, "quick") if quick else Path(output)
    return folder / f"seed-{seed}" if seed else folder


def stored(
    experiment: Experiment, output: str | Path, seed: int = 0, quick: bool = False
) -> list[Record | FailedError]:
    """Return what is there of an experiment, in the order of its parts; for a file that is no record, the error."""
    found: list[Record | FailedError] = []
    for part in experiment.parts:
        path = place(output, seed, quick) / experiment.name / f"{part.name}.json"
        if path.exists():
            try:
                found.append(Record.load(path))
            except ValueError as error:
                found.append(FailedError(part, str(error)))
    return found


def records(experiment: Experiment, output: str | Path, seed: int = 0, quick: bool = False) -> list[Record]:
    """Return the records that are there of an experiment, in the order of its parts."""
    return [record for record in stored(experiment, output, seed, quick) if isinstance(record, Record)]


def is_current(record: Record, experiment: Experiment) -> bool:
    """Tell whether a record was computed by this version with the config that its part has now."""
    return any(
        part.name == record.part and record.key == _key(experiment, part, record.seed, record.quick)
        for part in experiment.parts
    )


def _finished(experiment: Experiment, part: Part, folder: Path, context: Context, quick: bool) -> Record | None:
    path = folder / f"{part.name}.json"
    if not path.exists():
        return None
    try:
        record = Record.load(path)
    except ValueError as error:
        context.say(f"{experiment.name}, {part.name}: computed anew, for {error}")
        return None
    whole = all((folder / name).exists() for name in record.figures)
    whole &= not (context.draws and NO_PICTURES in record.notes)
    return record if whole and record.key == _key(experiment, part, context.seed, quick) else None


def _config(part: Part, quick: bool) -> dict[str, Any]:
    return {**part.config, **(part.quick if quick else {})}


def _key(experiment: Experiment, part: Part, seed: int, quick: bool) -> str:
    """Return a hash of what determines a result."""
    what = [__version__, experiment.name, part.name, seed, to_json_value(_config(part, quick))]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _attempt(experiment: Experiment, part: Part, context: Context, folder: Path, quick: bool) -> Record | PartError:
    try:
        return _compute(experiment, part, context, folder, quick)
    except MissingDataError as error:
        return error
    except Exception as error:  # one part's misfortune is not the others'
        failure = FailedError(part, f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure


def _compute(experiment: Experiment, part: Part, context: Context, folder: Path, quick: bool) -> Record:
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            outcome = part.run(context)
        except FileNotFoundError as error:
            raise MissingDataError(part, str(error)) from error
    remarks = dict.fromkeys(f"Warning: {warning.message}" for warning in caught)
    record = Record(
        experiment=experiment.name,
        part=part.name,
        title=part.title,
        seed=context.seed,
        quick=quick,
        trial=quick and part.trial,
        config=dict(context.config),
        key=_key(experiment, part, context.seed, quick),
        rows=outcome.rows,
        notes=[*outcome.notes, *remarks, *([] if context.draws else [NO_PICTURES])],
        figures=_save_figures(part, outcome, folder),
        seconds=time.perf_counter() - start,
        finished=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        environment=environment(),
    )
    record.save(folder)
    if context.scratch is not None:
        shutil.rmtree(context.scratch, ignore_errors=True)
    return Record.load(folder / f"{part.name}.json")  # what a later run will find


def _save_figures(part: Part, outcome: Outcome, folder: Path) -> dict[str, str]:
    captions = {}
    for name, (figure, caption) in outcome.figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=150, bbox_inches="tight", facecolor="white")
        write_atomically(folder / f"{part.name}-{name}.png", picture.getvalue())
        captions[f"{part.name}-{name}.png"] = caption
    return captions
