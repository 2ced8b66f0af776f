"""Rows of cost tables: seconds, flops and bytes of a step, and its share of the speed of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measurement import Figures, Run


@dataclass(frozen=True)
class Cost:
    """The cost of one step: measured seconds, and counted flops of matrix products and factorizations, by dtype."""

    name: str
    seconds: float
    flops: dict[str, float]  # dtype → flops
    n_bytes: float  # of memory at the peak, as predicted by psilearn.memory
    growth: str = ""  # the leading term of the flops

    def share(self, rates: dict[str, float]) -> float:
        """Return the time of the same flops at the rates of matrix products, divided by the measured time."""
        return sum(flops / rates[dtype] for dtype, flops in self.flops.items()) / self.seconds


def show_costs(run: Run, title: str, costs: Sequence[Cost]) -> Figures:
    """Print one row per step and return the figures; the ceiling is the matrix product of this run and machine."""
    figures: Figures = {}
    for cost in costs:
        figures[cost.name] = {
            "seconds": cost.seconds,
            "gflop": sum(cost.flops.values()) / 1e9,
            "gigabytes": cost.n_bytes / 1e9,
            "percent_of_ceiling": 100 * cost.share(run.gemm),
        }
    columns = ["step", "seconds", "GFLOP", "peak GB", "% of the matrix product", "flops grow as"]
    rows = [[name, *found.values(), cost.growth] for cost, (name, found) in zip(costs, figures.items(), strict=True)]
    run.show_table(title, columns, rows)
    return figures
