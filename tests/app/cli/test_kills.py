"""Commands that are killed at random moments leave a usable state, and the same command finishes the work.

These are few kills; ``python -m psilearn_lab.fuzz kills`` does many.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the commands run in forked processes")
@pytest.mark.parametrize(("scenario", "kills"), [("build", 1), ("train", 1), ("overwrite", 1)])
def test_killed_commands_are_resumed(scenario, kills):
    command = [sys.executable, "-m", "psilearn_lab.fuzz", "kills", "--only", scenario, "--runs", str(kills)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
