"""What the parts share: turns on a clock, tables, claims that are checked, curves, and the history of runs."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy
from rich.console import Console
from rich.table import Table

import psilearn


class Clock:
    """Seconds of named stages: ``with clock("fit"): ...``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the seconds of the block to a stage."""
        start = perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - start

    def with_total(self) -> dict[str, float]:
        """Return the stages and their sum."""
        return {**self.seconds, "total": sum(self.seconds.values())}


@dataclass
class Measured:
    """The median seconds of each stage over the turns, and what the last turn returned."""

    seconds: dict[str, float]
    result: Any


def median(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each entry."""
    return {name: float(np.median([row[name] for row in rows])) for name in rows[0]}


def in_turns(methods: dict[str, Callable[[Clock], Any]], repeats: int) -> dict[str, Measured]:
    """Run the methods one after the other, ``repeats`` times over."""
    times: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
    results = {}
    for _ in range(repeats):
        for name, method in methods.items():
            clock = Clock()
            results[name] = method(clock)
            times[name].append(clock.with_total())
    return {name: Measured(median(times[name]), results[name]) for name in methods}


def slope(sizes: list[int], values: list[float]) -> float:
    """Return the exponent of growth: the least-squares slope of log value against log size."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


@dataclass
class Run:
    """One run of the command: what was asked for, and where the figures go."""

    quick: bool = False
    repeats: int = 3
    device: str | None = None  # of torch; NumPy where there is none
    console: Console = field(default_factory=lambda: Console(width=None if sys.stdout.isatty() else 120))
    curves: dict[str, dict[str, list[tuple[int, float]]]] = field(default_factory=dict)  # panel → line → points
    claims: list[dict[str, Any]] = field(default_factory=list)
    gemm: dict[str, float] = field(default_factory=dict)  # dtype → flops a second, the best of several
    copy: float = 0.0  # bytes a second of a copy on the device, read and written; 0 where none was asked for
    to_device: float = 0.0  # bytes a second from pinned memory to the device

    def size(self, full: Any, quick: Any) -> Any:
        """Return the size of this run."""
        return quick if self.quick else full

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def table(self, title: str, columns: list[str], rows: list[list[Any]]) -> None:
        """Print a table; the first column is a name, the others are numbers."""
        table = Table(columns[0], title=title, title_justify="left")
        for column in columns[1:]:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
        self.console.print(table)

    def claim(self, text: str, met: bool, found: str) -> None:
        """Print whether a claim holds in this run; small sizes judge nothing."""
        verdict = "not judged at quick sizes" if self.quick else "met" if met else "NOT met"
        self.say(f"claim: {text}: {verdict} ({found})")
        if not self.quick:
            self.claims.append({"claim": text, "met": bool(met), "found": found})


def describe_machine() -> dict[str, Any]:
    """Return versions and the number of processors."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "psilearn": psilearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def rounded(value: Any) -> Any:
    """Return the value with four significant digits in every float, ready for JSON."""
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, bool | str | int | None):
        return value
    return float(f"{float(value):.4g}")


def read_history(path: Path) -> list[dict[str, Any]]:
    """Return the records of former runs."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def write_history(path: Path, records: list[dict[str, Any]]) -> None:
    """Write a record a line."""
    lines = ",\n".join(json.dumps(rounded(record), ensure_ascii=False) for record in records)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def draw_growth(curves: dict[str, dict[str, list[tuple[int, float]]]], path: Path) -> bool:
    """Draw a panel for each quantity that grew, both axes logarithmic; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    columns = min(3, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.4 * rows), layout="constrained")
    for i, (title, lines) in enumerate(curves.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        for label, points in lines.items():
            sizes, values = zip(*points, strict=True)
            axes.loglog(sizes, values, "o-", label=f"{label} ({slope(sizes, values):.2f})")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xticks([], minor=True)
        axes.set_title(title, fontsize="medium")
        axes.set_ylabel("seconds")
        axes.legend(title="exponent", fontsize="small")
        axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=120)
    return True
