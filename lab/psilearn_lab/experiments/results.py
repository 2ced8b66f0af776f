"""The results of an experiment: our values of metrics next to the paper's, stored with everything that led to them."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, SupportsFloat, cast

import pandas as pd

from psilearn.utils import to_json_value, write_atomically

MAX_DIGITS = 12


@dataclass(frozen=True)
class Metric:
    """What a value measures, and which direction is better.

    Parameters
    ----------
    name : str
        Name of the metric in tables.
    better : {"lower", "higher"}
        Which values are better.
    digits : int, default=3
        Number of decimals that are shown, at most 12.
    spread : str, default="s.e."
        What follows ±: ``"s.e."`` for the standard error over the test examples, ``"s.d."`` for the standard deviation
        over repetitions.

    Raises
    ------
    ValueError
        If ``better`` or ``digits`` has another value.

    See Also
    --------
    Row : One value of a metric.

    Examples
    --------
    >>> from psilearn_lab.experiments import Metric
    >>> Metric("F1", "higher", digits=1)
    Metric(name='F1', better='higher', digits=1, spread='s.e.')
    """

    name: str
    better: str
    digits: int = 3
    spread: str = "s.e."

    def __post_init__(self) -> None:
        check_types(self, str, "name", "better", "spread")
        if self.better not in ("lower", "higher"):
            raise ValueError(f"better must be 'lower' or 'higher', not {self.better!r}.")
        if type(self.digits) is not int or not 0 <= self.digits <= MAX_DIGITS:
            raise ValueError(f"digits must be an integer between 0 and {MAX_DIGITS}, not {self.digits!r}.")


@dataclass(frozen=True)
class Row:
    """The value of a metric for one method on one dataset, ours next to the paper's.

    Unknown numbers are None. NaN is rejected, because it compares as neither better nor worse than anything.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    method : str
        Name of the method.
    metric : Metric
        The metric of the value.
    value : float or None, default=None
        Our value; None if the paper's value is quoted and nothing was measured.
    error : float or None, default=None
        The spread of our value, as named by ``metric.spread``.
    paper : float or None, default=None
        The paper's value.
    paper_error : float or None, default=None
        The spread of the paper's value.
    comparable : bool, default=True
        False if the paper's value was obtained on other data or on another machine: it is shown without a verdict.
    parameters : dict, default={}
        Every hyper-parameter that was chosen or set.
    seconds : dict of str to float, default={}
        The time of each step, such as ``"choose"``, ``"fit"`` and ``"decode"``.
    source : str, default=""
        Where a quoted value comes from.

    Raises
    ------
    ValueError
        If a number is not finite.

    See Also
    --------
    Metric : What a value measures.
    Outcome : The rows of a part.

    Examples
    --------
    >>> from psilearn_lab.experiments import Metric, Row
    >>> row = Row("USPS", "OEL", Metric("RBF loss", "lower"), 0.72, paper=0.725)
    >>> row.difference, row.verdict
    (-0.005, 'pass')
    """

    dataset: str
    method: str
    metric: Metric
    value: float | None = None
    error: float | None = None
    paper: float | None = None
    paper_error: float | None = None
    comparable: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        check_types(self, str, "dataset", "method", "source")
        check_types(self, dict, "parameters", "seconds")
        check_types(self, bool, "comparable")
        numbers = {"value": self.value, "error": self.error, "paper": self.paper, "paper_error": self.paper_error}
        numbers |= self.seconds
        for name, number in numbers.items():
            if number is not None and not is_finite(number):
                raise ValueError(f"{self.dataset}, {self.method}: {name} must be a finite number, not {number!r}.")

    @property
    def quoted(self) -> bool:
        """Whether there is only the paper's value."""
        return self.value is None

    @property
    def difference(self) -> float | None:
        """Our value minus the paper's, without rounding errors; None if one of them is unknown."""
        return None if self.value is None or self.paper is None else round(self.value - self.paper, 12)

    @property
    def verdict(self) -> str:
        """One of "pass", "falls short", "quoted", "not comparable" and, if the paper has no value, ""."""
        if self.quoted:
            return "quoted"
        if self.difference is None:
            return ""
        if not self.comparable:
            return "not comparable"
        gain = -self.difference if self.metric.better == "lower" else self.difference
        return "pass" if gain >= 0 else "falls short"


def check_types(instance: object, kind: type, *names: str) -> None:
    """Raise a TypeError if one of the named attributes has another type."""
    for name in names:
        value = getattr(instance, name)
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r:.80}.")


def is_finite(number: object) -> bool:
    """Tell whether a value, perhaps read from a file, is a finite number."""
    try:
        return not isinstance(number, bool | str) and math.isfinite(cast(SupportsFloat, number))
    except (TypeError, OverflowError):
        return False


PACKAGES = ("psilearn", "numpy", "scipy", "scikit-learn")
OPTIONAL_PACKAGES = ("torch",)  # recorded only if they are installed


