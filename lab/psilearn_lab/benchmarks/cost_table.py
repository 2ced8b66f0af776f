"""Rows of cost tables: seconds, flops and bytes of a step, and its share of the speed of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psilearn_lab.benchmarks.measurement import Figures, Run


@dataclass(frozen=True)
class Cost:
    """The cost of one step: measured seconds, and what was counted.

    ``operations`` maps the name of a rate of the machine to flops of matrix products and factorizations, or to bytes of
    copies. It is empty if they are not counted.
    """

    name: str
    seconds: float
    operations: Mapping[str, float]
    n_bytes: float | None  # of memory at the peak, predicted by psilearn.memory or measured on the device
    growth: str = ""  # the leading term of the flops
    watts: float | None = None  # mean power of the GPU

    def share(self, rates: Mapping[str, float]) -> float:
        """Return the time of the same operations at the highest rates, divided by the measured time."""
        return sum(amount / rates[name] for name, amount in self.operations.items()) / self.seconds


def show_costs(run: Run, title: str, costs: Sequence[Cost]) -> Figures:
    """Print one row per step and return the figures; the ceiling is the speed of this machine in this run."""
    figures: Figures = {}
    for cost in costs:
        flops = sum(amount for name, amount in cost.operations.items() if name in run.gemm)
        figures[cost.name] = {
            "seconds": cost.seconds,
            "gflop": flops / 1e9 if cost.operations else None,
            "gigabytes": None if cost.n_bytes is None else cost.n_bytes / 1e9,
            "percent_of_ceiling": 100 * cost.share(run.rates) if cost.operations else None,
        }
    columns = ["step", "seconds", "GFLOP", "peak GB", "% of the highest rates"]
    if any(cost.watts is not None for cost in costs):
        columns += ["W", "J"]
        for cost in costs:
            joules = None if cost.watts is None else cost.watts * cost.seconds
            figures[cost.name] |= {"watts": cost.watts, "joules": joules}
    rows = [
        [name, *("" if value is None else value for value in found.values()), cost.growth]
        for cost, (name, found) in zip(costs, figures.items(), strict=True)
    ]
    run.show_table(title, [*columns, "flops grow as"], rows)
    return figures
