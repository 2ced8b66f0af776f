"""``python -m psilearn_lab.experiments`` runs without the packages of the command line."""

import subprocess
import sys

import pytest

from lab_tests.experiments.toys import Counted, experiment, failing, part
from psilearn_lab import experiments
from psilearn_lab.experiments.__main__ import main


def test_rows_notes_and_records(monkeypatch, tmp_path, capsys):
    known = experiment(part(Counted(), "one"), part(failing, "bad"), name="timing")
    monkeypatch.setattr(experiments, "find", lambda name: known)
    assert main(["timing", "--output", str(tmp_path), "--only", "one", "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert "100.000 ± 0.500" in output.out and "- a note" in output.out and "timing, one: starting" in output.err
    assert (tmp_path / "timing" / "one.json").exists() and (tmp_path / "timing" / "results.csv").exists()
    assert main(["timing", "--output", str(tmp_path)]) == 1


def test_unknown_experiments_are_rejected(capsys):
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "multilabel-sets" in capsys.readouterr().err


def test_no_command_line_packages_are_imported():
    code = """
import sys
for name in ("rich", "typer", "click", "matplotlib"):
    sys.modules[name] = None  # importing it fails
from psilearn_lab.experiments.__main__ import main
from psilearn_lab import datasets, experiments
experiments.find("multilabel-sets")
try:
    main(["--help"])
except SystemExit as end:
    sys.exit(end.code)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