@dataclass(frozen=True)
class Record:
    """The stored result of a finished part of an experiment.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    part : str
        Name of the part.
    title : str
        Heading of the part in the report.
    seed : int
        Random seed.
    quick : bool
        Whether it was a quick run.
    config : dict
        Sizes and grids.
    key : str
        Hash of everything that determines the result. A part with another key is computed again.
    rows : list of Row
        One row per method, dataset and metric.
    notes : list of str
        Sentences that are shown below the table.
    figures : dict of str to str
        Captions of the pictures by the name of their PNG file, which is in the folder of the record.
    seconds : float
        Time that the part took.
    finished : str
        Date and time of the end, UTC.
    environment : dict of str to str
        Versions of packages, the operating system and the number of cores.
    trial : bool, default=False
        Whether it was a quick run on too little data to be compared with the paper.

    Raises
    ------
    TypeError
        If a field has another type.
    ValueError
        If a text is not a string, ``seconds`` is not a finite number, or a picture is not a PNG file in the folder.

    See Also
    --------
    load_records : Return the stored records of an experiment.
    run : Run the parts of an experiment and yield their records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from psilearn_lab.experiments import Metric, Record, Row
    >>> record = Record(
    ...     experiment="toys", part="toy", title="A toy problem", seed=0, quick=False, config={"pairs": 50}, key="1f",
    ...     rows=[Row("Toy", "OEL", Metric("loss", "lower"), 0.5)], notes=[], figures={}, seconds=1.0,
    ...     finished="2026-01-01 12:00", environment={},
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     record.save(Path(folder))
    ...     Record.load(Path(folder, "toy.json")) == record
    True
    """

    experiment: str
    part: str
    title: str
    seed: int
    quick: bool
    config: dict[str, Any]
    key: str
    rows: list[Row]
    notes: list[str]
    figures: dict[str, str]
    seconds: float
    finished: str
    environment: dict[str, str]
    trial: bool = False

    def __post_init__(self) -> None:
        check_types(self, str, "experiment", "part", "title", "key", "finished")
        check_types(self, dict, "config", "figures", "environment")
        check_types(self, list, "rows", "notes")
        check_types(self, bool, "quick", "trial")
        check_types(self, int, "seed")
        texts = [*self.notes, *self.figures.values(), *self.environment.values()]
        if not all(isinstance(text, str) for text in texts) or not is_finite(self.seconds):
            raise ValueError("notes, captions and versions must be strings, and seconds must be a finite number.")
        for name in self.figures:
            if not re.fullmatch(r"[\w-]+\.png", name):
                raise ValueError(f"a picture must have the name of a PNG file, not {name!r:.80}.")

    def save(self, folder: Path) -> None:
        """Write ``<part>.json``; an interrupted write leaves the previous file unchanged.

        Parameters
        ----------
        folder : Path
            An existing folder.

        See Also
        --------
        load : Read a record.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from psilearn_lab.experiments import Record
        >>> record = Record("toys", "toy", "A toy problem", 0, False, {}, "1f", [], [], {}, 1.0, "2026-01-01 12:00", {})
        >>> with TemporaryDirectory() as folder:
        ...     record.save(Path(folder))
        ...     [path.name for path in Path(folder).iterdir()]
        ['toy.json']
        """
        content = json.dumps(to_json_value(asdict(self)), indent=1, ensure_ascii=False)
        write_atomically(folder / f"{self.part}.json", content.encode())

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a record.

        Parameters
        ----------
        path : Path
            A file that :meth:`save` wrote.

        Returns
        -------
        Record
            The stored record.

        Raises
        ------
        ValueError
            If the file is not a record; the message names the file.

        See Also
        --------
        save : Write a record.
        load_records : Return the stored records of an experiment.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from psilearn_lab.experiments import Record
        >>> record = Record("toys", "toy", "A toy problem", 0, False, {}, "1f", [], [], {}, 1.0, "2026-01-01 12:00", {})
        >>> with TemporaryDirectory() as folder:
        ...     record.save(Path(folder))
        ...     Record.load(Path(folder, "toy.json")).title
        'A toy problem'
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            rows = [Row(**{**row, "metric": Metric(**row["metric"])}) for row in content.pop("rows")]
            return cls(**content, rows=rows)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            reason = f"{type(error).__name__}: {error}".rstrip(".")
            raise ValueError(
                f"{path} is not the record of an experiment ({reason}). Remove it and run again."
            ) from error


def describe_environment() -> dict[str, str]:
    """Return the versions of Python and packages, the operating system and the number of cores."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # a checkout on the path that is not installed
            versions[name] = "unknown"
    for name in OPTIONAL_PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {"python": platform.python_version(), **versions, "system": platform.system(), "cores": str(os.cpu_count())}


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write one line per row, with one column per hyper-parameter, time and version."""
    lines = [_csv_line(record, row) for record in records for row in record.rows]
    write_atomically(path, pd.DataFrame(lines, dtype=object).to_csv(index=False, lineterminator="\n").encode())


def _csv_line(record: Record, row: Row) -> dict[str, object]:
    nested = ("metric", "parameters", "seconds")
    return {
        "experiment": record.experiment,
        "part": record.part,
        **{field.name: getattr(row, field.name) for field in fields(row) if field.name not in nested},
        "metric": row.metric.name,
        "better": row.metric.better,
        "spread": row.metric.spread,
        "difference": row.difference,
        "verdict": row.verdict,
        **{f"param_{name}": value for name, value in row.parameters.items()},
        **{f"{name}_seconds": value for name, value in row.seconds.items()},
        "seed": record.seed,
        "quick": record.quick,
        "finished": record.finished,
        **record.environment,
    }
