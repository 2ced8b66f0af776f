"""``psilearn info`` and shell completion."""

import importlib.util
import tomllib
from pathlib import Path

import numpy
import pytest
from typer.testing import CliRunner

import psilearn
from psilearn.app.cli import app, installation_info

ROOT = Path(__file__).parents[3]


def test_info_shows_versions_libraries_and_extras():
    lines = CliRunner().invoke(app, ["info"]).output.splitlines()
    values = {line[:18].strip(): line[19:] for line in lines}
    assert values["psilearn"] == psilearn.__version__ and values["numpy"] == numpy.__version__
    assert "threads" in values["blas"] and "NumPy on the CPU" in values["devices"]


def test_all_extras_for_users_are_listed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].keys() - {"docs", "test", "test-all"}
    guide = (ROOT / "docs" / "getting_started.md").read_text(encoding="utf-8")
    output = CliRunner().invoke(app, ["info"]).output
    assert extras == installation_info.EXTRAS.keys()
    for extra in extras:
        assert f"psilearn[{extra}]" in output and f"| `{extra}` |" in guide


def test_info_names_the_extra_of_a_missing_package(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        installation_info, "find_spec", lambda name: None if name in ("torch", "pyarrow") else real(name)
    )
    output = CliRunner().invoke(app, ["info"]).output
    assert "not installed: pyarrow (pip install 'psilearn[app]')" in output
    assert "GPUs need the extra psilearn[torch]" in output


@pytest.mark.parametrize(
    ("words", "expected"), [("psilearn ", {"fit", "predict", "search", "info"}), ("psilearn pred", {"predict"})]
)
def test_the_shell_completes_commands(words, expected):
    variables = {"_PSILEARN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "1"}
    result = CliRunner().invoke(app, [], prog_name="psilearn", env=variables)
    assert expected <= set(result.output.split())


def test_the_completion_script_is_printed(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="psilearn")
    assert result.exit_code == 0 and "_PSILEARN_COMPLETE=complete_bash" in result.output
