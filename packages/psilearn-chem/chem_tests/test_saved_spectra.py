"""Saved models of spectra: they predict as before, and the package registers its classes."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import psilearn_chem.codecs  # noqa: F401  registers spectra; an installed psilearn finds it as an entry point
from psilearn import IOKR, OEL, load_model, save_model
from psilearn.io.encoding import ENTRY_POINTS
from psilearn.kernels import GaussianTanimoto, Linear
from psilearn_chem import ProbabilityProduct, Spectrum, spectrum_kernel
from tests.io.test_saved_models import BITS, X, assert_same_predictions

RNG = np.random.default_rng(0)
SPECTRA = [
    Spectrum(50 + 9 * RNG.random(6), RNG.random(6) + 0.1, 80.0 + i % 3, "[M+H]+", "C2H6O", "CCO", f"s{i}")
    for i in range(30)
]


def test_a_saved_model_of_spectra_predicts_the_same(tmp_path):
    model = OEL(spectrum_kernel(), GaussianTanimoto(packed=True), alpha=1e-3, n_components=5).fit(SPECTRA, BITS)
    save_model(model.calibrate(SPECTRA, BITS), tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert_same_predictions(model, loaded, SPECTRA)
    np.testing.assert_array_equal(loaded.predict_set(SPECTRA).sizes, model.predict_set(SPECTRA).sizes)


def test_spectra_are_loaded_completely(tmp_path):
    model = IOKR(ProbabilityProduct(), Linear(), alpha=1e-2).fit(SPECTRA, X)
    save_model(model, tmp_path / "m")
    for a, b in zip(SPECTRA, load_model(tmp_path / "m").regression_.anchors, strict=True):
        np.testing.assert_array_equal(a.mz, b.mz)
        np.testing.assert_array_equal(a.intensity, b.intensity)
        assert repr(a) == repr(b)
        assert (a.smiles, a.formula) == (b.smiles, b.formula)


def test_entry_points_name_modules_that_register_codecs():
    chem = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(chem.read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"][ENTRY_POINTS]
    assert declared == {"chem": "psilearn_chem.codecs"}
    assert import_module(declared["chem"]).__name__ == "psilearn_chem.codecs"


CODE = """
import sys
from importlib import metadata
import psilearn.io.codecs as registry
from psilearn.io import load_model
entry_point = metadata.EntryPoint("chem", "psilearn_chem.codecs", "psilearn.codecs")
registry.entry_points = lambda group: [entry_point] if sys.argv[2] == "installed" else []
assert not any(name.startswith("psilearn_chem") for name in sys.modules)
try:
    print(type(load_model(sys.argv[1]).regression_.anchors[0]).__name__)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("state", "expected"), [("installed", "Spectrum"), ("from source", "import psilearn_chem.codecs")]
)
def test_applications_are_imported_when_a_model_needs_them(tmp_path, state, expected):
    save_model(IOKR(ProbabilityProduct(), Linear(), alpha=1e-2).fit(SPECTRA, X), tmp_path / "m")
    command = [sys.executable, "-c", CODE, str(tmp_path / "m"), state]
    assert expected in subprocess.run(command, capture_output=True, text=True, check=True).stdout
