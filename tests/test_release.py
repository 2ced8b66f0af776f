"""What a release consists of: workflows, their scripts, lower bounds, the recipe, and versions that agree."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import packages
from tools.__main__ import TOOLS

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def read_yaml(path):
    return yaml.safe_load(path.read_text("utf-8"))


def steps_of(workflow):
    return [step for job in read_yaml(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_each_step_of_a_workflow_is_a_script_or_an_action_with_a_version(workflow):
    for step in steps_of(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", step["uses"])
            continue
        words = step["run"].split()
        if words[:3] == ["python", "-m", "tools"]:
            assert words[3] in TOOLS
            continue
        script = ROOT / words[0]
        assert script.is_file() and os.access(script, os.X_OK), f"{script} is not an executable script"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_few_permissions_and_a_time_limit(workflow):
    content = read_yaml(workflow)
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert "timeout-minutes" in job or set(job["permissions"]) <= {"id-token", "pages"}


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        *((path, "vendor.github-workflows") for path in WORKFLOWS),
        (ROOT / ".github" / "dependabot.yml", "vendor.dependabot"),
    ],
    ids=lambda value: getattr(value, "stem", ""),
)
def test_workflows_are_valid_by_their_schema(path, schema):
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_the_tests_run_on_each_supported_version_and_system():
    matrix = read_yaml(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    assert matrix["python"] == [f"3.{line.removeprefix(prefix)}" for line in PROJECT["classifiers"] if prefix in line]
    assert {system.partition("-")[0] for system in matrix["system"]} == {"ubuntu", "macos", "windows"}


def test_scripts_of_the_workflows_are_valid_bash():
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    for script in (ROOT / "tools" / "ci").glob("*.sh"):
        subprocess.run([bash, "-n", str(script)], check=True)


def test_minimum_pins_are_the_lower_bounds_of_pyproject():
    minimum_pins = packages.minimum_pins
    project = {
        "name": "mine",
        "dependencies": ["a>=1.2"],
        "optional-dependencies": {"x": ["b[fast]>=3"], "y": ["mine[x]", "c>=4"], "bad": ["d"], "other": ["a>=2"]},
    }
    assert minimum_pins(project, []) == {"a": "1.2"}
    assert minimum_pins(project, ["y"]) == {"a": "1.2", "b[fast]": "3", "c": "4"}
    with pytest.raises(ValueError, match=r"'d' in pyproject\.toml has no lower bound"):
        minimum_pins(project, ["bad"])
    with pytest.raises(ValueError, match=r"a has two lower bounds: 1\.2 and 2"):
        minimum_pins(project, ["other"])
    assert minimum_pins(PROJECT, PROJECT["optional-dependencies"])  # each requirement has one lower bound, nothing else


def test_each_extra_is_installed_and_imported_by_a_check():
    extras = set(PROJECT["optional-dependencies"])
    assert packages.EXTRAS.keys() == extras - {"test", "test-all"}  # installed by other jobs
    assert any(step.get("run") == "python -m tools extras" for step in steps_of(ROOT / ".github/workflows/tests.yml"))


def test_the_recipe_has_the_dependencies_of_the_package():
    text = re.sub(r"{%.*?%}", "", (ROOT / "recipe" / "meta.yaml").read_text("utf-8")).replace("{{ version }}", "0")
    run = yaml.safe_load(text)["requirements"]["run"]
    pins = packages.minimum_pins(PROJECT, [])
    assert sorted(run) == sorted(["python >=3.11", *(f"{name} >={version}" for name, version in pins.items())])


def test_versions_agree(tmp_path):
    find_disagreements = packages.find_disagreements
    assert find_disagreements(ROOT) == []
    chem = "packages/psilearn-chem/src/psilearn_chem/__init__.py"
    for name in ("src/psilearn/__init__.py", chem, "CHANGELOG.md", "CITATION.cff", "recipe/meta.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    source = tmp_path / "src/psilearn/__init__.py"
    source.write_text(re.sub(r'(__version__ = )".+"', r'\1"9.9.9"', source.read_text("utf-8")), "utf-8")
    assert len(find_disagreements(tmp_path, "v9.9.8")) == 6


def test_the_citation_has_what_the_format_requires():
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert {"type", "title", "authors"} <= citation["preferred-citation"].keys()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 130
