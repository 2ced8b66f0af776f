"""Damage valid files at random and check how the readers and loaders of psilearn treat them.

    python -m psilearn_lab.fuzz --list                        print the targets
    python -m psilearn_lab.fuzz --seconds 60 TARGET ...       run some targets, each for a minute
    python -m psilearn_lab.fuzz --runs 5000 TARGET ...        run some targets on 5000 inputs each
    python -m psilearn_lab.fuzz --seconds 2 all               run all targets
    python -m psilearn_lab.fuzz --seed 7 --first 123 --runs 1 TARGET      run the input number 123 of the random seed 7
    python -m psilearn_lab.fuzz --input FOLDER TARGET         run a stored input
    python -m psilearn_lab.fuzz --atheris TARGET              let atheris choose the inputs by coverage, if it is installed

A reader may accept an input, or raise a ValueError or an OSError that names the file. Anything else is a defect:
another exception, a crash or a hang of the process, and memory beyond twice the input and 64 MB. The exit status is 1
if there is a defect; its input is stored, and its path is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import psilearn_lab.fuzz.threads  # noqa: F401  before NumPy is imported

# isort: split
from psilearn_lab.fuzz.atheris_driver import run_atheris
from psilearn_lab.fuzz.campaign import TIME_LIMIT, Campaign, Summary
from psilearn_lab.fuzz.targets import TARGETS
from psilearn_lab.fuzz.trees import read_tree


def main(arguments: list[str] | None = None) -> int:
    """Run the targets of the command line, and return the exit status."""
    options = _parse(arguments)
    if options.list:
        print("\n".join(TARGETS))
        return 0
    names = list(TARGETS) if options.targets == ["all"] else options.targets
    if options.atheris:
        return run_atheris(TARGETS[names[0]], options.seed)
    summaries = []
    print(f"{'target':24}{'attempts':>9}{'clear errors':>14}{'accepted':>10}{'defects':>9}{'seed':>10}{'seconds':>9}")
    for name in names:
        summaries.append(_run(name, options))
        _print(summaries[-1])
    if options.json:
        options.json.write_text(json.dumps([summary.to_json() for summary in summaries], indent=1), encoding="utf-8")
    return int(any(summary.defects for summary in summaries))


def _run(name: str, options: argparse.Namespace) -> Summary:
    campaign = Campaign(TARGETS[name], options.seed, options.failures, options.time_limit)
    if options.input:
        return campaign.reproduce(read_tree(options.input))
    seconds = 2.0 if options.seconds is None and options.runs is None else options.seconds
    return campaign.run(seconds=seconds, runs=options.runs, first=options.first)


def _print(summary: Summary) -> None:
    print(
        f"{summary.target:24}{summary.attempts:9}{summary.clear_errors:14}{summary.accepted:10}{summary.defects:9}"
        f"{summary.seed:10}{summary.seconds:9}",
        flush=True,
    )
    for place, defect in summary.places.items():
        print(
            f"  {defect.count} × {place.splitlines()[0]}: {defect.reason}\n    input {defect.index}: {defect.path}",
            flush=True,
        )


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m psilearn_lab.fuzz", description="Fuzz the readers and loaders of psilearn."
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="targets, or all")
    parser.add_argument("--list", action="store_true", help="print the targets")
    parser.add_argument("--seconds", type=float, help="time per target (default 2, unless --runs is given)")
    parser.add_argument("--runs", type=int, help="number of inputs per target")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input (default 0)")
    parser.add_argument("--input", type=Path, help="run the stored input of this folder")
    parser.add_argument("--failures", type=Path, help="folder for inputs with defects (default: a new temporary one)")
    parser.add_argument(
        "--time-limit", type=float, default=TIME_LIMIT, help=f"seconds per input (default {TIME_LIMIT:g})"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--atheris", action="store_true", help="run one target by atheris, in this process")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.targets if name not in TARGETS and options.targets != ["all"]]
    if unknown or not (options.targets or options.list):
        parser.error(f"give targets of --list, or all; unknown: {', '.join(unknown) or 'none'}")
    return options


if __name__ == "__main__":
    sys.exit(main())
