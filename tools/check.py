"""Check a change: style, types, layers, docstrings, and the tests of what changed.

``python -m tools check`` runs every step, ``python -m tools check types tests`` two of them. The tests are those of
the files that differ from ``main``; with ``--all``, every test runs. A house whose dependencies are not installed is
checked for style and layers only.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple


class House(NamedTuple):
    """A part of the repository with its tests and the packages that it cannot be imported without."""

    name: str
    source: str
    tests: str
    needs: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The packages that are not there."""
        return [package for package in self.needs if not find_spec(package)]

    @property
    def is_installed(self) -> bool:
        """Whether all packages are there."""
        return not self.missing


CHEM = "packages/psilearn-chem"
HOUSES = [  # the first one that contains a file is its house
    House("app", "src/psilearn/app", "tests/app", ("fastapi", "pandas", "pyarrow", "rich", "typer")),
    House("library", "src/psilearn", "tests", ()),
    House("chem", f"{CHEM}/src/psilearn_chem", f"{CHEM}/chem_tests", ("psilearn_chem", "matchms", "rdkit", "typer")),
    House("lab", "lab/psilearn_lab", "lab/lab_tests", ("psilearn_lab", "psilearn_chem", "h5py", "pooch", "torch")),
]
USERS_OF_THE_LIBRARY = ["src/psilearn/app", "packages/psilearn-chem", "lab"]
TESTS_BY_FILE = {  # of files outside of the sources
    r"(docs/.*|README\.md)": ["tests/test_documentation.py", "tests/test_site.py", "tests/test_public_api.py"],
    r"examples/.*\.py": ["tests/test_examples.py"],
    r"(\.github|tools|recipe|\.ci)/.*|pyproject\.toml|CITATION\.cff": [
        "tests/test_release.py",
        "tests/test_public_api.py",
    ],
    r"conftest\.py": ["tests"],
}
PYTHON = [sys.executable, "-m"]
LINT_IMPORTS = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]


def run_check(arguments: list[str]) -> int:
    """Run the named steps, or all; return 1 if one of them fails."""
    names = [argument for argument in arguments if argument != "--all"] or list(STEPS)
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        print(
            f"There is no step {unknown[0]!r}; the steps are {', '.join(STEPS)}, and the option is --all.",
            file=sys.stderr,
        )
        return 2
    for house in (house for house in HOUSES if not house.is_installed):
        needed = ", ".join(house.missing)
        print(f"{house.name}: types, docstrings and tests are not checked without {needed}.", flush=True)
    failed = [name for name in names if not STEPS[name]("--all" in arguments)]
    print(f"Failed: {', '.join(failed)}." if failed else f"Passed: {', '.join(names)}.")
    return bool(failed)


def check_style(every: bool) -> bool:
    """Check the style with ruff."""
    return _run([*PYTHON, "ruff", "check", "."]) & _run([*PYTHON, "ruff", "format", "--check", "."])


def check_types(every: bool) -> bool:
    """Check the types of the houses that are installed."""
    if all(house.is_installed for house in HOUSES):
        return _run([*PYTHON, "mypy"])
    excluded = [f"--exclude=^{house.source}/" for house in HOUSES if not house.is_installed]
    return _run(
        [*PYTHON, "mypy", *excluded, *(house.source for house in HOUSES if house.is_installed), "tools/check.py"]
    )


def check_layers(every: bool) -> bool:
    """Check the direction of imports, and that only the library uses its private names."""
    found = [line for folder in USERS_OF_THE_LIBRARY for line in private_names(Path(folder).rglob("*.py"))]
    print(
        *found, f"{len(found)} private names of the library in {', '.join(USERS_OF_THE_LIBRARY)}.", sep="\n", flush=True
    )
    return _run(LINT_IMPORTS) & (not found)


def check_docstrings(every: bool) -> bool:
    """Check the docstrings of the public names."""
    return _run([*PYTHON, "tools", "docstrings"])


def check_tests(every: bool) -> bool:
    """Run the tests of the files that differ from main, or all."""
    tests = [] if every else find_tests(changed_files())
    if not every and not tests:
        print("No test belongs to what changed.")
        return True
    return _run([*PYTHON, "pytest", "-n", "auto", "--dist=worksteal", *tests])


STEPS = {
    "style": check_style,
    "types": check_types,
    "layers": check_layers,
    "docstrings": check_docstrings,
    "tests": check_tests,
}


def private_names(paths: Iterable[Path]) -> Iterator[str]:
    """Yield one line for each import or use of a private name of the library in some files."""
    for path in sorted(paths):
        for line, name in sorted(_library_names(ast.parse(path.read_text("utf-8")))):
            parts = name.split(".")[1:]
            is_own = path.is_relative_to("src/psilearn/app") and parts[0] == "app"
            is_private = any(re.match(r"_(?!_)", part) for part in parts)
            if not is_own and (is_private or (_is_in_module(parts) and "tests" not in str(path))):
                yield f"{path}:{line}: {name}"


def _is_in_module(parts: list[str]) -> bool:
    """Return whether a name is one of a module within a package; the public ones are names of the package."""
    modules = (Path("src/psilearn", *parts[:i]).with_suffix(".py") for i in range(2, len(parts)))
    return parts[0] != "app" and any(module.is_file() for module in modules)


def _library_names(tree: ast.Module) -> set[tuple[int, str]]:
    """Return the lines and the names of the library that a file imports, reads as attributes or has in a text."""
    imported, found = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.add((node.lineno, alias.name))
                imported[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found.add((node.lineno, f"{node.module}.{alias.name}"))
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {(node.lineno, name) for name in re.findall(r"\bpsilearn(?:\.\w+)+", node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            found.add((node.lineno, f"{imported[node.value.id]}.{node.attr}"))
    return {(line, name) for line, name in found if name.startswith("psilearn.")}


def changed_files() -> list[str]:
    """Return the files that differ from the common ancestor with main, and new ones."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return _git("diff", "--name-only", base[0]) + _git("ls-files", "--others", "--exclude-standard")


def find_tests(files: Iterable[str]) -> list[str]:
    """Return the test files and folders of some files, without the houses that are not installed."""
    found = {test for file in files for test in _tests_of_file(file) if Path(test).exists()}
    missing = [house.tests for house in HOUSES if not house.is_installed]
    return sorted(test for test in found if not any(Path(test).is_relative_to(folder) for folder in missing))


def _tests_of_file(file: str) -> list[str]:
    """Return the tests of a file: itself, those of the same folder of its house, or those listed above."""
    path = Path(file)
    for house in HOUSES:
        if path.is_relative_to(house.tests):
            return [file] if path.name.startswith("test_") else [str(path.parent)]
        if path.is_relative_to(house.source):
            inside = path.relative_to(house.source)
            module = Path(house.tests, inside.parent, f"test_{inside.name}")
            if len(inside.parts) == 1:
                return [str(module)] if module.exists() else ["tests/test_public_api.py"]
            folders = [Path(house.tests, folder) for folder in inside.parents]
            return [str(next(folder for folder in folders if folder.exists()))]
    return [test for pattern, tests in TESTS_BY_FILE.items() if re.fullmatch(pattern, file) for test in tests]


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.splitlines()


def _run(command: list[str]) -> bool:
    """Run a command with the sources of all houses, and return whether it succeeded."""
    print("+", *(Path(part).name if part == sys.executable else part for part in command), flush=True)
    sources = [str(Path(house.source).parent.resolve()) for house in HOUSES if house.name != "app"]
    path = os.pathsep.join([*sources, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode == 0
