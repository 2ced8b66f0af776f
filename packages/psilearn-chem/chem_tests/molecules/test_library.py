"""Libraries of candidates on disk: building, searching, damaged files and embeddings."""

import shutil

import numpy as np
import pytest

from chem_tests.chemistry import build_library, smiles_list
from psilearn import OEL
from psilearn.kernels import Gaussian, GaussianTanimoto
from psilearn_chem.molecules import CandidateLibrary, Fingerprints, MoleculeList, fingerprints
from psilearn_chem.molecules.library_file import LIBRARY


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library") / "lib")


def test_each_molecule_is_kept_once_and_found_by_its_formula(built):
    table = Fingerprints()(smiles_list())
    canonical_smiles = table.canonical_smiles
    first = {smiles: i for i, smiles in reversed(list(enumerate(canonical_smiles)))}
    assert len(built) == len(first)
    assert built.manifest["repeated"] == len(canonical_smiles) - len(first)
    for formula in set(table.formulas):
        rows = built.find_formula(formula)
        expected = {smiles_list()[i] for i in first.values() if table.formulas[i] == formula}
        assert set(built.get_smiles(rows)) == expected
        assert set(built.get_formulas(rows)) == {formula}
        molecules = zip(built.get_smiles(rows), built.get_names(rows), strict=True)
        for row, (smiles, name) in enumerate(molecules, rows.start):
            i = smiles_list().index(smiles)
            assert name == f"m{i}"
            np.testing.assert_array_equal(built.bits[row], table.bits[i])
    assert built.get_smiles([3, 0]) == [built.get_smiles(slice(3, 4))[0], built.get_smiles(slice(0, 1))[0]]


def test_a_window_of_masses_contains_what_a_scan_finds(built):
    masses = np.repeat(built.masses, np.diff(built.starts))
    for mass in (*built.masses[::7], 150.0, 1.0, 1e6):
        for ppm in (1.0, 10.0, 1e5):
            rows = built.find_mass(mass, ppm)
            expected = np.flatnonzero(np.abs(masses - mass) <= 1e-6 * ppm * mass)
            assert np.arange(len(built))[rows].tolist() == expected.tolist()


def test_a_window_of_masses_includes_its_ends(built):
    mass = float(built.masses[4])
    assert built.find_mass(mass, 0.0) == slice(int(built.starts[4]), int(built.starts[5]))
    for invalid in ({"mass": -1.0}, {"mass": np.nan}, {"mass": 100.0, "ppm": -1.0}):
        with pytest.raises(ValueError, match="must be a finite number"):
            built.find_mass(**invalid)


def test_unknown_and_invalid_formulas(built):
    assert built.find_formula("C60H2") == slice(0, 0)
    assert built.find_formula("H6C2O") == built.find_formula("C2H6O")
    with pytest.raises(ValueError, match="not a molecular formula"):
        built.find_formula("sugar")


