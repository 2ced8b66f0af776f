"""psilearn finds the commands, the codecs and the service of this package in a process that has not imported it."""

import subprocess
import sys

import pytest

from psilearn import IOKR, save_model
from psilearn.kernels import Gaussian
from psilearn_chem import Spectrum, spectrum_kernel

START = "from psilearn.app.cli import app; app()"


def run(*arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("group", "command"), [("metabolites", "rank"), ("candidates", "embed")])
def test_commands(group, command):
    assert group in run("-c", START, "--help").stdout
    assert command in run("-c", START, group, "--help").stdout


def test_codecs_and_the_service(tmp_path):
    spectra = [Spectrum([50.0, 60.0 + i], [1.0, 2.0], precursor_mz=99.0) for i in range(4)]
    model = IOKR(spectrum_kernel(), Gaussian()).fit(spectra, [[0.0], [1.0], [2.0], [3.0]])
    save_model(model, tmp_path / "a.psi", notes={"kind": "psilearn_chem.metabolites"})
    code = "import sys; from psilearn.io import load_model; print(load_model(sys.argv[1]).regression_.anchors[3].mz)"
    assert run("-c", code, tmp_path / "a.psi").stdout.strip() == "[50. 63.]"
    served = run("-c", START, "serve", tmp_path / "a.psi", "--port", "0")
    assert served.returncode == 2 and "is a metabolite model: name its library with --candidates" in served.stderr
