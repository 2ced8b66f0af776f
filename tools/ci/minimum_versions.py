"""Print the lowest version that pyproject.toml allows of each dependency, one requirement for pip per line.

``python tools/ci/minimum_versions.py plot chem > pins.txt`` prints the dependencies of the package and of the extras
``plot`` and ``chem``; without an argument it prints those of the package and of all extras. An extra that contains
other extras of psilearn contributes their dependencies too.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w, -]+)\])?(>=(?P<lowest>[\w.]+))?")


def minimum_pins(project: dict[str, Any], extras: Iterable[str]) -> dict[str, str]:
    """Return the lowest allowed version of each dependency of the package and of some extras."""
    optional = project["optional-dependencies"]
    requirements = list(project["dependencies"]) + [line for extra in extras for line in optional[extra]]
    pins: dict[str, str] = {}
    for line in requirements:  # the list grows by the dependencies of extras that contain extras
        match = REQUIREMENT.fullmatch(line)
        if match is None:
            raise ValueError(f"{line!r} in pyproject.toml must have the form 'name>=version', a lower bound only.")
        if match["name"] == project["name"]:
            requirements += [line for extra in match["extras"].split(",") for line in optional[extra.strip()]]
        elif match["lowest"] is None:
            raise ValueError(f"{line!r} in pyproject.toml has no lower bound.")
        else:
            name = line.partition(">=")[0]  # with its extras, as in dask[array]
            if pins.setdefault(name, match["lowest"]) != match["lowest"]:
                raise ValueError(f"{name} has two lower bounds: {pins[name]} and {match['lowest']}.")
    return pins


def main(extras: list[str]) -> int:
    """Print the pins; return 2 if an extra does not exist."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    known = list(project["optional-dependencies"])
    unknown = [extra for extra in extras if extra not in known]
    if unknown:
        print(f"psilearn has no extra {unknown[0]!r}; its extras are {', '.join(known)}.", file=sys.stderr)
        return 2
    for name, version in sorted(minimum_pins(project, extras or known).items()):
        print(f"{name}=={version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
