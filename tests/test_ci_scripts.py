"""Scripts of the continuous integration, with stand-ins for the commands of the system."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "ci" / "install_chromium.sh"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a shell script")


def run_with(folder, **commands):
    """Run the script with these commands only; return its output and the arguments of apt-get."""
    for name, body in {"id": "echo 0", "timeout": 'shift; "$@"', **commands}.items():
        file = folder / name
        file.write_text(f"#!{shutil.which('sh')}\n{body}\n")
        file.chmod(0o755)
    command = [shutil.which("bash"), str(SCRIPT)]
    done = subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=True)
    calls = folder / "calls"
    return done.stdout, calls.read_text().splitlines() if calls.exists() else []


def note_calls(folder, status):
    return f'echo "$@" >> {folder}/calls; exit {status}'


def test_chromium_is_installed_by_root_if_it_is_missing(tmp_path):
    output, calls = run_with(tmp_path, **{"apt-get": note_calls(tmp_path, 0)})
    assert output == "" and calls[0].startswith("update") and calls[1].endswith("chromium") and len(calls) == 2


def test_a_failed_installation_is_no_failure(tmp_path):
    output, calls = run_with(tmp_path, **{"apt-get": note_calls(tmp_path, 100)})
    assert "will be skipped" in output and len(calls) == 1


@pytest.mark.parametrize("commands", [{"chromium": "true"}, {"google-chrome": "true"}, {"id": "echo 1000"}])
def test_nothing_is_installed_if_it_is_there_or_by_other_users(tmp_path, commands):
    output, calls = run_with(tmp_path, **{"apt-get": note_calls(tmp_path, 0)}, **commands)
    assert calls == [] and ("skipped" in output) == ("id" in commands)


def test_systems_without_apt_get_are_told(tmp_path):
    output, calls = run_with(tmp_path)
    assert "will be skipped" in output and calls == []
