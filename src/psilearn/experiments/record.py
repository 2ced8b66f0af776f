"""What an experiment leaves behind: rows with the paper's figure beside ours, and everything that led to them.

A record is plain data: it is written as JSON and read back without executing anything.
"""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("psilearn", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Metric:
    """What a figure measures, and which way is better."""

    name: str
    better: str  # "lower" or "higher"
    digits: int = 3  # shown after the point


@dataclass(frozen=True)
class Row:
    """One figure: a method on a dataset, ours beside the paper's.

    ``value`` is None where the figure is quoted and not measured. ``comparable`` is False where the paper's figure was
    obtained on other data or another machine: it is shown, and not judged.
    """

    dataset: str
    method: str
    metric: Metric
    value: float | None = None
    error: float | None = None  # standard error of the mean over the test examples
    paper: float | None = None
    comparable: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)  # every hyper-parameter that was chosen or set
    seconds: dict[str, float] = field(default_factory=dict)  # choose, fit, decode
    source: str = ""  # of a quoted figure

    @property
    def quoted(self) -> bool:
        """Whether the figure is the paper's alone."""
        return self.value is None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.value is None or self.paper is None else self.value - self.paper

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

    def save(self, folder: Path) -> None:
        """Write ``<part>.json``; an interrupted write leaves the former file."""
        target = folder / f"{self.part}.json"
        draft = target.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False), encoding="utf-8")
        draft.replace(target)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a saved part.

        Raises
        ------
        ValueError
            if the file is not such a part: it names the file.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            rows = [Row(**{**row, "metric": Metric(**row["metric"])}) for row in content.pop("rows")]
            return cls(**content, rows=rows)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
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
    return {"python": platform.python_version(), **found, "system": platform.system(), "cores": str(os.cpu_count())}


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write one line a row, with one column for each hyper-parameter, each time and each version."""
    lines = [_line(record, row) for record in records for row in record.rows]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    draft = path.with_suffix(".tmp")
    with draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(lines)
    draft.replace(path)


def _line(record: Record, row: Row) -> dict[str, Any]:
    plain = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in ("metric", "parameters", "seconds")}
    return {
        "experiment": record.experiment,
        "part": record.part,
        **plain,
        "metric": row.metric.name,
        "better": row.metric.better,
        "difference": row.difference,
        "verdict": row.verdict,
        **row.parameters,
        **{f"{name}_seconds": value for name, value in row.seconds.items()},
        "seed": record.seed,
        "quick": record.quick,
        "finished": record.finished,
        **record.environment,
    }
