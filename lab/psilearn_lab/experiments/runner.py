"""Run the parts of an experiment; finished parts are not computed again."""

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
from psilearn.utils import to_json_value, write_atomically
from psilearn_lab.experiments.experiment import (
    Context,
    Experiment,
    FailedError,
    Log,
    MissingDataError,
    Outcome,
    Part,
    PartError,
)
from psilearn_lab.experiments.results import Record, describe_environment, write_csv

NO_PICTURES = "No pictures: they need the extra psilearn[plot]; with it the part is run again."


def run(
    experiment: Experiment,
    output: str | Path,
    *,
    log: Log,
    only: str | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    quick: bool = False,
    fresh: bool = False,
    device: str | None = None,
) -> Iterator[Record | PartError]:
    """Run the parts of an experiment and yield the record of each.

    A part that is already finished is not computed again. Warnings that a part raises become notes of its record.

    Parameters
    ----------
    experiment : Experiment
        The experiment, one of the paper's or your own.
    output : str or Path
        Folder of the results. ``output/<experiment>/`` receives ``<part>.json``, the pictures and ``results.csv``;
        quick runs go to ``output/quick/`` and other seeds than 0 to ``output/seed-<seed>/``.
    log : callable
        Called with one line of text for each step that starts.
    only : str or None, default=None
        Name of a single part. If None, all parts are run.
    seed : int, default=0
        Random seed.
    n_jobs : int or None, default=None
        Number of processes of the searches, as in joblib.
    quick : bool, default=False
        Whether to run with the shorter ``quick`` settings of each part, in most cases a trial on little data.
    fresh : bool, default=False
        Whether to compute finished parts again.
    device : str or None, default=None
        The torch device that computes, such as ``"cuda"``, in the parts that can use one. None computes with NumPy.

    Yields
    ------
    Record or PartError
        The record of a part, or the error that says why it has none. A failed part does not stop the others.

    Raises
    ------
    ValueError
        If ``only`` is not a part of the experiment.

    See Also
    --------
    find : Return an experiment of the paper by its name.
    load_records : Return the stored records without running anything.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from psilearn_lab.experiments import Experiment, Metric, Outcome, Part, Row, run
    >>> def fit_and_test(context):
    ...     context.log("fitting")
    ...     return Outcome([Row("Toy", "OEL", Metric("loss", "lower"), 0.5)])
    >>> part = Part("toy", "A toy problem", fit_and_test, {"pairs": 50}, {"pairs": 5})
    >>> experiment = Experiment("toys", "Toy problems", "Table 1", "Fit and test once.", (part,))
    >>> with TemporaryDirectory() as folder:
    ...     (record,) = run(experiment, folder, log=print)
    toys, toy: starting
    fitting
    >>> record.rows[0].value
    0.5
    """
    parts = [part for part in experiment.parts if only in (None, part.name)]
    if not parts:
        known = ", ".join(part.name for part in experiment.parts)
        raise ValueError(f"{experiment.name} has no part {only!r}; its parts are {known}.")
    folder = results_folder(output, seed, quick) / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        scratch = folder / f".{part.name}-{_key(experiment, part, seed, quick)[:12]}"
        if fresh:
            shutil.rmtree(scratch, ignore_errors=True)
        context = Context(_config(part, quick), seed, n_jobs, log, scratch, device)
        finished = None if fresh else _load_finished(experiment, part, folder, context, quick)
        log(f"{experiment.name}, {part.name}: {f'finished on {finished.finished}' if finished else 'starting'}")
        result = finished or _compute_or_fail(experiment, part, context, folder, quick)
        write_csv(load_records(experiment, output, seed, quick), folder / "results.csv")
        yield result


def results_folder(output: str | Path, seed: int = 0, quick: bool = False) -> Path:
    """Return the folder of the results; quick runs and other seeds than 0 have separate folders.

    >>> results_folder(Path("results")).as_posix(), results_folder(Path("results"), seed=3).as_posix()
    ('results', 'results/seed-3')
    >>> results_folder(Path("results"), quick=True).as_posix()
    'results/quick'
    """
    folder = Path(output, "quick") if quick else Path(output)
    return folder / f"seed-{seed}" if seed else folder