def test_an_interrupted_build_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "CHUNK_SIZE", 50)
    expected = build_library(tmp_path / "whole")
    computed = []
    compute_bits = Fingerprints._compute_bits

    def fail_after_three(self, molecules):
        computed.append(len(molecules))
        if len(computed) > 3:
            raise KeyboardInterrupt
        return compute_bits(self, molecules)

    monkeypatch.setattr(Fingerprints, "_compute_bits", fail_after_three)
    with pytest.raises(KeyboardInterrupt):
        build_library(tmp_path / "lib")
    with pytest.raises(ValueError, match="interrupted; run the same command again to resume it"):
        CandidateLibrary.open(tmp_path / "lib")
    computed.clear()
    monkeypatch.setattr(
        Fingerprints, "_compute_bits", lambda self, molecules: computed.append(1) or compute_bits(self, molecules)
    )
    resumed = build_library(tmp_path / "lib")
    assert len(computed) == -(-len(smiles_list()) // 50) - 3
    assert resumed.hash == expected.hash
    assert not (tmp_path / "lib" / "unfinished").exists()


def test_unreadable_molecules_are_listed(tmp_path):
    built = CandidateLibrary.build(MoleculeList(["CCO", "broken("], ["a", "b"]), tmp_path / "lib")
    assert (len(built), built.manifest["unreadable"]) == (1, 1)
    assert (tmp_path / "lib" / "unreadable.csv").read_text().splitlines() == ["record,name,smiles", "2,b,broken("]
    with pytest.raises(ValueError, match="None of the 1 molecules"):
        CandidateLibrary.build(MoleculeList(["x"], [""]), tmp_path / "none")


def test_other_folders_are_not_changed(tmp_path, built):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(FileExistsError, match="contains other files"):
        CandidateLibrary.build(MoleculeList(["CCO"], [""]), tmp_path / "mine")
    with pytest.raises(FileExistsError, match="already contains a library"):
        CandidateLibrary.build(MoleculeList(["CCO"], [""]), built.path)
    assert (tmp_path / "mine" / "file").read_text() == "x"
    (tmp_path / "thesis" / "unfinished").mkdir(parents=True)
    (tmp_path / "thesis" / "unfinished" / "chapter").write_text("x")
    with pytest.raises(FileExistsError, match="contains other files"):
        CandidateLibrary.build(MoleculeList(["CCO"], [""]), tmp_path / "thesis")
    with pytest.raises(FileNotFoundError):
        CandidateLibrary.build(tmp_path / "absent.smi", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b"{"),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
        lambda file: file.write_bytes(file.read_bytes().replace(b"morgan", b"maccs2", 1)),
        lambda file: file.unlink(),
        lambda file: file.rename(file.with_name("elsewhere")).with_name(file.name).symlink_to("elsewhere"),
    ],
)
def test_damaged_libraries_are_rejected(tmp_path, damage):
    build_library(tmp_path / "lib")
    damage(tmp_path / "lib" / LIBRARY)
    with pytest.raises(ValueError, match="library of candidates") as caught:
        CandidateLibrary.open(tmp_path / "lib")
    assert str(tmp_path) in str(caught.value)


def test_a_changed_file_is_detected_by_its_hash(tmp_path):
    built = build_library(tmp_path / "lib")
    built.verify()
    file = built.path / LIBRARY
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.unlink()  # a file that is changed in place also changes in the memory of those that map it
    file.write_bytes(content)
    with pytest.raises(ValueError, match="SHA-256 of its data"):
        CandidateLibrary.open(built.path)
    with pytest.raises(ValueError, match="SHA-256 of its data"):
        built.verify()
    other = CandidateLibrary.build(MoleculeList(["CCO"], [""]), tmp_path / "other")
    shutil.copy(other.path / LIBRARY, file)
    with pytest.raises(ValueError, match="contains another library"):
        built.verify()


def test_molecules_are_embedded_once_per_model(tmp_path):
    built = build_library(tmp_path / "lib")
    X = np.linspace(0, 1, 30)[:, None]
    model = OEL(Gaussian(5.0), GaussianTanimoto(packed=True), n_components=7).fit(X, built.bits[:30])
    assert built.embedded(model) is None
    embedded = built.embedded(model, build=True)
    np.testing.assert_allclose(embedded.g, model.transform_outputs(np.asarray(built.bits)))
    assert built.embedded(model) is embedded  # not read and verified again
    opened = CandidateLibrary.open(built.path).embedded(model)
    np.testing.assert_array_equal(opened.g, embedded.g)
    other = OEL(Gaussian(5.0), GaussianTanimoto(packed=True), n_components=3).fit(X, built.bits[:30])
    assert built.embedded(other) is None
    sizes = [file.stat().st_size for file in (built.path / "embeddings").glob("*/shard*")]
    assert sum(sizes) < built.bits.nbytes  # without the fingerprints, which the library has


def test_wrong_arguments_are_named(built):
    for get in (built.get_smiles, built.get_names, built.get_formulas):
        assert get([-1]) == get(slice(len(built) - 1, None))
        for rows in (None, [len(built)], [1.5], ["a"]):
            with pytest.raises((TypeError, ValueError), match="rows must be"):
                get(rows)
    for model in (3, None, OEL()):
        with pytest.raises(TypeError, match="model must be a fitted"):
            built.embedded(model)
    with pytest.raises(ValueError, match="build must be"):
        built.embedded(OEL(), build="yes")
