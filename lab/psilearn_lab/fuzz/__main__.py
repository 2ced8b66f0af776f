"""Attack psilearn in all ways, and print the table of docs/reliability.md.

    python -m psilearn_lab.fuzz                               all parts (hours)
    python -m psilearn_lab.fuzz --share 0.01                  all parts, a hundredth of the attempts
    python -m psilearn_lab.fuzz readers models                some parts
    python -m psilearn_lab.fuzz mulan model-csr               some readers or saved models (--list prints their names)
    python -m psilearn_lab.fuzz readers --seconds 60          each reader for a minute
    python -m psilearn_lab.fuzz arguments --only OEL          calls whose name contains a text; kills --only build
    python -m psilearn_lab.fuzz mulan --seed 7 --first 123 --runs 1       one input
    python -m psilearn_lab.fuzz mulan --input FOLDER          a stored input

A defect is an unclear error, a crash, a hang, too much memory or time for the bytes of the input, a changed state or a
difference between two ways to compute a result. Inputs of files begin with crafted ones. Of each new defect the first
input is stored, and its path printed. The exit status is 1 if there is a defect.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from psilearn_lab.fuzz.arguments import Arguments
from psilearn_lab.fuzz.files import attack, read_tree
from psilearn_lab.fuzz.harness import Tally, print_table, run_attempts
from psilearn_lab.fuzz.models import MODELS
from psilearn_lab.fuzz.processes import SCENARIOS, attack_by_forks, attack_by_kills
from psilearn_lab.fuzz.readers import READERS
from psilearn_lab.fuzz.requests import attack_service

TARGETS = {target.name: target for target in (*READERS, *MODELS)}
ATTEMPTS = {"readers": 5000, "models": 20_000, "requests": 1000, "kills": 40, "forks": 30}
PARTS = ("readers", "models", "arguments", *list(ATTEMPTS)[2:])


def main(arguments: list[str] | None = None) -> int:
    """Run the parts of the command line, and return the exit status."""
    options = _parse(arguments)
    if options.list:
        print("\n".join(TARGETS))
        return 0
    return print_table(_attack(options))


def _attack(options: argparse.Namespace) -> Iterator[Tally]:
    """Yield a row of the table per reader, model, scenario or part."""

    def count(part: str) -> int:
        return options.runs or max(1, round(options.share * ATTEMPTS[part]))

    seed = options.seed
    for part in options.parts or PARTS:
        if part in ("readers", "models") or part in TARGETS:
            targets = {"readers": READERS, "models": MODELS}.get(part) or (TARGETS[part],)
            runs = count("models" if part == "models" else "readers") if options.seconds is None else 10**12
            limits = {"first": options.first, "seconds": options.seconds or float("inf"), "failures": options.failures}
            stored = read_tree(options.input) if options.input else None
            for target in targets:
                yield attack(target, seed, runs=1 if stored else runs, size=options.size, stored=stored, **limits)
        elif part == "arguments":
            yield _attack_arguments(options)
        elif part == "requests":
            yield attack_service(count(part), seed)
        elif part == "kills":
            yield from (attack_by_kills(name, count(part), seed) for name in SCENARIOS if options.only in name)
        else:
            yield attack_by_forks(count(part), seed)


def _attack_arguments(options: argparse.Namespace) -> Tally:
    tally, share = Tally("wrong arguments", options.seed), 1.0 if options.runs else options.share
    selection = options.seed, share, options.only
    for _, result in run_attempts(Arguments(*selection), options.runs or 10**12, time_limit=60):
        if result.kind == "end":
            break
        tally.add(result)
    return tally


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m psilearn_lab.fuzz", description=__doc__, formatter_class=text)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}, or targets of --list; default: all"
    )
    parser.add_argument("--list", action="store_true", help="print the readers and models")
    parser.add_argument("--share", type=float, default=1.0, help="share of the usual attempts (default 1)")
    parser.add_argument("--runs", type=int, help="number of attempts of each row")
    parser.add_argument("--seconds", type=float, help="time per reader or model, instead of a number of attempts")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of a file (default 0)")
    parser.add_argument("--size", type=int, default=1 << 20, help="bytes of the largest crafted files (default 1 MiB)")
    parser.add_argument("--only", default="", help="only calls or scenarios whose name contains this text")
    parser.add_argument("--input", type=Path, help="run the stored input of this folder")
    parser.add_argument("--failures", type=Path, help="folder for inputs with defects (default: a new temporary one)")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS) - set(TARGETS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; the parts are {', '.join(PARTS)}, and --list prints targets")
    return options


if __name__ == "__main__":
    sys.exit(main())
