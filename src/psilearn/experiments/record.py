"""What an experiment leaves behind: rows with the paper's figure beside ours, and everything that led to them.

A record is plain data: it is written as strict JSON and read back without executing anything.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from psilearn._utils.files import to_json_value, write_atomically

PACKAGES = ("psilearn", "numpy", "scipy", "scikit-learn")
EXTRAS = ("torch",)  # named where they are installed


@dataclass(frozen=True)
class Metric:
    """What a figure measures, and which way is better."""

    name: str
    better: str  # "lower" or "higher"
    digits: int = 3  # shown after the point
    spread: str = "s.e."  # what follows ±: the standard error over the test examples, or "s.d." over repetitions

    def __post_init__(self) -> None:
        _check(self, str, "name", "better", "spread")
        if self.better not in ("lower", "higher"):
            raise ValueError(f"better must be 'lower' or 'higher', not {self.better!r}")
        if type(self.digits) is not int or self.digits not in range(13):
            raise ValueError(f"digits must be between 0 and 12, not {self.digits!r}")


@dataclass(frozen=True)
class Row:
    """One figure: a method on a dataset, ours beside the paper's.

    ``value`` is None where the figure is quoted and not measured. ``comparable`` is False where the paper's figure was
    obtained on other data or another machine: it is shown, and not judged. What is unknown is None and never NaN, which
    would be neither better nor worse than anything.
    """

    dataset: str
    method: str
    metric: Metric
    value: float | None = None
    error: float | None = None  # what the metric calls its spread
    paper: float | None = None
    paper_error: float | None = None
    comparable: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)  # every hyper-parameter that was chosen or set
    seconds: dict[str, float] = field(default_factory=dict)  # choose, fit, decode
    source: str = ""  # of a quoted figure

    def __post_init__(self) -> None:
        _check(self, str, "dataset", "method", "source")
        _check(self, dict, "parameters", "seconds")
        _check(self, bool, "comparable")
        numbers = {"value": self.value, "error": self.error, "paper": self.paper, "paper_error": self.paper_error}
        numbers |= self.seconds
        for name, number in numbers.items():
            if number is not None and not _is_finite(number):
                raise ValueError(f"{self.dataset}, {self.method}: {name} must be a finite number, not {number!r}")

    @property
    def quoted(self) -> bool:
        """Whether the figure is the paper's alone."""
        return self.value is None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's; what rounding explains is no difference."""
        return None if self.value is None or self.paper is None else round(self.value - self.paper, 12)

    @property
    def verdict(self) -> str:
        """One of "pass", "falls short", "quoted", "not comparable" and, where the paper has no figure, ""."""
        if self.quoted:
            return "quoted"
        if self.difference is None:
            return ""
        if not self.comparable:
            return "not comparable"
        gain = -self.difference if self.metric.better == "lower" else self.difference
        return "pass" if gain >= 0 else "falls short"


@dataclass(frozen=True)
class Record:
    """One finished part of an experiment."""

    experiment: str
    part: str
    title: str
    seed: int
    quick: bool
    config: dict[str, Any]  # sizes and grids
    key: str  # of all that determines the result: a part with another key is computed anew
    rows: list[Row]
    notes: list[str]
    figures: dict[str, str]  # file name → caption
    seconds: float
    finished: str  # date and time, UTC
    environment: dict[str, str]
    trial: bool = False  # a quick run on too little data to be judged

    def __post_init__(self) -> None:
        _check(self, str, "experiment", "part", "title", "key", "finished")
        _check(self, dict, "config", "figures", "environment")
        _check(self, list, "rows", "notes")
        _check(self, bool, "quick", "trial")
        _check(self, int, "seed")
        texts = [*self.notes, *self.figures.values(), *self.environment.values()]
        if not all(isinstance(text, str) for text in texts) or not _is_finite(self.seconds):
            raise ValueError("notes, captions and versions must be text, and seconds a number")
        for name in self.figures:
            if Path(name).name != name or "\\" in name or not name.endswith(".png"):
                raise ValueError(f"a picture must be a PNG file beside the record, not {name!r}")

    def save(self, folder: Path) -> None:
        """Write ``<part>.json``; an interrupted write leaves the former file."""
        text = json.dumps(to_json_value(asdict(self)), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(folder / f"{self.part}.json", text.encode())

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a saved part.

        Raises
        ------
        ValueError
            if the file is not such a part: it names the file.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
            rows = [Row(**{**row, "metric": Metric(**row["metric"])}) for row in content.pop("rows")]
            return cls(**content, rows=rows)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            raise ValueError(
                f"{path} is not the record of an experiment ({type(error).__name__}: {error}). Remove it and run again."
            ) from error


def environment() -> dict[str, str]:
    """Return versions and the kind of machine."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a checkout on the path, not installed
            found[name] = "unknown"
    for name in EXTRAS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return {"python": platform.python_version(), **found, "system": platform.system(), "cores": str(os.cpu_count())}


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write one line a row, with one column for each hyper-parameter, each time and each version."""
    lines = [_line(record, row) for record in records for row in record.rows]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, columns)
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(path, table.getvalue().encode())


def _line(record: Record, row: Row) -> dict[str, Any]:
    own = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in ("metric", "parameters", "seconds")}
    return {
        "experiment": record.experiment,
        "part": record.part,
        **own,
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


def _check(thing: Any, kind: type, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(thing, name), kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, not {getattr(thing, name)!r:.80}")


def _is_finite(number: Any) -> bool:
    try:
        return not isinstance(number, bool | str) and math.isfinite(number)
    except (TypeError, OverflowError):
        return False


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")
