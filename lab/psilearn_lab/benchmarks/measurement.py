"""What all benchmarks share: timed turns, child processes with their memory, profiles, tables, claims and the history.

    result = run_in_child("bookmarks", "measure_oel", device=None, sizes=...)
    result["peak_bytes"], result["baseline_bytes"]

The peak of a child process is its largest resident set, memory-mapped files included; the baseline is its resident set
after its imports.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import psilearn
from psilearn import OEL, computing
from psilearn_lab.fuzz.harness import resident_bytes

Array: TypeAlias = NDArray[Any]
Figures: TypeAlias = dict[str, Any]  # measured numbers, as JSON data
Curves: TypeAlias = dict[str, dict[str, list[tuple[int, float]]]]  # panel → line → points
Result = TypeVar("Result")
Size = TypeVar("Size")
MARK = "result of a child process:"
REST = "everything else"


class Clock:
    """Seconds of named stages: ``with clock("fit"): ...``.

    ``--cpu-time`` replaces the timer of all clocks by the CPU time of the process.
    """

    timer: ClassVar[Callable[[], float]] = staticmethod(perf_counter)

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the seconds of the block to a stage."""
        start = type(self).timer()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + type(self).timer() - start

    def with_total(self) -> dict[str, float]:
        """Return the stages and their sum."""
        return {**self.seconds, "total": sum(self.seconds.values())}


Turn: TypeAlias = Callable[[Clock], Result]  # runs a method once and times its stages


@dataclass
class Timing(Generic[Result]):
    """The median seconds of each stage over the turns, and the result of the last turn."""

    seconds: dict[str, float]
    result: Result


def median_of_each(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each entry over the rows."""
    return {name: float(np.median([row[name] for row in rows])) for name in rows[0]}


def time_in_turns(methods: Mapping[str, Turn[Result]], repeats: int) -> dict[str, Timing[Result]]:
    """Run the methods one after another, and repeat this ``repeats`` times."""
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
    results: dict[str, Result] = {}
    for _ in range(repeats):
        for name, method in methods.items():
            clock = Clock()
            results[name] = method(clock)
            seconds[name].append(clock.with_total())
    return {name: Timing(median_of_each(seconds[name]), results[name]) for name in methods}


def time_stage(work: Callable[[], Result], clock: Clock) -> Result:
    """Run one turn with a single stage, "seconds"."""
    with clock("seconds"):
        return work()


def growth_exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the least-squares slope of log value against log size."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


@dataclass
class Run:
    """One run of the command: its options, and what the parts have measured."""

    quick: bool = False
    repeats: int = 3
    device: str | None = None  # of torch; None for NumPy
    profile: bool = False  # whether parts that can also print the seconds of each step
    console: Console = field(default_factory=lambda: Console(width=None if sys.stdout.isatty() else 120))
    curves: Curves = field(default_factory=dict)
    claims: list[Figures] = field(default_factory=list)
    gemm: dict[str, float] = field(default_factory=dict)  # dtype → flops per second of matrix products, at best
    sustained: dict[str, float] = field(default_factory=dict)  # the same over half a second, on a device
    copy: float = 0.0  # bytes per second of a copy on the device, read and written; 0 without a device
    to_device: float = 0.0  # bytes per second from pinned memory to the device

    @property
    def rates(self) -> dict[str, float]:
        """The highest rates that are known: flops per second by dtype, and bytes per second of copies."""
        copies = {"copy": self.copy, "to device": self.to_device}
        return self.gemm | {name: rate for name, rate in copies.items() if rate}

    def select(self, full: Size, quick: Size) -> Size:
        """Return the full or the quick size."""
        return quick if self.quick else full

    def log(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def show_table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table; the first column is a name, the others are numbers."""
        table = Table(columns[0], title=title, title_justify="left")
        for column in columns[1:]:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
        self.console.print(table)

    def check_claim(self, claim: str, met: bool, found: str) -> None:
        """Print whether a claim holds in this run, and record it; quick sizes check nothing."""
        verdict = "not checked at quick sizes" if self.quick else "met" if met else "NOT met"
        self.log(f"claim: {claim}: {verdict} ({found})")
        if not self.quick:
            self.claims.append({"claim": claim, "met": bool(met), "found": found})


def describe_machine() -> Figures:
    """Return the date, versions and the number of processors."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "psilearn": psilearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def round_floats(value: Any) -> Any:
    """Return the value with four significant digits in every float, ready for JSON."""
    if isinstance(value, dict):
        return {str(key): round_floats(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [round_floats(item) for item in value]
    if isinstance(value, bool | str | int | None):
        return value
    return float(f"{float(value):.4g}")


def read_history(path: Path) -> list[Figures]:
    """Return the records of previous runs."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def write_history(path: Path, records: Sequence[Figures]) -> None:
    """Write one record per line."""
    lines = ",\n".join(json.dumps(round_floats(record), ensure_ascii=False) for record in records)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def draw_growth(curves: Curves, path: Path) -> bool:
    """Draw one panel per growing quantity with logarithmic axes; return False if matplotlib is not installed."""
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
            axes.loglog(sizes, values, "o-", label=f"{label} ({growth_exponent(sizes, values):.2f})")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xticks([], minor=True)
        axes.set_title(title, fontsize="medium")
        axes.set_ylabel("seconds")
        axes.legend(title="exponent", fontsize="small")
        axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=120)
    return True


