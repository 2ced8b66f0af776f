"""Where the time of a fit or of a search goes: the seconds of each step that psilearn reports.

The device is synchronized before and after each step, so that its work is counted where it was started; steps then do
not overlap, and their sum is a little larger than the time without a profile. Each step is also a range of NVTX, which
Nsight shows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from psilearn_lab.benchmarks.device import synchronize
from psilearn_lab.benchmarks.measurement import Run

REST = "everything else"


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
