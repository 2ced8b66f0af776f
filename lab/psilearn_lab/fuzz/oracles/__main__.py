"""The command ``python -m psilearn_lab.fuzz.oracles``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from time import monotonic

from psilearn_lab.fuzz.oracles.runner import ORACLES, as_table, run


def main() -> int:
    """Run the command and return its exit status: 1 if there are defects."""
    parser = argparse.ArgumentParser(
        prog="python -m psilearn_lab.fuzz.oracles", description="Compare routes that must agree."
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem (default 0)")
    parser.add_argument("--problems", type=int, default=200, help="number of problems (default 200)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no problem after so many minutes")
    parser.add_argument("--oracle", choices=sorted(ORACLES), action="append", help="run only this oracle (repeatable)")
    arguments = parser.parse_args()
    seeds = _seeds(arguments.seed, arguments.problems, monotonic() + 60 * arguments.minutes)
    tallies = run(seeds, arguments.oracle or ORACLES, _print_defect)
    print(as_table(tallies))
    return 1 if any(tally.defects for tally in tallies.values()) else 0


def _seeds(first: int, n: int, deadline: float) -> Iterator[int]:
    for seed in range(first, first + n):
        if monotonic() > deadline:
            return
        yield seed


def _print_defect(name: str, message: str) -> None:
    print(f"{name}: {message} (rerun: --oracle {name} --problems 1 --seed …)", flush=True)


sys.exit(main())
