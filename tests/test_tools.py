"""The check of contributors finds private names and the tests of what changed."""

from pathlib import Path

import pytest

from tools.check import HOUSES, find_tests, private_names

FILE = """
import psilearn._linalg
import psilearn.kernels as kernels
from psilearn import _utils, decoding
from psilearn.io import load_model, _encoding
from psilearn.app.console import report_errors
from psilearn.decoding.as_candidates import CANDIDATE_NAMES
from psilearn.decoding import as_candidates

decoding._bounds.search()
kernels._base
kernels.Gaussian.__name__
load_model("_model")._fitted
monkeypatch.setattr("psilearn.decoding._bounds.BLOCK", 1)
"""


def test_private_names_of_the_library_are_found(tmp_path):
    (tmp_path / "module.py").write_text(FILE)
    found = [line.removeprefix(f"{tmp_path}/module.py:") for line in private_names([tmp_path / "module.py"])]
    assert found == [
        "2: psilearn._linalg",
        "4: psilearn._utils",
        "5: psilearn.io._encoding",
        "7: psilearn.decoding.as_candidates.CANDIDATE_NAMES",
        "10: psilearn.decoding._bounds",
        "11: psilearn.kernels._base",
        "14: psilearn.decoding._bounds.BLOCK",
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/psilearn/kernels/base.py", ["tests/kernels"]),
        ("src/psilearn/theory.py", ["tests/test_theory.py"]),
        ("src/psilearn/__init__.py", ["tests/test_public_api.py"]),
        ("src/psilearn/decoding/label_sets/no_such_module.py", ["tests/decoding/label_sets"]),
        ("tests/kernels/test_kernels.py", ["tests/kernels/test_kernels.py"]),
        ("tests/kernels/kernel_cases.py", ["tests/kernels"]),
        ("examples/method/plot_forest.py", ["tests/test_examples.py"]),
        ("LICENSE", []),
    ],
)
def test_the_tests_of_a_file_are_in_the_same_folder(changed, expected):
    assert find_tests([changed]) == expected


@pytest.mark.parametrize("house", HOUSES, ids=lambda house: house.name)
def test_the_houses_exist(house):
    assert Path(house.source).is_dir() and Path(house.tests).is_dir()