def load_results(
    experiment: Experiment, output: str | Path, seed: int = 0, quick: bool = False
) -> list[Record | FailedError]:
    """Return the stored records in the order of the parts, with an error in place of each unreadable file."""
    results: list[Record | FailedError] = []
    for part in experiment.parts:
        path = results_folder(output, seed, quick) / experiment.name / f"{part.name}.json"
        if path.exists():
            try:
                results.append(Record.load(path))
            except ValueError as error:
                results.append(FailedError(part, str(error)))
    return results


def load_records(experiment: Experiment, output: str | Path, seed: int = 0, quick: bool = False) -> list[Record]:
    """Return the stored records of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    output : str or Path
        Folder of the results, as in :func:`run`.
    seed : int, default=0
        Random seed of the run.
    quick : bool, default=False
        Whether to return the records of a quick run.

    Returns
    -------
    list of Record
        The readable records in the order of the parts; parts without a record are left out.

    See Also
    --------
    run : Run the parts of an experiment and yield their records.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from psilearn_lab import experiments
    >>> with TemporaryDirectory() as folder:
    ...     experiments.load_records(experiments.find("usps"), folder)
    []
    """
    return [result for result in load_results(experiment, output, seed, quick) if isinstance(result, Record)]


def is_current(record: Record, experiment: Experiment) -> bool:
    """Tell whether a record was computed by this version with the config that its part has now."""
    return any(
        part.name == record.part and record.key == _key(experiment, part, record.seed, record.quick)
        for part in experiment.parts
    )


def _load_finished(experiment: Experiment, part: Part, folder: Path, context: Context, quick: bool) -> Record | None:
    """Return the record of a part if it is current and complete, else None."""
    path = folder / f"{part.name}.json"
    if not path.exists():
        return None
    try:
        record = Record.load(path)
    except ValueError as error:
        context.log(f"{experiment.name}, {part.name}: computing again, because {error}")
        return None
    complete = all((folder / name).exists() for name in record.figures)
    complete &= not (context.can_draw and NO_PICTURES in record.notes)
    return record if complete and record.key == _key(experiment, part, context.seed, quick) else None


def _config(part: Part, quick: bool) -> dict[str, Any]:
    return {**part.config, **(part.quick if quick else {})}


def _key(experiment: Experiment, part: Part, seed: int, quick: bool) -> str:
    """Return a hash of everything that determines a result."""
    determinants = [__version__, experiment.name, part.name, seed, to_json_value(_config(part, quick))]
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()


def _compute_or_fail(
    experiment: Experiment, part: Part, context: Context, folder: Path, quick: bool
) -> Record | PartError:
    """Run a part; return its record, or the error that it raised."""
    try:
        return _compute(experiment, part, context, folder, quick)
    except MissingDataError as error:
        return error
    except Exception as error:  # the other parts run all the same
        failure = FailedError(part, f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure


def _compute(experiment: Experiment, part: Part, context: Context, folder: Path, quick: bool) -> Record:
    """Run a part and store its record."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            outcome = part.run(context)
        except FileNotFoundError as error:
            raise MissingDataError(part, str(error)) from error
    warning_notes = dict.fromkeys(f"Warning: {warning.message}" for warning in caught)
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
        notes=[*outcome.notes, *warning_notes, *([] if context.can_draw else [NO_PICTURES])],
        figures=_save_figures(part, outcome, folder),
        seconds=time.perf_counter() - start,
        finished=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        environment=describe_environment(),
    )
    record.save(folder)
    if context.scratch is not None:
        shutil.rmtree(context.scratch, ignore_errors=True)
    return Record.load(folder / f"{part.name}.json")  # exactly as a later run will read it


def _save_figures(part: Part, outcome: Outcome, folder: Path) -> dict[str, str]:
    """Write the pictures of a part; return their captions by file name."""
    captions = {}
    for name, (figure, caption) in outcome.figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=150, bbox_inches="tight", facecolor="white")
        write_atomically(folder / f"{part.name}-{name}.png", picture.getvalue())
        captions[f"{part.name}-{name}.png"] = caption
    return captions
