"""Libraries whose file has valid checksums, but whose contents are hostile, are rejected by name."""

import numpy as np
import pytest

from psilearn.io import pack_texts
from psilearn_chem.molecules import CandidateLibrary, MoleculeList
from psilearn_chem.molecules.library_file import FORMAT, LIBRARY

LISTED = MoleculeList(["CCO", "COC", "CCN", "C"], ["ethanol", "ether", "amine", "methane"])


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    return CandidateLibrary.build(LISTED, tmp_path_factory.mktemp("library") / "lib")


def forge(valid, path, *, without=(), **changes):
    """Write a library like a valid one, with other contents or arrays; None leaves a value out."""
    file = FORMAT.read(valid.path / LIBRARY)
    texts = {name: changes.pop(name) for name in ("smiles", "names", "formula_names") if name in changes}
    for name, values in texts.items():
        name = {"formula_names": "formulas"}.get(name, name)
        changes[name], changes[f"{name}_ends"] = pack_texts(values)
    arrays = {**file.arrays, **{name: value for name, value in changes.items() if isinstance(value, np.ndarray)}}
    counts = {name: value for name, value in changes.items() if not isinstance(value, np.ndarray)}
    content = {name: value for name, value in {**file.content, **counts}.items() if value is not None}
    FORMAT.write(path / LIBRARY, content, {name: array for name, array in arrays.items() if name not in without})
    return path


def test_a_forged_copy_is_valid(valid, tmp_path):
    copy = CandidateLibrary.open(forge(valid, tmp_path / "lib", starts=np.array([0, 1, 2])))
    assert copy.get_smiles(slice(0, 4)) == valid.get_smiles(slice(0, 4))
    copy = CandidateLibrary.open(forge(valid, tmp_path / "texts", names=["a", "é", "", "d"]))
    assert copy.get_names([3, 0, -3]) == ["d", "a", "é"]


@pytest.mark.parametrize(
    "contents",
    [
        {"molecules": True},
        {"molecules": -4},
        {"molecules": "4"},
        {"molecules": 10**30},
        {"molecules": 5},
        {"formulas": 1},
        {"formulas": None},
        {"unreadable": "many"},
        {"repeated": 0.5},
        {"fingerprints": None},
        {"fingerprints": []},
        {"fingerprints": {"kinds": "maccs"}},
        {"fingerprints": {"kinds": [["maccs"]]}},
        {"fingerprints": {"kinds": ["maccs"]}},
        {"bits": np.zeros((4, 277), np.int8)},
        {"bits": np.zeros((4, 277, 1), np.uint8)},
        {"bits": np.zeros((3, 277), np.uint8)},
        {"without": ["bits"]},
        {"without": ["names_ends"]},
        {"starts": np.zeros((0,), np.int64)},
        {"starts": np.array([0, 3, 2])},
        {"starts": np.array([0, 1, 4])},
        {"starts": np.array([1, 2, 3])},
        {"starts": np.array([0.0, np.nan, 2.0])},
        {"starts": np.array([[0, 1, 2]])},
        {"masses": np.array([46.0, 45.0, 46.0])},
        {"masses": np.array([-16.0, 45.0, 46.0])},
        {"masses": np.array([16.0, np.nan, 46.0])},
        {"masses": np.array([16.0, 45.0, np.inf])},
        {"masses": np.array([16, 45, 46])},
        {"masses": np.array([[16.0, 45.0, 46.0]])},
        {"formula_names": ["CH4", "CH4", "C2H6O"]},
        {"formula_names": ["CH4", "C2H6O"]},
        {"smiles": ["a", "b", "c"]},
        {"names": ["a", "b", "c", "d", "e"]},
        {"smiles_ends": np.array([3, 2, 5, 9])},
        {"smiles_ends": np.array([3.0, 4.0, 5.0, 6.0])[:3]},
        {"formulas_ends": np.array([3, 8, 10**6])},
        {"formulas_ends": np.array([-3, 8, 13])},
    ],
    ids=lambda contents: f"{contents!r:.60}",
)
def test_hostile_contents_are_rejected_when_a_library_is_opened(valid, tmp_path, contents):
    path = forge(valid, tmp_path / "lib", **contents)
    with pytest.raises(ValueError, match=str(path)):
        CandidateLibrary.open(path)


@pytest.mark.parametrize(
    "contents",
    [
        {"smiles_ends": np.array([3, 6, 9, 10**6])},
        {"smiles_ends": np.array([-3, 6, 9, 10])},
        {"smiles_ends": np.array([1.0, 2.0, 3.0, 4.0])},
        {"smiles": np.array([255] * 10, np.uint8)},
        {"smiles": np.zeros(10, np.int64)},
    ],
    ids=["beyond the end", "negative", "float", "encoding", "dtype"],
)
def test_hostile_texts_are_rejected_when_they_are_used(valid, tmp_path, contents):
    if isinstance(contents.get("smiles"), np.ndarray):
        contents = {**contents, "smiles_ends": np.array([3, 6, 9, 10])}
        file = FORMAT.read(valid.path / LIBRARY)
        FORMAT.write(tmp_path / "lib" / LIBRARY, file.content, {**file.arrays, **contents})
        path = tmp_path / "lib"
    else:
        path = forge(valid, tmp_path / "lib", **contents)
    with pytest.raises(ValueError, match=str(path)):
        CandidateLibrary.open(path).get_smiles(slice(0, 4))


@pytest.mark.parametrize(
    ("molecules", "reason"),
    [
        (MoleculeList(["C", "CC"], ["methane"]), "2 SMILES but 1 names"),
        (MoleculeList(["C", "CC"], ["", (2**18 + 1) * "x"]), "Molecule 2 has a SMILES or a name of more than 262,144"),
    ],
    ids=["lengths", "long"],
)
def test_molecules_that_cannot_be_stored_are_rejected_before_the_work(tmp_path, molecules, reason):
    with pytest.raises(ValueError, match=reason):
        CandidateLibrary.build(molecules, tmp_path / "lib")
    assert not (tmp_path / "lib").exists()
