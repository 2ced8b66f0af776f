"""Compare two routes to one answer on random problems: ``python -m psilearn_lab.oracles --runs 139``."""

from __future__ import annotations

import argparse
import sys

from psilearn_lab.fuzz.harness import print_table
from psilearn_lab.oracles.routes import check_routes


def main(arguments: list[str] | None = None) -> int:
    """Check the problems of the command line, and return the exit status."""
    parser = argparse.ArgumentParser("python -m psilearn_lab.oracles", description=__doc__)
    parser.add_argument("--runs", type=int, default=139, help="number of random problems (default 139)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem (default 0)")
    options = parser.parse_args(arguments)
    return print_table([check_routes(range(options.seed, options.seed + options.runs))])


if __name__ == "__main__":
    sys.exit(main())
