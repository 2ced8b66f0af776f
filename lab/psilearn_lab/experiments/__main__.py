"""``python -m psilearn_lab.experiments NAME``: run an experiment where the packages of the command line are missing.

``psilearn reproduce`` does the same with tables and a report. Here each row is one line of text; records and
``results.csv`` are written as usual, so that the command can later make the report from them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from psilearn_lab import experiments
from psilearn_lab.experiments.record import Record


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an experiment, print its rows and notes, and return the exit status: 1 if a part has no record."""
    options = vars(_make_parser().parse_args(arguments))
    experiment = experiments.find(options.pop("name"))
    start, failed = time.monotonic(), False

    def log(text: str) -> None:
        print(f"{time.monotonic() - start:6.0f} s  {text}", file=sys.stderr, flush=True)

    for result in experiments.run(experiment, options.pop("output"), log=log, **options):
        failed |= not isinstance(result, Record)
        print("\n".join(_describe(result)) if isinstance(result, Record) else result, flush=True)
    return int(failed)


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m psilearn_lab.experiments", description=__doc__)
    parser.add_argument("name", choices=experiments.NAMES)
    parser.add_argument("--output", default="psilearn-results", help="folder of the results")
    parser.add_argument("--only", metavar="PART", help="run a single part, usually a dataset")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--jobs", dest="n_jobs", type=int, help="number of processes")
    parser.add_argument("--quick", action="store_true", help="trial run on little data")
    parser.add_argument("--fresh", action="store_true", help="compute finished parts again")
    parser.add_argument("--device", help="torch device, such as cuda, of the parts that can use one")
    return parser


def _describe(record: Record) -> list[str]:
    """Return one line per row and note."""
    lines = [f"{record.title}, {record.seconds:.0f} s"]
    for row in record.rows:
        value = "quoted" if row.value is None else f"{row.value:.{row.metric.digits}f}"
        error = "" if row.error is None else f" ± {row.error:.{row.metric.digits}f}"
        lines.append(f"  {row.metric.name:<8} {value}{error}  {row.method}  {row.parameters or ''}")
    return lines + [f"- {note}" for note in record.notes]


if __name__ == "__main__":
    sys.exit(main())
