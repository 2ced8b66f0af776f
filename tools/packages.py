"""Checks of the packages as users install them: new environments, lowest versions, versions that agree.

``python -m tools extras plot torch`` checks two extras; without an argument, all are checked, and several hundred
megabytes are downloaded for ``torch``. ``python -m tools wheel dist/*.whl`` checks built wheels. ``python -m tools pins
app`` prints the lowest allowed versions for pip, of the library and of an extra, or of all extras. ``python -m tools
release v0.1.0`` lists the files that do not have the version of a tag.
"""

import os
import re
import subprocess
import tomllib
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {  # what an extra is for; "test" and "test-all" are installed by the tests themselves
    "app": "import psilearn.app.cli, fastapi, pandas, pyarrow",
    "plot": "import psilearn.plotting, matplotlib",
    "torch": "import psilearn, torch; psilearn.OEL(device='cpu')",
    "dask": "import psilearn, dask.array, distributed",
    "ann": "import psilearn.decoding, faiss",
    "graph": "import psilearn.metrics, networkx, ot",
    "grakel": "import psilearn.kernels.graph, grakel",
    "strings": "import psilearn.metrics, rapidfuzz",
    "series": "import psilearn.kernels, tslearn.metrics",
    "docs": "import psilearn, sphinx, sphinx_gallery, numpydoc, myst_parser",
}
WHEELS = {
    "psilearn": """
from importlib.metadata import version
from importlib.resources import files
from sklearn.datasets import make_multilabel_classification
import psilearn
from psilearn import OEL, OELCV, load_model, save_model

X, Y = make_multilabel_classification(n_samples=80, n_classes=6, random_state=0)
model = OEL(n_components=5).fit(X[:60], Y[:60])
save_model(model, "model.psi")
assert (load_model("model.psi").predict(X[60:]) == model.predict(X[60:])).all()
OELCV(cv=2, verbose=True).fit(X[:60], Y[:60]).predict(X[60:])
assert version("psilearn") == psilearn.__version__
assert files("psilearn").joinpath("py.typed").is_file()
assert {"torch", "typer", "rich", "matplotlib"}.isdisjoint(sys.modules)
""",
    "psilearn_chem": """
from typer.testing import CliRunner
from psilearn.app.cli import app
from psilearn_chem import Spectrum, spectrum_kernel

assert spectrum_kernel()([Spectrum([50.0], [1.0], 60.0)]).shape == (1, 1)
assert CliRunner().invoke(app, ["metabolites", "--help"]).exit_code == 0
""",
}
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w, -]+)\])?(>=(?P<lowest>[\w.]+))?")


def run_extras(extras: list[str]) -> int:
    """Install the library with each extra alone, and import what the extra is for."""
    for extra in extras or EXTRAS:
        run_in_new_environment([f"{ROOT}[{extra}]"], EXTRAS[extra])
        print(f"psilearn[{extra}] installs and imports.", flush=True)
    return 0


def run_wheel(wheels: list[str]) -> int:
    """Install each wheel without extras, and use it as a new user would."""
    for wheel in map(Path, wheels):
        program = WHEELS[wheel.name.partition("-")[0]]
        run_in_new_environment([str(wheel.resolve()), f"--find-links={wheel.parent.resolve()}"], program)
        print(f"{wheel.name} installs and works.", flush=True)
    return 0


def run_in_new_environment(requirements: Sequence[str], program: str) -> None:
    """Run a program in an empty folder, with a new environment of some requirements."""
    with TemporaryDirectory() as folder:
        venv.create(Path(folder, "environment"), with_pip=True)
        python = str(Path(folder, "environment", "Scripts" if os.name == "nt" else "bin", "python"))
        work = Path(folder, "work")
        work.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        for command in ([python, "-m", "pip", "install", "--quiet", *requirements], [python, "-c", program]):
            subprocess.run(command, cwd=work, env=environment, check=True)


def run_pins(extras: list[str]) -> int:
    """Print one requirement for pip per dependency."""
    for name, version in sorted(minimum_pins(PROJECT, extras or PROJECT["optional-dependencies"]).items()):
        print(f"{name}=={version}")
    return 0


def minimum_pins(project: dict[str, Any], extras: Iterable[str]) -> dict[str, str]:
    """Return the lowest allowed version of each dependency of a project and of some extras."""
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


def run_release(tags: list[str]) -> int:
    """Print the files that do not have the version of the library or of a tag; return 1 if there are any."""
    problems = find_disagreements(ROOT, tags[0] if tags else None)
    print(*problems, sep="\n")
    return bool(problems)


def find_disagreements(root: Path, tag: str | None = None) -> list[str]:
    """Return one sentence per place that does not have the version of the library."""
    version = _search(root / "src/psilearn/__init__.py", r'^__version__ = "(.+)"$')
    chem = _search(root / "packages/psilearn-chem/src/psilearn_chem/__init__.py", r'^__version__ = "(.+)"$')
    dated = _search(root / "CHANGELOG.md", rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$")
    cited = _search(root / "CITATION.cff", r'^version: "?([^"\n]+)"?$')
    released = _search(root / "CITATION.cff", r'^date-released: "?([^"\n]+)"?$')
    recipe = _search(root / "recipe/meta.yaml", r'^{% set version = "(.+)" %}$')
    problems = {
        f"psilearn_chem has the version {chem!r}, not {version!r}.": chem != version,
        f"CHANGELOG.md has no section '## {version} (date)'.": not dated,
        f"CITATION.cff has the version {cited!r}, not {version!r}.": cited != version,
        f"CITATION.cff has the date {released!r}, CHANGELOG.md {dated!r}.": released != dated,
        f"recipe/meta.yaml has the version {recipe!r}, not {version!r}.": recipe != version,
        f"The tag is {tag!r}, not 'v{version}'.": tag is not None and tag != f"v{version}",
    }
    return [sentence for sentence, is_wrong in problems.items() if is_wrong]


def _search(file: Path, pattern: str) -> str:
    """Return the first group of the first match in a file, or nothing."""
    match = re.search(pattern, file.read_text("utf-8"), re.MULTILINE)
    return match[1] if match else ""
