"""The tools of contributors: ``python -m tools check`` before each commit."""

import os
import sys
from importlib import import_module
from pathlib import Path

TOOLS = {
    "check": ("tools.check", "style, types, layers, docstrings, and the tests of what changed; --all: every test"),
    "docstrings": ("tools.docstrings", "the docstrings of the public names, by the rules of numpydoc"),
    "site": ("tools.site", "build the site, with warnings as errors, and check its links"),
    "extras": ("tools.packages", "install each extra into a new environment, and import what it is for"),
    "wheel": ("tools.packages", "install a built wheel into a new environment, and use it"),
    "pins": ("tools.packages", "print the lowest allowed version of each dependency"),
    "release": ("tools.packages", "compare the version in all files with a tag"),
}


def main(arguments: list[str]) -> int:
    """Run a tool with its arguments in the root of the repository, and return the exit status."""
    if not arguments or arguments[0] not in TOOLS:
        print(
            "Usage: python -m tools TOOL [ARGUMENT ...]", *(f"  {name:11}{TOOLS[name][1]}" for name in TOOLS), sep="\n"
        )
        return 2
    os.chdir(Path(__file__).parents[1])
    module = import_module(TOOLS[arguments[0]][0])
    return int(getattr(module, f"run_{arguments[0]}")(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
