"""The public names: what is documented is reachable, imports stay light, and files are where one looks for them."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.check import HOUSES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "psilearn"
TESTS = ROOT / "tests"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *ROOT.glob("*/*/README.md")]
PAGES.remove(ROOT / "CHANGELOG.md")  # names what was removed
MISSING = {
    Path(house.source).name for house in HOUSES if not house.is_installed
}  # "app", "psilearn_chem", "psilearn_lab"
GENERATED = {"auto_examples/index.rst", "api/index.rst"}
SOURCES = [
    ROOT,
    SOURCE.parent,
    SOURCE,
    ROOT / "packages" / "psilearn-chem" / "src" / "psilearn_chem",
    ROOT / "lab" / "psilearn_lab",
]
TESTS_WITHOUT_A_MODULE = {
    "test_ci_scripts.py",
    "test_documentation.py",
    "test_examples.py",
    "test_other_systems.py",
    "test_release.py",
    "test_public_api.py",
    "test_site.py",
    "test_tools.py",
}

LOADED_MODULES = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""

UNREACHABLE_NAMES = """
import functools, json, pkgutil, sys
import psilearn

def is_reachable(name):
    if not name.startswith("psilearn.") or name.startswith("psilearn.app"):  # imported explicitly
        try:
            pkgutil.resolve_name(name)
        except (AttributeError, ImportError):
            return False
        return True
    try:
        functools.reduce(getattr, name.split(".")[1:], psilearn)
    except AttributeError:
        return False
    return True

modules = json.loads(sys.argv[2])
names = json.loads(sys.argv[1]) + modules
unreachable = [name for name in names if not is_reachable(name)]
for module in [name for name in modules if name not in unreachable]:
    exported = getattr(functools.reduce(getattr, module.split(".")[1:], psilearn), "__all__", None)
    unreachable += [f"{module}.__all__"] if exported is None else []
    unreachable += [f"{module}.{name}" for name in exported or () if not is_reachable(f"{module}.{name}")]
print(json.dumps(unreachable))
"""


def run_python(code, *arguments):
    """Run code in a new interpreter and return what it prints as JSON."""
    completed = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def loaded_modules(module):
    """Return the names of the modules that importing one module loads."""
    return set(run_python(LOADED_MODULES.format(module=module)))


def documented_names():
    """Return the dotted names of the documentation that are public and belong to a house that is installed."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    text = re.sub(r"psilearn\.(codecs|commands|services)\b", "", text)  # groups of entry points
    names = set(re.findall(r"\bpsilearn(?:_chem|_lab)?(?:\.[A-Za-z]\w*)+", text))
    names -= {"psilearn.codecs", "psilearn.commands", "psilearn.services"}  # groups of entry points
    return sorted(name for name in names if not MISSING & set(name.split(".")[:2]))


def public_modules():
    """Return the public modules of the library itself and all public subpackages, without the application."""
    packages = [path.parent.relative_to(SOURCE.parent) for path in SOURCE.rglob("__init__.py")]
    modules = [path.with_suffix("").relative_to(SOURCE.parent) for path in SOURCE.glob("*.py")]
    return sorted(
        ".".join(path.parts)
        for path in [*packages, *modules]
        if not any(part.startswith("_") for part in path.parts) and path.parts[1:2] != ("app",)
    )


def test_every_documented_and_exported_name_is_reachable_after_importing_psilearn():
    assert run_python(UNREACHABLE_NAMES, json.dumps(documented_names()), json.dumps(public_modules())) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_in_the_documentation_exists(page):
    text = page.read_text("utf-8")
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link}
    links = {re.sub(r"auto_examples/(.*/.*)\.rst", r"../examples/\1.py", link) for link in links} - GENERATED
    folders = r"docs(?!/_build)|examples|lab|packages|src|tests|tools|recipe|\.ci|\.github"
    files = re.findall(rf"`(?:python )?((?:{folders})/[\w./-]+|[\w/]+/\w+\.py)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert [file for file in files if not any((root / file).exists() for root in SOURCES)] == []


def test_the_user_documentation_names_no_private_module():
    guides = [page for page in (ROOT / "docs").glob("**/*.md") if page.name != "architecture.md"]
    for page in [ROOT / "README.md", *guides]:
        assert not re.findall(r"\bpsilearn\._\w+", page.read_text("utf-8")), f"{page.name} names a private module"


def test_psilearn_lists_its_subpackages_and_lazy_names():
    import psilearn

    subpackages = {module.split(".")[1] for module in public_modules() if module != "psilearn"}
    assert dir(psilearn) == sorted(psilearn.__all__)
    assert set(psilearn.__all__) == subpackages | set(psilearn._MODULE_BY_NAME) | {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        psilearn.nothing  # noqa: B018


def test_importing_psilearn_loads_nothing_heavy():
    loaded = loaded_modules("psilearn")
    assert {name for name in loaded if name.startswith("psilearn")} == {"psilearn"}
    assert not loaded & {"numpy", "scipy", "sklearn", "torch"}


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("psilearn.kernels", ["psilearn_chem", "rdkit", "matchms", "torch"]),
        ("psilearn_lab.datasets", ["psilearn_chem", "psilearn.decoding", "rdkit", "matchms", "torch"]),
        (
            "psilearn.estimators",
            ["psilearn_chem", "psilearn_lab.experiments", "rdkit", "matchms", "torch", "matplotlib"],
        ),
        ("psilearn.io", ["psilearn_chem", "rdkit", "matchms", "torch"]),
        ("psilearn_chem", ["rdkit", "matchms", "torch"]),
        ("psilearn.app.cli", ["rdkit", "matchms", "torch", "matplotlib"]),
    ],
)
def test_importing_a_subpackage_loads_only_what_it_needs(module, unwanted):
    if missing := MISSING & set(module.split(".")):
        pytest.skip(f"{missing} is not installed")
    loaded = loaded_modules(module)
    assert not [name for name in unwanted if name in loaded]


def test_no_two_modules_have_the_same_file_name():
    counts = Counter(path.name for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_tests_mirror_the_packages():
    for path in TESTS.rglob("test_*.py"):
        folder = path.parent.relative_to(TESTS)
        if folder.parts:
            assert (SOURCE / folder / "__init__.py").exists(), f"{path.relative_to(ROOT)} has no package to test"
        elif path.name not in TESTS_WITHOUT_A_MODULE:
            assert (SOURCE / path.name.removeprefix("test_")).exists(), (
                f"{path.relative_to(ROOT)} has no module to test"
            )