def compute_on(device: str | None, dtype: str = "float64") -> AbstractContextManager[object]:
    """Let psilearn compute on a device of torch, or in NumPy for None, inside the ``with`` block."""
    return computing(dtype, device)


def synchronize() -> None:
    """Wait until the GPU, if one is used, has finished its work."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def warm_up() -> None:
    """Fit and predict on little data, so that loading libraries is not measured."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    OEL(n_components=5, input_landmarks=50, output_landmarks=50).fit(X, X).predict(X)
    OEL(n_components=5).fit(X, X).predict(X)


def run_in_child(module: str, function: str, *, device: str | None = None, **arguments: Any) -> Figures:
    """Return the dict that the function returned, with ``peak_bytes`` and ``baseline_bytes``.

    The process computes on ``device``, a device of torch, or in NumPy if it is None.
    """
    command = [sys.executable, "-m", "psilearn_lab.benchmarks.measurement", module, function]
    command += [json.dumps(arguments), device or ""]
    done = subprocess.run(command, capture_output=True, text=True)
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not answers:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{module}.{function}({arguments}) failed: {reason[0]}")
    answer: Figures = json.loads(answers[-1])
    return answer


def run_as_child(module: str, function: str, arguments: str, device: str) -> None:
    """Run the function and print its answer as one marked line."""
    call = getattr(importlib.import_module(module if "." in module else f"psilearn_lab.benchmarks.{module}"), function)

    with compute_on(device or None):
        if device:
            warm_up()
        baseline = resident_bytes(peak=False)
        answer = call(**json.loads(arguments))
    print(MARK + json.dumps({**answer, "peak_bytes": resident_bytes(peak=True), "baseline_bytes": baseline}))


class StepProfile:
    """Seconds by step, without those of the steps inside: an observer for ``observe_steps``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []  # seconds of the steps inside each open step

    @contextmanager
    def __call__(self, description: str) -> Iterator[None]:
        """Measure one step."""
        name = re.sub(r"^[\d,]+ | of [\d,]+$| among [\d,]+$|(?<= of )[\d,]+ ", "", description)
        synchronize()
        self._inside.append(0.0)
        start = perf_counter()
        with nvtx_range(name):
            yield
            synchronize()
        elapsed = perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + elapsed - self._inside.pop()
        if self._inside:
            self._inside[-1] += elapsed

    def with_rest(self, total: float) -> dict[str, float]:
        """Return all steps, the longest first, and what is left of a total."""
        steps = dict(sorted(self.seconds.items(), key=lambda item: -item[1]))
        return {**steps, REST: total - sum(steps.values())}


@contextmanager
def nvtx_range(name: str) -> Iterator[None]:
    """Mark a range for Nsight, where torch computes on a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        yield
        return
    with torch.cuda.nvtx.range(name):
        yield


def show_profile(run: Run, title: str, seconds: dict[str, float], floors: dict[str, float]) -> None:
    """Print the seconds of each step next to the least seconds of its operations on this machine, where known."""
    rows: list[list[Any]] = []
    for name, measured in seconds.items():
        floor = floors.get(name)
        share = "" if floor is None else f"{100 * floor / max(measured, 1e-9):.0f} %"
        rows.append([name, 1e3 * measured, "" if floor is None else 1e3 * floor, share])
    total, least = sum(seconds.values()), sum(floors.values())
    rows.append(["sum", 1e3 * total, 1e3 * least, f"{100 * least / total:.0f} %"])
    run.show_table(title, ["step", "ms", "ms at the highest rates", "share"], rows)


if __name__ == "__main__":
    run_as_child(*sys.argv[1:])
