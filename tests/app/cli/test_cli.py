import subprocess
import sys

import pytest
from typer.testing import CliRunner

import psilearn
from psilearn.app import demo
from psilearn.app.cli import app


@pytest.fixture
def small_demo(monkeypatch):
    monkeypatch.setattr(demo, "N_SEEDS", 2)
    monkeypatch.setattr(demo, "N_UNLABELED", 100)
    monkeypatch.setattr(demo, "SIZES", [4, 16])


def test_demo_compares_the_methods_and_draws_a_picture(small_demo, tmp_path):
    picture = tmp_path / "digits.png"
    result = CliRunner().invoke(app, ["demo", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    rows = [line.split("│") for line in result.output.splitlines() if "±" in line and "│" in line]
    assert [row[1].strip() for row in rows] == ["IOKR", "KDE", "OEL₀", "OEL"]
    for row in rows:
        loss, error = map(float, row[2].split("±"))
        assert 0 < error < loss < 2
    assert not rows[0][3].strip() and all(len(row[3].split("±")) == 2 for row in rows[1:])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_rejects_a_missing_folder(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--picture", str(tmp_path / "nowhere" / "p.png")])
    assert result.exit_code == 2 and "--picture: the folder" in result.output
    assert len(result.output.splitlines()) == 1


def test_demo_methods_learn_something(small_demo):
    digits = demo.load_halves(0)
    shuffled = demo.kernel_loss(digits.Y_test, digits.Y_test[::-1], demo.OUTPUT_KERNEL)
    for result in demo.run(digits, 0, lambda text: None):
        assert result.loss < shuffled - 5 * shuffled.standard_error


def test_version():
    assert psilearn.__version__ in CliRunner().invoke(app, ["--version"]).output


def test_a_missing_package_of_the_command_line_is_named():
    code = "import sys; sys.modules['typer'] = None; from psilearn.app import main; main()"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert completed.stderr == "Error: The command psilearn needs typer: pip install 'psilearn[app]'.\n"


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, psilearn; print(sorted({'numpy', 'sklearn', 'scipy', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_public_names():
    for name in psilearn.__all__:
        assert getattr(psilearn, name) is not None
    assert psilearn.kernels.Gaussian is demo.Gaussian
    assert "OEL" in dir(psilearn)
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = psilearn.Missing
