"""Libraries whose manifest lists its files correctly, but whose contents are hostile, are rejected by name."""

import json

import numpy as np
import pytest

pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")
pytest.importorskip("pyarrow", reason="libraries need the extra psilearn[chem]")

import pyarrow as pa

from psilearn_chem.molecules import CandidateLibrary, MoleculeList
from psilearn_chem.molecules.library_folder import BITS, FORMAT, FORMULAS, MOLECULES

LISTED = MoleculeList(["CCO", "COC", "CCN", "C"], ["ethanol", "ether", "amine", "methane"])


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    return CandidateLibrary.build(LISTED, tmp_path_factory.mktemp("library") / "lib")


def forge(valid, path, *, bits=None, formulas_file=None, molecules_file=None, **manifest):
    """Write a library like a valid one, with other contents; None leaves a value out of the manifest."""
    writer = FORMAT.claim(path)
    valid_formulas = json.loads((valid.path / FORMULAS).read_text())
    writer.save_array(BITS, np.array(valid.bits) if bits is None else bits)
    writer.write_bytes(MOLECULES, (valid.path / MOLECULES).read_bytes() if molecules_file is None else molecules_file)
    writer.write_json(FORMULAS, valid_formulas if formulas_file is None else formulas_file)
    content = {**valid.manifest, **manifest}
    writer.finish({name: value for name, value in content.items() if value is not None})
    return path


def to_arrow(*columns, names=("smiles", "name")):
    """Return the bytes of an Arrow file."""
    table = pa.table(list(columns), names=list(names))
    content = pa.BufferOutputStream()
    with pa.ipc.new_file(content, table.schema) as file:
        file.write_table(table)
    return content.getvalue().to_pybytes()


def texts(*values):
    return pa.array(values, pa.large_string())


def formulas(*starts, masses=(16.0, 45.0, 46.0), names=("CH4", "C2H7N", "C2H6O")):
    return [list(row) for row in zip(names, masses, starts, strict=True)]


FOUR = texts("a", "b", "c", "d")


def test_a_forged_copy_is_valid(valid, tmp_path):
    copy = CandidateLibrary.open(forge(valid, tmp_path / "lib", formulas_file=formulas(0, 1, 2)))
    assert copy.get_smiles(slice(0, 4)) == valid.get_smiles(slice(0, 4))
    copy = CandidateLibrary.open(forge(valid, tmp_path / "texts", molecules_file=to_arrow(FOUR, FOUR)))
    assert copy.get_names([3, 0]) == ["d", "a"]


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
        {"sha256": "0"},
        {"sha256": ["0" * 64]},
        {"fingerprints": None},
        {"fingerprints": []},
        {"fingerprints": {"kinds": "maccs"}},
        {"fingerprints": {"kinds": [["maccs"]]}},
        {"fingerprints": {"kinds": ["maccs"]}},
        {"bits": np.zeros((4, 277), np.int8)},
        {"bits": np.zeros((4, 277, 1), np.uint8)},
        {"formulas_file": {}},
        {"formulas_file": []},
        {"formulas_file": [["C", 1.0], ["O", 2.0], ["N", 3.0]]},
        {"formulas_file": formulas(0, True, 2)},
        {"formulas_file": formulas(0, 1.0, 2)},
        {"formulas_file": formulas(0, 10**30, 2)},
        {"formulas_file": formulas(0, 3, 2)},
        {"formulas_file": formulas(0, 1, 4)},
        {"formulas_file": formulas(1, 2, 3)},
        {"formulas_file": formulas(0, 1, 2, masses=(46.0, 45.0, 46.0))},
        {"formulas_file": formulas(0, 1, 2, masses=("16", 45.0, 46.0))},
        {"formulas_file": formulas(0, 1, 2, masses=(-16.0, 45.0, 46.0))},
        {"formulas_file": formulas(0, 1, 2, names=(["CH4"], "C2H7N", "C2H6O"))},
        {"formulas_file": formulas(0, 1, 2, names=("CH4", "CH4", "C2H6O"))},
        {"molecules_file": b""},
        {"molecules_file": b"ARROW1\0\0" + 40 * b"x" + b"ARROW1"},
        {"molecules_file": to_arrow(FOUR, names=["smiles"])},
        {"molecules_file": to_arrow(FOUR, FOUR, names=["name", "smiles"])},
        {"molecules_file": to_arrow(FOUR, FOUR, FOUR, names=["smiles", "name", "more"])},
        {"molecules_file": to_arrow(FOUR, pa.array([1, 2, 3, 4]))},
        {"molecules_file": to_arrow(FOUR, FOUR.cast(pa.string()))},
        {"molecules_file": to_arrow(FOUR, FOUR.dictionary_encode())},
        {"molecules_file": to_arrow(FOUR.slice(1), FOUR.slice(1))},
    ],
    ids=lambda contents: f"{contents!r:.60}",
)
def test_hostile_contents_are_rejected_when_a_library_is_opened(valid, tmp_path, contents):
    path = forge(valid, tmp_path / "lib", **contents)
    with pytest.raises(ValueError, match=str(path)):
        CandidateLibrary.open(path)


def corrupt_offsets():
    """Return an Arrow file with an offset far outside of its text."""
    content = bytearray(to_arrow(FOUR, FOUR))
    at = bytes(content).index(np.arange(5, dtype="<i8").tobytes())
    content[at + 16 : at + 24] = np.array([2**40], "<i8").tobytes()
    return bytes(content)


def invalid_utf8():
    return to_arrow(texts("aaaa", "b", "c", "d"), FOUR).replace(b"aaaabcd", b"\xff\xff\xff\xffbcd")


@pytest.mark.parametrize(
    ("molecules", "reason"),
    [
        (corrupt_offsets(), "molecules.arrow is not a readable Arrow file"),
        (invalid_utf8(), "molecules.arrow is not a readable Arrow file"),
        (to_arrow(texts("a", None, "c", "d"), FOUR), "missing values in the column smiles"),
        (to_arrow(FOUR, texts("a", "b", "c", (2**20 + 1) * "d")), "has a name of 1,048,577 bytes"),
    ],
    ids=["offsets", "encoding", "missing", "long"],
)
def test_hostile_texts_are_rejected_before_the_first_use(valid, tmp_path, molecules, reason):
    path = forge(valid, tmp_path / "lib", molecules_file=molecules)
    with pytest.raises(ValueError, match=f"{path} .*{reason}"):
        CandidateLibrary.open(path).get_smiles(slice(0, 1))


def test_files_that_the_manifest_does_not_list_are_not_used(valid, tmp_path):
    writer = FORMAT.claim(tmp_path / "lib")
    writer.save_array(BITS, np.array(valid.bits))
    writer.write_bytes(FORMULAS, (valid.path / FORMULAS).read_bytes())
    writer.finish(valid.manifest)
    (tmp_path / "lib" / MOLECULES).write_bytes((valid.path / MOLECULES).read_bytes())
    with pytest.raises(ValueError, match=r"'molecules\.arrow' is not a file of its manifest"):
        CandidateLibrary.open(tmp_path / "lib")


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
